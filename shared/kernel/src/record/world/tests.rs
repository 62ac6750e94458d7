use super::*;
use crate::authority::instruction::InstructionPolicy;
use crate::failure::FailureClass;
use crate::json::canonical;
use crate::record::trajectory::{CrossingResult, StepRow, action};
use crate::turn::tests::closed;
use crate::turn::{JoinCheck, ParsedInput, normalize};
use serde_json::{Value, json};

const STEP: &str = "worker.1.bd-1.4";
const TRANSPORT: &str = "transport.test.v1";

fn policy() -> InstructionPolicy {
    InstructionPolicy::embedded().unwrap()
}

/// A turn that is closed and ready, under the embedded policy.
fn turn() -> Value {
    let mut input = closed();
    let spec = &mut input["evidence"]["callSpec"];
    spec["normalizerId"] = "premath.harness.shell.v1".into();
    spec["mutationPolicyDigest"] = policy().policy_digest().into();
    input
}

fn witness(input: Value) -> Value {
    let parsed = ParsedInput::from_value(input.clone()).unwrap().input;
    let check = JoinCheck::of(normalize(parsed.evidence).unwrap(), &parsed.constraints);
    json!({
        "schema": 1,
        "witnessKind": "premath.harness.turn_witness.v1",
        "stepId": STEP,
        "input": input,
        "joinCheck": check,
        "closeFailureClasses": [],
    })
}

/// The row of the step that left the witness.
fn row(witness: &Value) -> StepRow {
    let now = jiff::Timestamp::UNIX_EPOCH;
    let mut row = StepRow::new(STEP, action::WORKER_LOOP, "completed", now);
    let digest = canonical::sha256_hex(canonical::canonical_value(witness).as_bytes());
    row.issue_id = Some("bd-1".into());
    row.witness_refs
        .insert(format!("ciwitness://{STEP}/turn/{digest}"));
    row.lineage_refs.insert("ctx://issue/bd-1/0");
    row.lineage_refs.insert("cover://worker-loop/bd-1/1");
    row
}

fn context() -> WorkContext {
    let witness = witness(turn());
    let row = row(&witness);
    WorkContext::compute(witness, Some(&row)).unwrap()
}

fn world(edit: impl FnOnce(&mut Value)) -> WorldProfile {
    let mut document = json!({
        "schema": 1,
        "worldKind": "premath.world.v1",
        "worldId": "there",
        "offers": ["turn.admit"],
        "accepts": [{"worldId": "here", "policyDigest": policy().policy_digest()}],
    });
    edit(&mut document);
    WorldProfile::parse(document.to_string().as_bytes()).unwrap()
}

fn here() -> WorldProfile {
    world(|document| document["worldId"] = "here".into())
}

fn carry(context: WorkContext, to: &WorldProfile) -> Result<Carried, NotCarried> {
    context.carry(TRANSPORT, Ok(&here()), Ok(to), policy().policy_digest())
}

fn classes(lost: &NotCarried) -> Vec<&'static str> {
    let classes = lost.witness().failure_classes.iter();
    classes.map(|class| class.as_str()).collect()
}

fn judged(context: WorkContext, to: &WorldProfile) -> Crossing {
    let gate = DestinationGate {
        world: to,
        policy: &policy(),
    };
    carry(context, to).unwrap().judge(&gate).into()
}

#[test]
fn a_turn_is_carried_judged_and_recorded_with_both_witnesses() {
    let crossing = judged(context(), &world(|_| ()));
    assert_eq!(crossing.result(), CrossingResult::Accepted);
    assert!(crossing.failure_classes().is_empty());
    let gate = crossing.gate.as_ref().unwrap();
    let transport = &crossing.transport;
    let document = canonical::value_of(transport);
    assert_eq!(document["witnessClass"], "transport");
    assert_eq!(document["outcome"], "carried");
    assert_eq!(document["contextRef"], "ctx://issue/bd-1/0");
    assert_eq!(canonical::value_of(gate)["witnessClass"], "gate");
    let mapped = transport.mapped_context_ref.as_deref().unwrap();
    assert!(mapped.starts_with("world://here/there/"), "{mapped}");
    assert_eq!(gate.mapped_context_ref.as_deref(), Some(mapped));
    // The same crossing has the same references.
    let again = judged(context(), &world(|_| ()));
    assert_eq!(again, crossing);
}

#[test]
fn each_fault_of_a_transport_has_its_class_and_reaches_no_gate() {
    let all = |edit: &dyn Fn(&mut Value)| carry(context(), &world(edit)).unwrap_err();
    for (edit, class) in [
        (
            (&|d: &mut Value| d["offers"] = json!([])) as &dyn Fn(&mut Value),
            "world_capability_mismatch",
        ),
        (
            &|d: &mut Value| d["accepts"] = json!([]),
            "world_policy_mismatch",
        ),
        (
            &|d: &mut Value| d["accepts"][0]["policyDigest"] = "pol1_0".into(),
            "world_policy_mismatch",
        ),
        (
            &|d: &mut Value| d["accepts"][0]["worldId"] = "elsewhere".into(),
            "world_policy_mismatch",
        ),
        (
            &|d: &mut Value| d["worldId"] = "here".into(),
            "transport_non_composable",
        ),
    ] {
        let lost = all(edit);
        assert_eq!(classes(&lost), [class]);
        let crossing = Crossing::from(lost);
        assert_eq!(crossing.result(), CrossingResult::TransportFailed);
        assert_eq!(crossing.gate, None);
        assert_eq!(crossing.transport.mapped_context_ref, None);
        assert!(crossing.transport.detail.is_some());
    }
    let both = all(&|d| {
        d["offers"] = json!([]);
        d["accepts"] = json!([]);
    });
    assert_eq!(
        classes(&both),
        ["world_capability_mismatch", "world_policy_mismatch"]
    );
}

#[test]
fn a_world_that_is_not_there_and_a_context_that_is_not_known_are_unresolved() {
    let there = world(|_| ());
    let digest = policy().policy_digest().to_owned();
    let lost = context().carry(TRANSPORT, Ok(&here()), Err("no folder"), &digest);
    assert_eq!(
        classes(&lost.unwrap_err()),
        ["transport_context_unresolved"]
    );
    let lost = context().carry(TRANSPORT, Err("no folder"), Ok(&there), &digest);
    assert_eq!(
        classes(&lost.unwrap_err()),
        ["transport_context_unresolved"]
    );
    // Two contexts are none.
    let witness = witness(turn());
    let mut row = row(&witness);
    row.lineage_refs.insert("ctx://issue/bd-2/0");
    let two = WorkContext::compute(witness.clone(), Some(&row)).unwrap();
    let lost = carry(two, &there).unwrap_err();
    assert_eq!(classes(&lost), ["transport_context_unresolved"]);
    let none = WorkContext::compute(witness, None).unwrap();
    let lost = carry(none, &there).unwrap_err();
    assert_eq!(
        classes(&lost),
        [
            "transport_context_unresolved",
            "transport_witness_unverifiable"
        ]
    );
    let lost = carry(context(), &there).unwrap().lost("it went away");
    assert_eq!(classes(&lost), ["transport_context_unresolved"]);
}

#[test]
fn a_witness_that_was_changed_is_not_carried() {
    let there = world(|_| ());
    let written = witness(turn());
    let row_of_it = row(&written);
    let mut changed = written.clone();
    changed["input"]["evidence"]["callSpec"]["modelRef"] = "another".into();
    let context = WorkContext::compute(changed, Some(&row_of_it)).unwrap();
    let lost = carry(context, &there).unwrap_err();
    assert_eq!(classes(&lost), ["transport_witness_unverifiable"]);
    // One that its row names, and that says another digest than its turn's.
    let mut wrong = written;
    wrong["joinCheck"]["witness"]["digests"]["joinSetDigest"] = "sha256:0".into();
    let row_of_it = row(&wrong);
    let context = WorkContext::compute(wrong, Some(&row_of_it)).unwrap();
    let lost = carry(context, &there).unwrap_err();
    assert_eq!(classes(&lost), ["transport_witness_unverifiable"]);
}

#[test]
fn work_is_placed_where_its_turn_could_be_carried_and_nowhere_else() {
    let edits: [fn(&mut Value); 5] = [
        |_| (),
        |world| world["worldId"] = "here".into(),
        |world| world["offers"] = json!(["notes.read"]),
        |world| world["accepts"] = json!([]),
        |world| world["accepts"][0]["policyDigest"] = "pol1_0".into(),
    ];
    for (index, edit) in edits.into_iter().enumerate() {
        let to = world(edit);
        let context = context();
        let policy = policy();
        let placed = may_be_placed(context.lineage(), &here(), &to, policy.policy_digest());
        assert_eq!(placed, index == 0, "{index}");
        assert_eq!(carry(context, &to).is_ok(), placed, "{index}");
    }
}

#[test]
fn a_turn_does_not_cross_back() {
    let witness = witness(turn());
    let mut row = row(&witness);
    row.lineage_refs.insert("world://there/here/0");
    let context = WorkContext::compute(witness, Some(&row)).unwrap();
    let lost = carry(context, &world(|_| ())).unwrap_err();
    assert_eq!(classes(&lost), ["transport_non_composable"]);
}

#[test]
fn a_gate_refuses_by_its_own_policies_and_with_its_own_classes() {
    let refused = |turn: Value, to: &WorldProfile| {
        let witness = witness(turn);
        let row = row(&witness);
        let context = WorkContext::compute(witness, Some(&row)).unwrap();
        let crossing = judged(context, to);
        assert_eq!(crossing.result(), CrossingResult::Rejected);
        assert_eq!(crossing.transport.outcome, TransportOutcome::Carried);
        assert!(crossing.transport.failure_classes.is_empty());
        crossing.failure_classes().clone()
    };
    let there = world(|_| ());
    let mut other_policy = turn();
    other_policy["evidence"]["callSpec"]["mutationPolicyDigest"] = "pol1_0".into();
    let class = FailureClass::MutationPolicyDigestMismatch;
    assert_eq!(refused(other_policy, &there), [class].into());
    let mut other_normalizer = turn();
    other_normalizer["evidence"]["callSpec"]["normalizerId"] = "nf.v1".into();
    let class = FailureClass::InstructionNormalizerNotAllowed;
    assert_eq!(refused(other_normalizer, &there), [class].into());
    // A block of the destination replaces the turn's own.
    let strict = world(|d| {
        d["constraints"] = json!({"protocolConstraints": {"parallelTransportOrderValid": false}});
    });
    let mut lenient = turn();
    lenient["protocolConstraints"] = json!({"parallelTransportOrderValid": true});
    let classes = refused(lenient, &strict);
    assert!(classes.contains(&FailureClass::ProtocolParallelTransportOrderInvalid));
    // Evidence is not a block that a world could give.
    let sly = world(|d| d["constraints"] = json!({"evidence": {}}));
    assert_eq!(judged(context(), &sly).result(), CrossingResult::Accepted);
}

#[test]
fn a_world_may_be_content_with_a_closed_join() {
    let mut unlinked = turn();
    unlinked["evidence"]["sessionRefs"] = json!([]);
    let context = || {
        let witness = witness(unlinked.clone());
        let row = row(&witness);
        WorkContext::compute(witness, Some(&row)).unwrap()
    };
    let crossing = judged(context(), &world(|_| ()));
    assert_eq!(crossing.result(), CrossingResult::Rejected);
    let content = world(|d| d["require"] = "accepted".into());
    let crossing = judged(context(), &content);
    assert_eq!(crossing.result(), CrossingResult::Accepted);
}

#[test]
fn a_document_of_another_kind_than_a_world_s_is_distinguished() {
    let parse = |document: Value| WorldProfile::parse(document.to_string().as_bytes());
    let kind = "premath.world.v1";
    for document in [
        json!([]),
        json!({"schema": 2, "worldKind": kind, "worldId": "a"}),
        json!({"schema": 1, "worldKind": "other", "worldId": "a"}),
        json!({"schema": 1, "worldKind": kind, "worldId": " "}),
        json!({"schema": 1, "worldKind": kind, "worldId": "a", "ofers": []}),
        json!({"schema": 1, "worldKind": kind, "worldId": "a", "require": null}),
        json!({"schema": 1, "worldKind": kind, "worldId": "a", "constraints": []}),
        // A list of the fields' values is not a struct.
        json!([1, kind, "a", [], [], "accepted", {}]),
        json!({"schema": 1, "worldKind": kind, "worldId": "a", "accepts": [["b", "d"]]}),
        json!({"schema": 1, "worldKind": kind, "worldId": "a",
            "accepts": [{"worldId": "b", "policyDigest": "d", "x": 1}]}),
    ] {
        assert!(parse(document.clone()).is_err(), "{document}");
    }
    let twice = r#"{"schema": 1, "worldKind": "premath.world.v1", "worldId": "a", "worldId": "b"}"#;
    assert!(WorldProfile::parse(twice.as_bytes()).is_err());
    let least = parse(json!({"schema": 1, "worldKind": kind, "worldId": "a"})).unwrap();
    assert_eq!(least.require, Demand::ReadyForChange);
    assert!(least.offers.is_empty() && least.accepts.is_empty());
    for document in [json!({}), json!({"witnessKind": "other"})] {
        assert!(WorkContext::compute(document, None).is_err());
    }
}
