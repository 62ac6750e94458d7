use crate::json::canonical::value_of;
use crate::turn::{ParsedInput, join_check};
use serde_json::{Value, json};

fn known() -> Value {
    serde_json::from_str(include_str!("known_answer.json")).unwrap()
}

#[test]
fn the_known_input_gives_the_ten_known_digests() {
    let known = known();
    let bytes = known["input"].to_string().into_bytes();
    let parsed = ParsedInput::from_slice(&bytes).unwrap();
    let answer = value_of(&join_check(&parsed.input).unwrap());
    assert_eq!(answer["witness"]["digests"], known["digests"]);
    assert_eq!(answer["normalized"]["digests"], known["digests"]);
    assert_eq!(known["digests"].as_object().unwrap().len(), 10);
    assert!(parsed.unknown_fields.is_empty());
}

#[test]
fn the_known_input_is_accepted_but_not_ready_for_a_change() {
    let parsed = ParsedInput::from_value(known()["input"].clone()).unwrap();
    let answer = value_of(&join_check(&parsed.input).unwrap());
    assert_eq!(answer["action"], "harness-join-check");
    assert_eq!(answer["result"], "accepted");
    assert_eq!(answer["joinClosed"], true);
    assert_eq!(answer["failureClasses"], json!([]));
    assert_eq!(answer["mutationReady"], false);
    assert_eq!(
        answer["mutationFailureClasses"],
        json!([
            "coordination.decomposition_policy_violation",
            "handoff.target_not_allowed",
            "mutation.use_evidence_missing"
        ])
    );
}

#[test]
fn the_answer_has_the_shape_of_the_contract() {
    let parsed = ParsedInput::from_value(known()["input"].clone()).unwrap();
    let answer = value_of(&join_check(&parsed.input).unwrap());
    let keys =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(
        keys(&answer),
        [
            "action",
            "failureClasses",
            "joinClosed",
            "mutationFailureClasses",
            "mutationReady",
            "normalized",
            "result",
            "witness"
        ]
    );
    assert_eq!(
        keys(&answer["witness"]),
        [
            "digests",
            "joinInput",
            "mutationInput",
            "schema",
            "witnessKind"
        ]
    );
    let normalized = &answer["normalized"];
    assert_eq!(normalized["schema"], 1);
    assert_eq!(
        normalized["kind"],
        "premath.harness.typestate_normalized.v1"
    );
    assert_eq!(
        normalized["joinState"],
        json!({"requestedCallIds": ["tc-1"], "resultCallIds": ["tc-1"], "usedCallIds": ["tc-1"], "joinClosed": true})
    );
    assert_eq!(
        normalized["contextState"],
        json!({
            "renderCallIds": ["tc-1"], "queueIds": ["queue/default"], "stateViewIds": ["state/latest"],
            "queueReductionPresent": true, "stateViewPresent": true, "renderPolicyValid": true,
            "queuePolicyValid": true, "stateViewPolicyValid": true, "continuationContextReady": true
        })
    );
}
