//! Evidence that a work command wrote itself: judged as it is reported, by the
//! operator's policy alone.

use crate::turn_demands::govern;
use premath_tests::{Ended, Scratch, issue};
use serde_json::{Value, json};
use std::fs;

/// What a command may write down about two calls.
fn reported() -> Value {
    json!({"evidence": {
        "callSpec": {
            "callId": "c", "modelRef": "my-agent:1", "actionMode": "json",
            "executionPattern": "chain", "normalizerId": "mine",
            "mutationPolicyDigest": "pol1_mine", "governancePolicyDigest": "g",
            "toolRenderProtocolDigest": "t", "reminderQueuePolicyDigest": "q",
            "stateViewPolicyDigest": "s", "decompositionPolicyDigest": "d",
        },
        "toolRequests": [{"toolCallId": "a", "toolName": "read"}],
        "toolResults": [{"toolCallId": "a", "payload": {"text": "x"}}],
        "toolUse": [{"toolCallId": "a", "disposition": "observed"}],
        "protocolState": {"stopReason": "end_turn"},
    }})
}

/// Runs a batch whose work command writes a file of evidence.
fn batch(edit: impl FnOnce(&mut Value)) -> (Scratch, Ended) {
    batch_in(Scratch::with_issues(1, &[issue("a")]), edit)
}

fn batch_in(scratch: Scratch, edit: impl FnOnce(&mut Value)) -> (Scratch, Ended) {
    let mut document = reported();
    edit(&mut document);
    let file = scratch.home().join("evidence.json");
    fs::write(&file, document.to_string()).unwrap();
    let settings = "[agent]\nadapter = \"evidence-file\"\n";
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    let work = r#"cp "$HOME/evidence.json" "$PREMATH_EVIDENCE_PATH"; echo x > src/a.txt"#;
    let ended = scratch.landing_batch(work, "true").end();
    (scratch, ended)
}

fn turn(scratch: &Scratch) -> Value {
    let file = scratch
        .root
        .join("artifacts/ciwitness/worker.1.a.1.turn.json");
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

#[track_caller]
fn refused(edit: impl FnOnce(&mut Value), class: &str) -> (Scratch, Ended) {
    let (scratch, ended) = batch(edit);
    assert_ne!(scratch.issue("a")["status"], "closed", "{}", ended.stderr);
    let step = &scratch.steps_of("a")[0];
    let classes = step["failureClasses"].as_array().unwrap();
    assert!(classes.contains(&json!(class)), "{step:#}");
    (scratch, ended)
}

#[test]
fn honest_guardrails_are_kept_and_the_issue_closes() {
    let (scratch, ended) = batch(|file| {
        file["evidence"]["callSpec"]["guardrailStagePolicyDigest"] = json!("sha256:g");
        let row = |(sequence, stage): (u64, &str)| {
            json!({"sequence": sequence, "stage": stage, "guardrailId": "g", "triggered": false,
                   "policyDigest": "sha256:g"})
        };
        let stages = [(1, "pre_flight"), (2, "input"), (3, "output")];
        file["evidence"]["facts"]["guardrails"] = stages.map(row).into_iter().collect();
    });
    assert_eq!(scratch.issue("a")["status"], "closed", "{}", ended.stderr);
    let evidence = &turn(&scratch)["input"]["evidence"];
    assert_eq!(evidence["facts"]["guardrails"][0]["guardrailId"], "g");
    assert_eq!(evidence["callSpec"]["actionMode"], "json");
    assert_eq!(evidence["callSpec"]["callId"], "c");
}

#[test]
fn what_the_file_says_against_itself_is_not_dropped() {
    let text = |file: &mut Value| file["evidence"]["callSpec"]["actionMode"] = json!("text");
    refused(text, "tool.schema_invalid");
    let unknown = |file: &mut Value| {
        file["evidence"]["callSpec"]["executionPattern"] = json!("swarm");
    };
    refused(unknown, "coordination.decomposition_policy_violation");
}

type Edit = fn(&mut Value);

/// What an agent's own report may get wrong, and the class that refuses it.
const WRONG: &[(&str, &str, Edit)] = &[
    ("no-result", "tool.result_missing", |file| {
        file["evidence"]["toolResults"] = json!([]);
        file["evidence"]["toolUse"] = json!([]);
    }),
    ("no-request", "tool.result_orphan", |file| {
        file["evidence"]["toolRequests"] = json!([]);
    }),
    ("no-use", "tool.use_missing", |file| {
        file["evidence"]["toolUse"] = json!([]);
    }),
    ("use-of-nothing", "tool.use_without_result", |file| {
        let uses = file["evidence"]["toolUse"].as_array_mut().unwrap();
        uses.push(json!({"toolCallId": "b", "disposition": "observed"}));
    }),
    ("use-of-other", "tool.use_unknown_result", |file| {
        file["evidence"]["toolUse"][0]["resultDigest"] = json!("sha256:other");
    }),
    ("use-unproven", "mutation.use_evidence_missing", |file| {
        file["evidence"]["toolUse"][0]["disposition"] = json!("consumed");
    }),
    ("error-untyped", "tool.schema_invalid", |file| {
        file["evidence"]["toolResults"][0]["status"] = json!("error");
    }),
    ("tool-unlisted", "tool.unknown_or_disallowed", |file| {
        let tools = json!({"tools": [{"toolName": "write"}, {"toolName": "shell"}]});
        file["evidence"]["callSpec"]["toolPolicy"] = tools;
    }),
    ("search-altered", "tool.discovery_mismatch", |file| {
        file["evidence"]["toolRequests"][0]["facts"] = json!({"searchRef": {
            "query": "files", "resultSetDigest": "sha256:other", "resultToolNames": ["read"],
        }});
    }),
    ("side-by-side", "tool.parallel_policy_violation", |file| {
        file["evidence"]["callSpec"]["parallelPolicy"] = json!({"admissible": false});
        let call =
            |id: &str| json!({"toolCallId": id, "toolName": "read", "facts": {"callGroup": "g"}});
        let result = |id: &str| json!({"toolCallId": id, "payload": {"text": "x"}});
        let used = |id: &str| json!({"toolCallId": id, "disposition": "observed"});
        file["evidence"]["toolRequests"] = json!([call("a"), call("b")]);
        file["evidence"]["toolResults"] = json!([result("a"), result("b")]);
        file["evidence"]["toolUse"] = json!([used("a"), used("b")]);
    }),
    (
        "calls-itself",
        "tool.programmatic_caller_edge_invalid",
        |file| {
            file["evidence"]["toolRequests"][0]["callerId"] = json!("a");
        },
    ),
    (
        "shown-whole",
        "tool.response_truncation_policy_violation",
        |file| {
            let policy = json!({"maxBytes": 4, "marker": "[cut]"});
            file["evidence"]["callSpec"]["toolResponseTruncationPolicy"] = policy;
            file["evidence"]["toolResults"][0]["facts"] = json!({"payloadBytes": 10});
        },
    ),
    (
        "output-first",
        "protocol.parallel_transport_order_invalid",
        |file| {
            file["evidence"]["facts"]["transport"] = json!([
                {"sequence": 0, "event": "output", "toolCallId": "a"},
                {"sequence": 1, "event": "call", "toolCallId": "a"},
            ]);
        },
    ),
    ("compacted", "runtime.compaction_state_invalid", |file| {
        let compaction = json!({"policyDigest": "sha256:p", "viewDigest": "sha256:v"});
        file["evidence"]["facts"]["compaction"] = compaction;
    }),
    (
        "guardrails-late",
        "governance.guardrail_stage_order_invalid",
        |file| {
            file["evidence"]["callSpec"]["guardrailStagePolicyDigest"] = json!("sha256:g");
            let row = |sequence: u64, stage: &str| {
                json!({"sequence": sequence, "stage": stage, "guardrailId": "g", "triggered": false,
                   "policyDigest": "sha256:g"})
            };
            let rows = json!([row(1, "output"), row(2, "pre_flight")]);
            file["evidence"]["facts"]["guardrails"] = rows;
        },
    ),
    (
        "traced-otherwise",
        "governance.trace_mode_violation",
        |file| {
            file["evidence"]["callSpec"]["observabilityMode"] = json!("disabled");
            file["evidence"]["facts"]["trace"] = json!({"mode": "dashboard", "traceRefs": ["t"]});
        },
    ),
    (
        "risk-unprofiled",
        "governance.risk_tier_profile_missing",
        |file| {
            file["evidence"]["callSpec"]["riskTier"] = json!("high");
        },
    ),
];

#[test]
fn a_report_that_is_wrong_closes_nothing() {
    let issues: Vec<Value> = WRONG.iter().map(|(id, ..)| issue(id)).collect();
    let scratch = Scratch::with_issues(2, &issues);
    for (id, _, edit) in WRONG {
        let mut document = reported();
        document["evidence"]["facts"] = json!({});
        edit(&mut document);
        let file = scratch.home().join(format!("{id}.json"));
        fs::write(file, document.to_string()).unwrap();
    }
    let settings = "[agent]\nadapter = \"evidence-file\"\n";
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    let work = r#"cp "$HOME/$PREMATH_ISSUE_ID.json" "$PREMATH_EVIDENCE_PATH"
        echo x > "src/$PREMATH_ISSUE_ID.txt""#;
    let ended = scratch.landing_batch(work, "true").end();
    for (id, class, _) in WRONG {
        let steps = scratch.steps_of(id);
        let classes = steps[0]["failureClasses"].as_array().unwrap();
        assert!(classes.contains(&json!(class)), "{id}: {classes:?}");
        assert_ne!(scratch.issue(id)["status"], "closed", "{}", ended.stderr);
    }
}

#[test]
fn a_pattern_that_splits_the_turn_up_is_held_to_the_operators_limits() {
    let parallel = |file: &mut Value| {
        file["evidence"]["callSpec"]["executionPattern"] = json!("parallel");
    };
    let (scratch, ended) = batch(parallel);
    assert_eq!(scratch.issue("a")["status"], "closed", "{}", ended.stderr);

    let scratch = Scratch::with_issues(1, &[issue("a")]);
    govern(&scratch, |policy| policy["calls"]["maxOpen"] = json!(1));
    let (scratch, ended) = batch_in(scratch, parallel);
    assert_ne!(scratch.issue("a")["status"], "closed", "{}", ended.stderr);
    let classes = &scratch.steps_of("a")[0]["failureClasses"];
    let class = json!("coordination.decomposition_policy_violation");
    assert!(classes.as_array().unwrap().contains(&class), "{classes}");
}

#[test]
fn constraints_that_a_file_brings_are_claims_and_judge_nothing() {
    let handoff = |file: &mut Value| {
        file["evidence"]["handoff"] = json!({"target": "mallory", "requiredArtifactRefs": []});
        file["handoffConstraints"] = json!({
            "requiredArtifactRefs": [], "allowedTargets": ["mallory"], "requireReturnPath": false,
        });
    };
    let (scratch, _) = batch(handoff);
    assert_ne!(scratch.issue("a")["status"], "closed");
    let witness = turn(&scratch);
    assert!(
        witness["input"]["handoffConstraints"].is_null(),
        "{witness:#}"
    );
    let claimed = &witness["claims"]["constraints"]["handoffConstraints"];
    assert_eq!(claimed["allowedTargets"], json!(["mallory"]));
    assert_eq!(
        witness["claims"]["callSpec"]["mutationPolicyDigest"],
        "pol1_mine"
    );
}

#[test]
fn a_file_that_cannot_be_kept_is_refused_by_name() {
    let sandbox = |file: &mut Value| {
        file["evidence"]["callSpec"]["runtimeSandboxRef"] = json!("sandbox1_mine");
    };
    let (_, ended) = refused(sandbox, "tool.schema_invalid");
    let said = "the harness sets callSpec.runtimeSandboxRef itself";
    assert!(ended.stdout.contains(said), "{}", ended.stdout);
}

#[test]
fn a_handoff_is_held_to_the_contract_of_its_role() {
    for (target, back, artifacts, class) in [
        ("reviewer", true, json!(["patch"]), None),
        (
            "mallory",
            true,
            json!(["patch"]),
            Some("handoff.target_not_allowed"),
        ),
        (
            "reviewer",
            false,
            json!(["patch"]),
            Some("handoff.return_path_missing"),
        ),
        (
            "reviewer",
            true,
            json!([]),
            Some("handoff.required_artifact_missing"),
        ),
    ] {
        let scratch = Scratch::with_issues(1, &[issue("a")]);
        govern(&scratch, |policy| {
            policy["roles"] = json!({"specialist": {"writable": ["src/"],
                "handoff": {"targets": ["reviewer"], "requiredArtifacts": ["patch"],
                    "requireReturnPath": true}}});
        });
        let (scratch, ended) = batch_in(scratch, |file| {
            let mut packet = json!({"target": target, "requiredArtifactRefs": artifacts});
            if back {
                packet["returnPathRef"] = json!("issue://a");
            }
            file["evidence"]["handoff"] = packet;
        });
        let status = &scratch.issue("a")["status"];
        assert_eq!(*status == "closed", class.is_none(), "{}", ended.stderr);
        let classes = &scratch.steps_of("a")[0]["failureClasses"];
        if let Some(class) = class {
            let classes = classes.as_array().unwrap();
            assert!(classes.contains(&json!(class)), "{classes:?}");
        }
    }
}

#[test]
fn a_filtered_result_is_refused_where_the_policy_forbids_filters() {
    for (filter, closes) in [("allowed", true), ("forbidden", false)] {
        let scratch = Scratch::with_issues(1, &[issue("a")]);
        govern(&scratch, |policy| {
            policy["setup"] = json!({"preContextFilter": filter});
        });
        let (scratch, ended) = batch_in(scratch, |file| {
            let usage = json!({"filtered": 10, "unfiltered": 100});
            file["evidence"]["toolResults"][0]["facts"] = json!({"tokenUsage": usage});
        });
        let status = &scratch.issue("a")["status"];
        assert_eq!(*status == "closed", closes, "{}", ended.stderr);
    }
}

#[test]
fn a_file_that_binds_other_examples_than_the_operator_is_refused() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    govern(&scratch, |policy| {
        policy["setup"] = json!({"toolExamples": {"read": ["src/a.rs"]}});
    });
    let (scratch, _) = batch_in(scratch, |file| {
        file["evidence"]["callSpec"]["toolExampleDigest"] = json!("sha256:mine");
    });
    assert_ne!(scratch.issue("a")["status"], "closed");
    let classes = &scratch.steps_of("a")[0]["failureClasses"];
    let class = json!("tool.example_digest_mismatch");
    assert!(classes.as_array().unwrap().contains(&class), "{classes}");
}

#[test]
fn a_role_that_a_file_states_itself_is_held_to_its_own_rule() {
    for (role, class) in [
        ("specialist", None),
        ("orchestrator", Some("context.scope_violation")),
    ] {
        let scratch = Scratch::with_issues(1, &[issue("a")]);
        govern(&scratch, |policy| {
            policy["roles"] = json!({"specialist": {"writable": ["src/"]}});
        });
        let (scratch, ended) = batch_in(scratch, |file| {
            file["evidence"]["callSpec"]["orchestrationRole"] = json!(role);
        });
        let status = &scratch.issue("a")["status"];
        assert_eq!(*status == "closed", class.is_none(), "{}", ended.stderr);
        if let Some(class) = class {
            let classes = &scratch.steps_of("a")[0]["failureClasses"];
            let classes = classes.as_array().unwrap();
            assert!(classes.contains(&json!(class)), "{classes:?}");
        }
    }
}

#[test]
fn what_the_operator_states_about_the_set_up_is_bound_whatever_a_file_says() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    govern(&scratch, |policy| {
        policy["setup"] = json!({"evalProfileRef": "profile://ours",
            "evalGatePolicyDigest": "sha256:ours", "redTeamPolicyDigest": "sha256:ours"});
        policy["compaction"] = json!({"allowed": false});
    });
    let (scratch, _) = batch_in(scratch, |file| {
        let spec = &mut file["evidence"]["callSpec"];
        spec["evalProfileRef"] = json!("profile://mine");
        spec["evalGatePolicyDigest"] = json!("sha256:mine");
        spec["redTeamPolicyDigest"] = json!("sha256:mine");
        spec["compactionPolicyDigest"] = json!("sha256:mine");
    });
    assert_eq!(scratch.issue("a")["status"], "closed");
    let spec = &turn(&scratch)["input"]["evidence"]["callSpec"];
    assert_eq!(spec["evalProfileRef"], "profile://ours");
    assert_eq!(spec["evalGatePolicyDigest"], "sha256:ours");
    assert_eq!(spec["redTeamPolicyDigest"], "sha256:ours");
    assert!(spec["compactionPolicyDigest"].is_null(), "{spec}");
}
