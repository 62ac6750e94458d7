//! One case for every rule, in which its class is the only root class, and a
//! near miss that breaks nothing.

use super::{classes, closed, normal, read, remove, set, silent};
use crate::turn::join_check;
use serde_json::{Value, json};

type Edit = fn(&mut Value);

/// Asserts the join's and the mutation's classes of an edited turn.
fn judge(name: &str, mut input: Value, edit: Edit, join: &[&str], mutation: &[&str]) {
    edit(&mut input);
    let answer = join_check(&read(input)).unwrap();
    assert_eq!(answer.failure_classes, classes(join), "{name}: join");
    assert_eq!(
        answer.mutation_failure_classes,
        classes(mutation),
        "{name}: mutation"
    );
    assert_eq!(answer.join_closed, join.is_empty(), "{name}");
    assert_eq!(
        answer.mutation_ready,
        join.is_empty() && mutation.is_empty(),
        "{name}"
    );
}

fn accepted(name: &str, input: Value, edit: Edit) {
    judge(name, input, edit, &[], &[]);
}

const INCOMPLETE: &str = "tool.join_incomplete";

#[test]
fn a_closed_turn_breaks_no_rule() {
    accepted("closed", closed(), |_| {});
    accepted("silent", silent(), |_| {});
}

#[test]
fn requests_results_and_uses_must_correspond() {
    // A request alone: no result, and so no use either.
    judge(
        "result missing",
        closed(),
        |v| {
            remove(v, "/evidence/toolResults/1");
            remove(v, "/evidence/toolUse/1");
        },
        &["tool.result_missing", INCOMPLETE],
        &[],
    );
    judge(
        "result orphan",
        closed(),
        |v| remove(v, "/evidence/toolRequests/1"),
        &["tool.result_orphan", INCOMPLETE],
        &[],
    );
    judge(
        "use missing",
        closed(),
        |v| remove(v, "/evidence/toolUse/1"),
        &["tool.use_missing", INCOMPLETE],
        &[],
    );
    judge(
        "use without result",
        closed(),
        |v| {
            let uses = v["evidence"]["toolUse"].as_array_mut().unwrap();
            uses.push(json!({"toolCallId": "nobody", "disposition": "observed"}));
        },
        &["tool.use_without_result", INCOMPLETE],
        &[],
    );
    accepted("a whole call gone", closed(), |v| {
        remove(v, "/evidence/toolRequests/1");
        remove(v, "/evidence/toolResults/1");
        remove(v, "/evidence/toolUse/1");
    });
}

#[test]
fn errors_must_be_typed() {
    let schema = &["tool.schema_invalid"];
    for part in ["errorCode", "retryable", "errorMessage"] {
        let mut input = closed();
        remove(&mut input, &format!("/evidence/toolResults/1/{part}"));
        judge(part, input, |_| {}, schema, &[]);
    }
    judge(
        "a blank code",
        closed(),
        |v| set(v, "/evidence/toolResults/1/errorCode", json!(" ")),
        schema,
        &[],
    );
    judge(
        "a raw error that says nothing, and no status",
        closed(),
        |v| {
            set(v, "/evidence/toolResults/2/rawError", json!({}));
            remove(v, "/evidence/toolResults/2/status");
        },
        schema,
        &[],
    );
    judge(
        "one incomplete row beside a complete one of the same normal form",
        closed(),
        |v| {
            let rows = v["evidence"]["toolResults"].as_array_mut().unwrap();
            rows[1] = json!({"toolCallId": "b", "status": "error",
                "rawError": {"errorCode": 5, "code": "unknown_error", "retryable": false, "message": "m"}});
            rows.push(json!({"toolCallId": "b", "status": "error",
                "rawError": {"retryable": false, "message": "m"}}));
        },
        schema,
        &[],
    );
    accepted("the envelope within the raw error", closed(), |v| {
        v["evidence"]["toolResults"][1] = json!({"toolCallId": "b",
            "rawError": {"errorCode": null, "code": "timeout", "retryable": true, "message": "m"}});
    });
    accepted("a success with error material", closed(), |v| {
        set(v, "/evidence/toolResults/2/errorCode", json!("warned"));
    });
    accepted("a null raw error", closed(), |v| {
        set(v, "/evidence/toolResults/2/rawError", Value::Null);
        remove(v, "/evidence/toolResults/2/status");
    });
}

#[test]
fn text_calls_need_an_adapter() {
    let text: Edit = |v| set(v, "/evidence/callSpec/actionMode", json!("TEXT"));
    judge("text", closed(), text, &["tool.schema_invalid"], &[]);
    judge(
        "a blank adapter",
        closed(),
        |v| {
            set(v, "/evidence/callSpec/actionMode", json!("text"));
            set(v, "/evidence/callSpec/textAdapterProfile", json!(" "));
        },
        &["tool.schema_invalid"],
        &[],
    );
    accepted("text without calls", silent(), text);
    accepted("text with an adapter", closed(), |v| {
        set(v, "/evidence/callSpec/actionMode", json!("text"));
        set(
            v,
            "/evidence/callSpec/textAdapterProfile",
            json!("adapter.v1"),
        );
    });
    accepted("json", closed(), |v| {
        set(v, "/evidence/callSpec/actionMode", json!("json"));
    });
}

#[test]
fn the_protocol_is_kept() {
    judge(
        "stop reason",
        closed(),
        |v| set(v, "/evidence/protocolState/stopReason", json!("refusal")),
        &["protocol.stop_reason_unhandled"],
        &[],
    );
    for reason in ["tool_use", "pause_turn", "max_tokens", " End_Turn "] {
        let mut input = closed();
        set(
            &mut input,
            "/evidence/protocolState/stopReason",
            json!(reason),
        );
        accepted(reason, input, |_| {});
    }
    judge(
        "transport order",
        closed(),
        |v| {
            set(
                v,
                "/protocolConstraints/parallelTransportOrderValid",
                json!(false),
            );
        },
        &["protocol.parallel_transport_order_invalid"],
        &[],
    );
    accepted("transport order unknown", closed(), |v| {
        set(
            v,
            "/protocolConstraints/parallelTransportOrderValid",
            Value::Null,
        );
    });
    judge(
        "truncation",
        closed(),
        |v| set(v, "/truncationConstraints", json!({"required": true})),
        &["tool.response_truncation_policy_violation"],
        &[],
    );
    accepted("truncation kept", closed(), |v| {
        set(
            v,
            "/truncationConstraints",
            json!({"required": true, "valid": true}),
        );
    });
    accepted("truncation not asked", closed(), |v| {
        set(v, "/truncationConstraints", json!({"valid": false}));
    });
}

#[test]
fn the_context_counts_where_something_is_consumed() {
    let injection = &["context.injection_point_missing"];
    let queue = &["context.queue_policy_violation"];
    judge(
        "a result not shown",
        closed(),
        |v| remove(v, "/evidence/toolRender/0"),
        injection,
        &[],
    );
    judge(
        "no state view",
        closed(),
        |v| remove(v, "/evidence/stateViews"),
        injection,
        &[],
    );
    judge(
        "no queue",
        closed(),
        |v| remove(v, "/evidence/reminderQueue"),
        queue,
        &[],
    );
    for row in ["toolRender/1", "reminderQueue/0", "stateViews/0"] {
        let mut input = closed();
        set(
            &mut input,
            &format!("/evidence/{row}/policyDigest"),
            json!("other.v1"),
        );
        judge(row, input, |_| {}, queue, &[]);
    }
    let unused: Edit = |v| {
        set(v, "/evidence/toolUse/0/disposition", json!("observed_only"));
        remove(v, "/evidence/toolRender");
        remove(v, "/evidence/reminderQueue");
        remove(v, "/evidence/stateViews");
    };
    accepted("nothing consumed", closed(), unused);
}

#[test]
fn the_context_counts_where_the_loop_continues() {
    let continues: Edit = |v| {
        set(
            v,
            "/evidence/protocolState/continuationAllowed",
            json!(true),
        )
    };
    let both = &[
        "context.injection_point_missing",
        "context.queue_policy_violation",
    ];
    judge("silent", silent(), continues, both, both);
    accepted("closed", closed(), continues);
}

#[test]
fn decomposition_follows_its_constraints() {
    let class = &["coordination.decomposition_policy_violation"];
    for (name, block) in [
        ("inadmissible", json!({"admissible": false})),
        (
            "another pattern",
            json!({"expectedExecutionPattern": "chain"}),
        ),
        ("another policy", json!({"expectedPolicyDigest": "other"})),
    ] {
        let mut input = closed();
        set(&mut input, "/decompositionConstraints", block);
        judge(name, input, |_| {}, class, &[]);
    }
    accepted("all as expected", closed(), |v| {
        set(
            v,
            "/decompositionConstraints",
            json!({"admissible": true, "expectedExecutionPattern": " SINGLE ", "expectedPolicyDigest": "decomposition.v1"}),
        );
    });
    for pattern in ["parallel", "orchestrator_workers"] {
        let mut input = closed();
        set(
            &mut input,
            "/evidence/callSpec/executionPattern",
            json!(pattern),
        );
        judge(pattern, input.clone(), |_| {}, &[], class);
        accepted(pattern, input, |v| {
            set(v, "/decompositionConstraints", json!({"admissible": true}));
        });
    }
    let mut input = closed();
    set(
        &mut input,
        "/evidence/callSpec/executionPattern",
        json!("swarm"),
    );
    judge("a pattern of its own", input.clone(), |_| {}, &[], class);
    accepted("a pattern of its own", input, |v| {
        let expected = json!({"expectedExecutionPattern": "Swarm"});
        set(v, "/decompositionConstraints", expected);
    });
    for pattern in ["chain", "route", "evaluator_optimizer"] {
        let mut input = closed();
        set(
            &mut input,
            "/evidence/callSpec/executionPattern",
            json!(pattern),
        );
        accepted(pattern, input, |_| {});
    }
}

#[test]
fn a_handoff_follows_its_constraints() {
    fn transfer() -> Value {
        let mut input = closed();
        set(
            &mut input,
            "/evidence/handoff",
            json!({"target": "w2", "requiredArtifactRefs": ["x", "y"], "returnPathRef": "back"}),
        );
        set(
            &mut input,
            "/handoffConstraints",
            json!({"requiredArtifactRefs": ["x"], "allowedTargets": ["w1", "w2"], "requireReturnPath": true}),
        );
        input
    }
    accepted("as it should be", transfer(), |_| {});
    accepted("constraints that ask nothing", transfer(), |v| {
        set(v, "/handoffConstraints", json!({}));
        set(v, "/evidence/handoff", json!({"target": "anybody"}));
    });
    judge(
        "artifact",
        transfer(),
        |v| remove(v, "/evidence/handoff/requiredArtifactRefs/0"),
        &["handoff.required_artifact_missing"],
        &[],
    );
    judge(
        "target",
        transfer(),
        |v| set(v, "/evidence/handoff/target", json!("w3")),
        &["handoff.target_not_allowed"],
        &[],
    );
    judge(
        "return path",
        transfer(),
        |v| remove(v, "/evidence/handoff/returnPathRef"),
        &["handoff.return_path_missing"],
        &[],
    );
    judge(
        "constraints without a handoff",
        transfer(),
        |v| remove(v, "/evidence/handoff"),
        &[
            "handoff.required_artifact_missing",
            "handoff.return_path_missing",
            "handoff.target_not_allowed",
        ],
        &[],
    );
    judge(
        "a handoff without constraints",
        transfer(),
        |v| remove(v, "/handoffConstraints"),
        &[],
        &["handoff.target_not_allowed"],
    );
}

#[test]
fn governance_is_claim_gated() {
    const CLAIM: &str = "profile.doctrine_inf_governance.v0";
    fn governed(profile: Value) -> Value {
        let mut input = closed();
        set(&mut input, "/governanceProfile", profile);
        input
    }
    let pinned = |pinned: bool, bound: &str| {
        json!({"claimId": CLAIM, "claimed": true, "policyProvenance":
            {"pinned": pinned, "packageRef": "p", "expectedDigest": "d", "boundDigest": bound}})
    };
    accepted("pinned", governed(pinned(true, "d")), |_| {});
    accepted("not claimed", governed(json!({"claimed": false})), |_| {});
    let invalid = &["governance.claim_id_invalid"];
    for claimed in [true, false] {
        judge(
            "a foreign claim",
            governed(json!({"claimId": "profile.other", "claimed": claimed})),
            |_| {},
            invalid,
            &[],
        );
    }
    let unpinned = &["governance.policy_package_unpinned"];
    judge(
        "unpinned",
        governed(pinned(false, "e")),
        |_| {},
        unpinned,
        &[],
    );
    judge(
        "no provenance",
        governed(json!({"claimed": true})),
        |_| {},
        unpinned,
        &[],
    );
    for part in ["packageRef", "expectedDigest", "boundDigest"] {
        let mut input = governed(pinned(true, "d"));
        remove(
            &mut input,
            &format!("/governanceProfile/policyProvenance/{part}"),
        );
        judge(part, input, |_| {}, unpinned, &[]);
    }
    judge(
        "another package",
        governed(pinned(true, "e")),
        |_| {},
        &["governance.policy_package_mismatch"],
        &[],
    );
}

#[test]
fn use_evidence_must_be_complete_before_a_change() {
    let missing = &["mutation.use_evidence_missing"];
    judge(
        "consumed without provenance",
        closed(),
        |v| remove(v, "/evidence/toolUse/0/provenanceRef"),
        &[],
        missing,
    );
    judge(
        "discarded without reason",
        closed(),
        |v| remove(v, "/evidence/toolUse/1/useReason"),
        &[],
        missing,
    );
    accepted("neither needed", closed(), |v| {
        set(
            v,
            "/evidence/toolUse/1",
            json!({"toolCallId": "b", "disposition": "retry_scheduled"}),
        );
    });
    let unknown = &["tool.use_unknown_result"];
    judge(
        "another result",
        closed(),
        |v| set(v, "/evidence/toolUse/0/resultDigest", json!("sha256:b")),
        &[],
        unknown,
    );
    judge(
        "a result that has no digest",
        closed(),
        |v| set(v, "/evidence/toolUse/1/resultDigest", json!("sha256:b")),
        &[],
        unknown,
    );
    accepted("no digest named", closed(), |v| {
        remove(v, "/evidence/toolUse/0/resultDigest");
    });
}

#[test]
fn a_change_needs_linkage_to_some_step() {
    let missing = &["mutation.use_evidence_missing"];
    for (list, wrong) in [
        ("sessionRefs", json!(["session://"])),
        ("sessionRefs", json!([])),
        ("trajectoryRefs", json!(["trajectory://worker.1"])),
        ("trajectoryRefs", json!([" "])),
    ] {
        let mut input = closed();
        set(&mut input, &format!("/evidence/{list}"), wrong);
        judge(list, input, |_| {}, &[], missing);
    }
}

#[test]
fn nothing_short_circuits() {
    judge(
        "much at once",
        closed(),
        |v| {
            remove(v, "/evidence/toolRequests/1");
            remove(v, "/evidence/toolUse/2");
            remove(v, "/evidence/stateViews");
            remove(v, "/evidence/sessionRefs");
            remove(v, "/evidence/toolResults/1/retryable");
            set(v, "/evidence/protocolState/stopReason", json!("?"));
            set(v, "/governanceProfile", json!({"claimed": true}));
            set(v, "/evidence/handoff", json!({"target": "w"}));
        },
        &[
            "context.injection_point_missing",
            "governance.policy_package_unpinned",
            "protocol.stop_reason_unhandled",
            "tool.join_incomplete",
            "tool.result_orphan",
            "tool.schema_invalid",
            "tool.use_missing",
        ],
        &[
            "handoff.target_not_allowed",
            "mutation.use_evidence_missing",
        ],
    );
}

#[test]
fn the_next_turn_is_ready_only_where_all_of_its_context_is() {
    let ready = |edit: fn(&mut Value)| {
        let mut input = closed();
        set(
            &mut input,
            "/evidence/protocolState/continuationAllowed",
            json!(true),
        );
        edit(&mut input);
        normal(input).context_state.continuation_context_ready
    };
    assert!(ready(|_| {}));
    let faults: [fn(&mut Value); 6] = [
        |input| remove(input, "/evidence/toolRender/0"),
        |input| remove(input, "/evidence/reminderQueue/0"),
        |input| remove(input, "/evidence/stateViews/0"),
        |input| set(input, "/evidence/toolRender/0/policyDigest", json!("other")),
        |input| {
            set(
                input,
                "/evidence/reminderQueue/0/policyDigest",
                json!("other"),
            )
        },
        |input| set(input, "/evidence/stateViews/0/policyDigest", json!("other")),
    ];
    for fault in faults {
        assert!(!ready(fault));
        let mut over = closed();
        fault(&mut over);
        assert!(normal(over).context_state.continuation_context_ready);
    }
}
