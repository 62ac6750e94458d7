//! The chain, from evidence to the right to change an issue.

use super::{classes, closed, read, remove, set, silent};
use crate::authority::{MutationMode, StepIdentity};
use crate::turn::{
    ActionMode, Block, CallSpec, CallSpecRow, ClaimSet, Close, Discover, Evidence,
    ExecutionPattern, JoinCheckInput, JoinClosed, MutationBinding, MutationKind, MutationReady,
    ProtocolState, RequestRow, ResultRow, UseRow,
};
use serde_json::{Value, json};

fn step() -> StepIdentity {
    StepIdentity {
        issue_id: "bd-1".into(),
        worker_id: "worker.1".into(),
        owner: "worker.1".into(),
        lease_id: "lease1_bd-1_worker_1".into(),
        generation: 4,
        session_id: "session-1".into(),
    }
}

fn binding() -> MutationBinding {
    MutationBinding {
        step: step(),
        mutation_policy_digest: "mutation.v1".into(),
        claims: ClaimSet::operator_override(),
        verification: Some("verify".into()),
        normalizer: None,
        instruction_ref: None,
    }
}

fn join(input: &JoinCheckInput) -> JoinClosed {
    CallSpec::bind(input).unwrap().joined().unwrap()
}

fn admit<C: MutationKind>(
    input: Value,
    binding: &MutationBinding,
) -> Result<MutationReady<C>, Vec<String>> {
    join(&read(input)).admit::<C>(binding).map_err(|refused| {
        refused
            .classes()
            .iter()
            .map(|class| class.as_str().to_owned())
            .collect()
    })
}

fn refused<C: MutationKind>(input: Value, binding: &MutationBinding, expected: &[&str]) {
    let found = admit::<C>(input, binding).unwrap_err();
    assert_eq!(found, expected);
}

#[test]
fn a_closed_turn_that_is_verified_closes_its_issue() {
    let ready = admit::<Close>(closed(), &binding()).unwrap();
    assert_eq!(ready.step(), &step());
    assert_eq!(
        ready.witness().join_set_digest,
        join(&read(closed())).digests().join_set_digest
    );
    let text = ready.witness_ref();
    let digest = text.strip_prefix("mutation-ready://bd-1/close/").unwrap();
    assert_eq!(digest.len(), 64);
    assert_eq!(digest, crate::json::canonical::ref_digest(ready.witness()));
    assert_eq!(
        ready.witness().verification_call_id.as_deref(),
        Some("verify")
    );
}

#[test]
fn every_state_shows_its_rows() {
    let spec = CallSpec::bind(&read(closed())).unwrap();
    assert_eq!(spec.call_spec().call_id, "call-1");
    let requests = spec.requests().unwrap();
    assert_eq!(requests.rows().len(), 3);
    let results = requests.results().unwrap();
    assert_eq!(results.rows().len(), 3);
    let uses = results.tool_use().unwrap();
    assert_eq!(uses.rows().len(), 3);
    let joined = uses.join().unwrap();
    assert_eq!(joined.normalized().call_spec.call_id, "call-1");
    assert_eq!(&joined.normalized().digests, joined.digests());
}

#[test]
fn a_refusal_returns_the_state_with_all_classes() {
    let mut input = closed();
    remove(&mut input, "/evidence/toolRequests/0");
    remove(&mut input, "/evidence/toolUse/2");
    let requests = CallSpec::bind(&read(input)).unwrap().requests().unwrap();
    let refused = requests.results().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the turn is refused: tool.join_incomplete, tool.result_orphan, tool.use_missing"
    );
    assert_eq!(refused.state().rows().len(), 2);
    let found = refused.classes().clone();
    assert_eq!(
        found,
        classes(&[
            "tool.join_incomplete",
            "tool.result_orphan",
            "tool.use_missing"
        ])
    );
    let again = refused.into_state().results().unwrap_err();
    assert_eq!(again.state().rows().len(), 2);
    assert_eq!(again.into_classes(), found);
}

/// Walks a turn as far as its states admit; returns the last one.
fn reached(input: Value) -> &'static str {
    let spec = CallSpec::bind(&read(input)).unwrap();
    let Ok(requests) = spec.requests() else {
        return "CallSpec";
    };
    let Ok(results) = requests.results() else {
        return "ToolRequests";
    };
    let Ok(uses) = results.tool_use() else {
        return "ToolResults";
    };
    uses.join().map_or("ToolUse", |_| "JoinClosed")
}

#[test]
fn a_turn_reaches_no_state_whose_promise_it_breaks() {
    assert_eq!(reached(closed()), "JoinClosed");
    let mut input = closed();
    set(
        &mut input,
        "/evidence/toolRequests/0/facts",
        json!({"parentCallId": "none"}),
    );
    assert_eq!(reached(input), "CallSpec");
    let mut input = closed();
    remove(&mut input, "/evidence/toolResults/0");
    assert_eq!(reached(input), "ToolRequests");
    let mut input = closed();
    remove(&mut input, "/evidence/toolUse/0");
    assert_eq!(reached(input), "ToolResults");
    let mut input = closed();
    let open = json!({"branches": [{"branchId": "one", "joinClosed": false}]});
    set(&mut input, "/evidence/facts", open);
    assert_eq!(reached(input), "ToolUse");
}

#[test]
fn closing_needs_a_verification_that_passed() {
    for verification in [None, Some(" "), Some("nobody"), Some("b")] {
        let binding = MutationBinding {
            verification: verification.map(str::to_owned),
            ..binding()
        };
        refused::<Close>(closed(), &binding, &["check_failed"]);
        assert!(admit::<Block>(closed(), &binding).is_ok());
        assert!(admit::<Discover>(closed(), &binding).is_ok());
    }
}

#[test]
fn an_escalation_turn_blocks_and_discovers_but_never_closes() {
    let binding = MutationBinding {
        verification: None,
        ..binding()
    };
    let block = admit::<Block>(silent(), &binding).unwrap();
    let discover = admit::<Discover>(silent(), &binding).unwrap();
    assert!(
        block
            .witness_ref()
            .starts_with("mutation-ready://bd-1/block/")
    );
    assert!(
        discover
            .witness_ref()
            .starts_with("mutation-ready://bd-1/discover/")
    );
    assert_eq!(block.witness().verification_call_id, None);
    refused::<Close>(silent(), &binding, &["check_failed"]);
}

#[test]
fn the_policy_must_be_the_active_one() {
    let binding = MutationBinding {
        mutation_policy_digest: "mutation.v2".into(),
        ..binding()
    };
    refused::<Close>(closed(), &binding, &["mutation.policy_digest_mismatch"]);
    refused::<Block>(silent(), &binding, &["mutation.policy_digest_mismatch"]);
}

#[test]
fn the_evidence_must_be_bound_to_the_normaliser_of_the_instruction() {
    let bound = |normalizer: &str| MutationBinding {
        normalizer: Some(normalizer.into()),
        ..binding()
    };
    assert!(admit::<Close>(closed(), &bound("nf.v1")).is_ok());
    let other = bound("nf.v2");
    refused::<Close>(closed(), &other, &["instruction_normalizer_not_allowed"]);
    assert!(admit::<Close>(closed(), &other.normalized_by("nf.v1")).is_ok());
    assert_eq!(binding().normalized_by("nf.v1").normalizer, None);
}

#[test]
fn a_mode_gives_its_policy_and_its_claims() {
    let now = "2026-03-05T10:00:00Z".parse().unwrap();
    let mode = MutationMode::human_override("because", None, now).unwrap();
    let binding = MutationBinding::of_mode(step(), &mode, Some("verify".into()));
    let mut input = closed();
    set(
        &mut input,
        "/evidence/callSpec/mutationPolicyDigest",
        json!(mode.policy_digest()),
    );
    assert!(admit::<Close>(input, &binding).is_ok());
    refused::<Close>(closed(), &binding, &["mutation.policy_digest_mismatch"]);
}

#[test]
fn the_claims_must_cover_the_change() {
    let claiming = |claims: &[&str]| MutationBinding {
        claims: ClaimSet::named(claims),
        ..binding()
    };
    let missing = &["mutation.capability_claim_missing"];
    for none in [
        &[][..],
        &["capabilities.change_morphisms.issue_claim"],
        &["capabilities.change_morphisms.issue_updates"],
        &["capabilities"],
        &[""],
    ] {
        refused::<Close>(closed(), &claiming(none), missing);
        refused::<Discover>(closed(), &claiming(none), missing);
    }
    for all in [
        "capabilities.change_morphisms",
        " capabilities.change_morphisms.all ",
    ] {
        assert!(admit::<Close>(closed(), &claiming(&[all])).is_ok());
        assert!(admit::<Discover>(closed(), &claiming(&[all])).is_ok());
    }
    let update = claiming(&["capabilities.change_morphisms.issue_update"]);
    assert!(admit::<Close>(closed(), &update).is_ok());
    assert!(admit::<Block>(closed(), &update).is_ok());
    refused::<Discover>(closed(), &update, missing);
    let discover = claiming(&["capabilities.change_morphisms.issue_discover"]);
    assert!(admit::<Discover>(closed(), &discover).is_ok());
    refused::<Block>(closed(), &discover, missing);
}

#[test]
fn the_witnesses_must_be_of_this_very_step() {
    let missing = &["mutation.use_evidence_missing"];
    for (list, wrong) in [
        ("sessionRefs", "session://session-2"),
        ("sessionRefs", "session://"),
        ("trajectoryRefs", "trajectory://step/worker.1.bd-1.3"),
        ("trajectoryRefs", "trajectory://step/worker.1.bd-1.40"),
        ("trajectoryRefs", "worker.1.bd-1.4"),
    ] {
        let mut input = closed();
        set(&mut input, &format!("/evidence/{list}"), json!([wrong]));
        refused::<Close>(input.clone(), &binding(), missing);
        let right = closed()["evidence"][list][0].clone();
        set(
            &mut input,
            &format!("/evidence/{list}"),
            json!([wrong, right]),
        );
        assert!(admit::<Close>(input, &binding()).is_ok());
    }
    let mut nameless = binding();
    nameless.step.session_id = "".into();
    let mut input = closed();
    set(&mut input, "/evidence/sessionRefs", json!(["session://"]));
    refused::<Close>(input, &nameless, missing);
}

#[test]
fn a_hostile_issue_id_is_encoded_in_every_reference() {
    let mut hostile = binding();
    hostile.step.issue_id = "../x y".into();
    let mut input = closed();
    set(
        &mut input,
        "/evidence/trajectoryRefs",
        json!([hostile.trajectory_ref()]),
    );
    assert_eq!(
        hostile.trajectory_ref(),
        "trajectory://step/worker.1...%2Fx%20y.4"
    );
    let ready = admit::<Block>(input, &hostile).unwrap();
    assert!(
        ready
            .witness_ref()
            .starts_with("mutation-ready://..%2Fx%20y/block/")
    );
}

#[test]
fn what_the_join_lets_pass_a_change_may_not() {
    let mut input = closed();
    set(
        &mut input,
        "/evidence/callSpec/executionPattern",
        json!("parallel"),
    );
    set(&mut input, "/evidence/handoff", json!({"target": "w"}));
    set(
        &mut input,
        "/evidence/toolUse/0/resultDigest",
        json!("sha256:b"),
    );
    remove(&mut input, "/evidence/toolUse/1/useReason");
    let binding = MutationBinding {
        mutation_policy_digest: "mutation.v2".into(),
        claims: ClaimSet::named::<&str>([]),
        verification: None,
        ..binding()
    };
    refused::<Close>(
        input,
        &binding,
        &[
            "check_failed",
            "coordination.decomposition_policy_violation",
            "handoff.target_not_allowed",
            "mutation.capability_claim_missing",
            "mutation.policy_digest_mismatch",
            "mutation.use_evidence_missing",
            "tool.use_unknown_result",
        ],
    );
}

#[test]
fn the_witness_ref_moves_with_every_fact() {
    let reference = |edit: fn(&mut MutationBinding)| {
        let mut binding = binding();
        edit(&mut binding);
        let mut input = closed();
        set(
            &mut input,
            "/evidence/sessionRefs",
            json!([binding.session_ref()]),
        );
        set(
            &mut input,
            "/evidence/trajectoryRefs",
            json!([binding.trajectory_ref()]),
        );
        admit::<Close>(input, &binding).unwrap().witness_ref()
    };
    let base = reference(|_| {});
    assert_eq!(base, reference(|_| {}));
    for edit in [
        (|b| b.step.generation = 5) as fn(&mut MutationBinding),
        |b| b.step.lease_id = "lease2".into(),
        |b| b.step.owner.push('x'),
        |b| b.step.worker_id = "worker.2".into(),
        |b| b.step.session_id = "session-2".into(),
        |b| b.verification = Some("a".into()),
        |b| b.instruction_ref = Some("instruction://a/b".into()),
    ] {
        assert_ne!(base, reference(edit));
    }
}

#[test]
fn evidence_built_by_hand_closes_an_issue() {
    let now = "2026-03-05T10:00:00Z".parse().unwrap();
    let mode = MutationMode::human_override("because", None, now).unwrap();
    let binding = MutationBinding::of_mode(step(), &mode, Some("verify".into()));
    let spec = CallSpecRow {
        call_id: step().step_id().into(),
        model_ref: "shell".into(),
        action_mode: ActionMode::Code,
        execution_pattern: ExecutionPattern::Single,
        normalizer_id: "shell.v1".into(),
        mutation_policy_digest: binding.mutation_policy_digest.clone(),
        governance_policy_digest: "g".into(),
        tool_render_protocol_digest: "r".into(),
        reminder_queue_policy_digest: "q".into(),
        state_view_policy_digest: "v".into(),
        decomposition_policy_digest: "d".into(),
        text_adapter_profile: None,
        ..CallSpecRow::default()
    };
    let mut evidence = Evidence::new(spec, ProtocolState::ended("end_turn"));
    evidence.tool_requests = vec![
        RequestRow::new("work", "shell"),
        RequestRow::new("verify", "shell"),
    ];
    evidence.tool_results = vec![
        ResultRow::ok("work", "sha256:w"),
        ResultRow::ok("verify", "sha256:v"),
    ];
    evidence.tool_use = vec![UseRow::observed("work"), UseRow::observed("verify")];
    evidence.session_refs.insert(binding.session_ref());
    evidence.trajectory_refs.insert(binding.trajectory_ref());
    let ready: MutationReady<Close> = join(&JoinCheckInput::new(evidence))
        .admit(&binding)
        .unwrap();
    assert_eq!(ready.witness().mutation_policy_digest, mode.policy_digest());
}
