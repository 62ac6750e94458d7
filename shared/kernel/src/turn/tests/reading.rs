//! What is read, how it is normalised, and what is an input error.

use super::{closed, fault, normal, read, remove, set};
use crate::json::canonical::{self, value_of};
use crate::turn::{EvidenceError, ParsedInput};
use serde_json::{Value, json};

#[test]
#[expect(clippy::too_many_lines, reason = "tests: a table is read as a whole")]
fn a_fault_names_its_place_and_what_would_be_right() {
    for (pointer, value, expected) in [
        (
            "/evidence/callSpec/callId",
            json!("  "),
            "evidence.callSpec.callId: must be a non-empty string",
        ),
        (
            "/evidence/toolRequests/1/toolName",
            json!(4),
            "evidence.toolRequests[1].toolName: must be a non-empty string, not a number",
        ),
        (
            "/evidence/toolRequests/1/toolCallId",
            Value::Null,
            "evidence.toolRequests[1].toolCallId: must be a non-empty string, not null",
        ),
        (
            "/evidence/callSpec/actionMode",
            json!("voice"),
            "evidence.callSpec.actionMode: must be one of code, json, text, not \"voice\"",
        ),
        (
            "/evidence/toolResults/0/status",
            json!("done"),
            "evidence.toolResults[0].status: must be one of ok, error, not \"done\"",
        ),
        (
            "/evidence/toolUse",
            Value::Null,
            "evidence.toolUse: must be a list, not null",
        ),
        (
            "/evidence/toolUse/0",
            json!([]),
            "evidence.toolUse[0]: must be an object, not a list",
        ),
        (
            "/evidence/protocolState/continuationAllowed",
            Value::Null,
            "evidence.protocolState.continuationAllowed: must be true or false, not null",
        ),
        (
            "/evidence/stateViews/0/sourceRefs",
            json!(["a", 1]),
            "evidence.stateViews[0].sourceRefs[1]: must be a string, not a number",
        ),
        (
            "/governanceProfile",
            json!({}),
            "governanceProfile.claimed: is missing: must be true or false",
        ),
        (
            "/evidence",
            json!("x"),
            "evidence: must be an object, not a string",
        ),
    ] {
        let mut input = closed();
        set(&mut input, pointer, value);
        assert_eq!(fault(input), format!("{expected}"));
    }
    assert_eq!(fault(json!([])), "input: must be an object, not a list");
}

#[test]
fn names_that_are_alike_in_normal_form_are_refused() {
    for (block, names, place) in [
        (
            "riskConstraints",
            json!({"controlProfiles": {"LOW": "a", "low": "b"}}),
            "riskConstraints.controlProfiles.low",
        ),
        (
            "toolConstraints",
            json!({"allowedCallers": {"edit": [], "edit ": []}}),
            "toolConstraints.allowedCallers.\"edit \"",
        ),
    ] {
        let mut input = closed();
        input[block] = names;
        assert_eq!(
            fault(input),
            format!("{place}: duplicates another name after normalisation")
        );
    }
}

#[test]
fn every_required_field_is_required() {
    for pointer in [
        "/evidence",
        "/evidence/callSpec",
        "/evidence/protocolState",
        "/evidence/protocolState/stopReason",
        "/evidence/callSpec/callId",
        "/evidence/callSpec/modelRef",
        "/evidence/callSpec/actionMode",
        "/evidence/callSpec/executionPattern",
        "/evidence/callSpec/normalizerId",
        "/evidence/callSpec/mutationPolicyDigest",
        "/evidence/callSpec/governancePolicyDigest",
        "/evidence/callSpec/toolRenderProtocolDigest",
        "/evidence/callSpec/reminderQueuePolicyDigest",
        "/evidence/callSpec/stateViewPolicyDigest",
        "/evidence/callSpec/decompositionPolicyDigest",
        "/evidence/toolRequests/0/toolCallId",
        "/evidence/toolRequests/0/toolName",
        "/evidence/toolResults/0/toolCallId",
        "/evidence/toolUse/0/toolCallId",
        "/evidence/toolUse/0/disposition",
        "/evidence/toolRender/0/operatorPayloadDigest",
        "/evidence/toolRender/0/reminderRenderDigest",
        "/evidence/toolRender/0/injectionPoint",
        "/evidence/toolRender/0/policyDigest",
        "/evidence/reminderQueue/0/queueId",
        "/evidence/reminderQueue/0/reducedDigest",
        "/evidence/reminderQueue/0/policyDigest",
        "/evidence/stateViews/0/viewId",
        "/evidence/stateViews/0/viewDigest",
        "/evidence/stateViews/0/policyDigest",
    ] {
        let mut input = closed();
        remove(&mut input, pointer);
        let (_, name) = pointer.rsplit_once('/').unwrap();
        let text = fault(input);
        assert!(text.contains(&format!("{name}: is missing")), "{text}");
        if name != "evidence" && name != "callSpec" && name != "protocolState" {
            let mut input = closed();
            set(&mut input, pointer, json!(" "));
            assert!(fault(input).contains(&format!("{name}: ")), "{pointer}");
        }
    }
}

#[test]
fn bytes_that_are_not_a_document_are_refused() {
    let deep = "[".repeat(100_000);
    let twice =
        closed()
            .to_string()
            .replacen(r#""status":"ok""#, r#""status":"error","status":"ok""#, 1);
    for bytes in ["", "{", "{} {}", &deep, "\u{feff}{}", &twice] {
        let error = ParsedInput::from_slice(bytes.as_bytes()).unwrap_err();
        assert!(matches!(error, EvidenceError::NotJson(_)), "{error}");
    }
    assert!(ParsedInput::from_slice(b"\xff").is_err());
}

#[test]
fn a_payload_with_a_key_twice_has_no_digest() {
    let text = closed()
        .to_string()
        .replacen(r#"{"exit":0}"#, r#"{"exit":1,"exit":0}"#, 1);
    let error = ParsedInput::from_slice(text.as_bytes()).unwrap_err();
    assert!(matches!(error, EvidenceError::NotJson(_)), "{error}");
}

#[test]
fn unknown_fields_are_ignored_and_named_once() {
    let mut input = closed();
    set(&mut input, "/colour", json!("red"));
    set(&mut input, "/evidence/callSpec/a b", json!(1));
    for index in 0..3 {
        set(
            &mut input,
            &format!("/evidence/toolRequests/{index}/colour"),
            json!("red"),
        );
    }
    let parsed = ParsedInput::from_value(input).unwrap();
    assert_eq!(parsed.input, read(closed()));
    assert_eq!(
        Vec::from_iter(parsed.unknown_fields),
        [
            "colour",
            "evidence.callSpec.\"a b\"",
            "evidence.toolRequests[].colour"
        ]
    );
}

#[test]
fn rows_of_one_key_must_agree() {
    let mut input = closed();
    let rows = input["evidence"]["toolRequests"].as_array_mut().unwrap();
    rows.push(json!({"toolCallId": " a ", "toolName": "edit", "callerId": ""}));
    assert_eq!(normal(input.clone()), normal(closed()));
    set(&mut input, "/evidence/toolRequests/3/toolName", json!("rm"));
    let text = fault(input);
    assert!(
        text.contains("evidence.toolRequests[3].toolCallId: \"a\" repeats an earlier row"),
        "{text}"
    );
}

#[test]
fn results_normalise_as_the_contract_says() {
    let row = |row: Value| {
        let mut input = closed();
        set(&mut input, "/evidence/toolResults/1", row);
        value_of(&normal(input).tool_results[1])
    };
    let digest = |text: &str| format!("sha256:{}", canonical::sha256_hex(text.as_bytes()));
    assert_eq!(
        row(json!({"toolCallId": "b", "payload": {"z": 1, "a": [1.5, null]}})),
        json!({"toolCallId": "b", "status": "ok", "resultDigest": digest(r#"{"a":[1.5,null],"z":1}"#)})
    );
    assert_eq!(
        row(json!({"toolCallId": "b", "payload": null, "status": null})),
        json!({"toolCallId": "b", "status": "ok"})
    );
    assert_eq!(
        row(json!({"toolCallId": "b", "status": " ERROR ", "resultDigest": " "})),
        json!({"toolCallId": "b", "status": "error",
            "error": {"errorCode": "unknown_error", "retryable": false, "errorMessageDigest": digest("")}})
    );
    assert_eq!(
        row(
            json!({"toolCallId": "b", "rawError": {"code": "c", "retryable": true, "errorMessage": " m ", "message": "n"}})
        ),
        json!({"toolCallId": "b", "status": "error",
            "error": {"errorCode": "c", "retryable": true, "errorMessageDigest": digest("m")}})
    );
    // The first key that is present counts for the normal form, also a useless one.
    assert_eq!(
        row(
            json!({"toolCallId": "b", "rawError": {"errorCode": 5, "code": "c", "retryable": true}})
        ),
        json!({"toolCallId": "b", "status": "error",
            "error": {"errorCode": "unknown_error", "retryable": true, "errorMessageDigest": digest("")}})
    );
    assert_eq!(
        row(json!({"toolCallId": "b", "retryable": false})),
        json!({"toolCallId": "b", "status": "error",
            "error": {"errorCode": "unknown_error", "retryable": false, "errorMessageDigest": digest("")}})
    );
}

#[test]
fn further_fields_enter_the_digest_only_where_present() {
    let plain = normal(closed()).digests.call_spec_digest;
    for (name, value) in [
        ("riskTier", json!(null)),
        ("stopPolicy", json!(" ")),
        ("nobodyKnows", json!("x")),
        ("textAdapterProfile", json!("")),
    ] {
        let mut input = closed();
        input["evidence"]["callSpec"][name] = value;
        assert_eq!(normal(input).digests.call_spec_digest, plain, "{name}");
    }
    let with = |name: &str, value: Value| {
        let mut input = closed();
        input["evidence"]["callSpec"][name] = value;
        normal(input).digests.call_spec_digest
    };
    assert_ne!(with("riskTier", json!("low")), plain);
    assert_eq!(
        with("riskTier", json!(" LOW ")),
        with("riskTier", json!("low"))
    );
    assert_ne!(
        with("evalProfileRef", json!("A")),
        with("evalProfileRef", json!("a"))
    );
    assert_ne!(with("textAdapterProfile", json!("t")), plain);
}

#[test]
fn facts_of_a_request_enter_its_digest_only_where_present() {
    let with = |facts: Value| {
        let mut input = closed();
        input["evidence"]["toolRequests"][0]["facts"] = facts;
        normal(input).digests.request_set_digest
    };
    let plain = normal(closed()).digests.request_set_digest;
    for (name, nothing, value) in [
        ("inputDigest", json!(" "), json!("sha256:i")),
        ("sourceRef", Value::Null, json!("stream://line/1/x")),
        ("synthesized", json!(false), json!(true)),
    ] {
        assert_eq!(with(json!({name: nothing})), plain, "{name}");
        assert_ne!(with(json!({name: value})), plain, "{name}");
    }
}

#[test]
fn spellings_of_a_disposition_digest_alike() {
    let with = |word: &str| {
        let mut input = closed();
        set(&mut input, "/evidence/toolUse/1/disposition", json!(word));
        normal(input).digests.use_set_digest
    };
    assert_eq!(with("discarded"), with(" Discarded_With_Reason"));
    assert_eq!(with("observed"), with("OBSERVED_ONLY"));
    assert_ne!(with("observed"), with("retry_scheduled"));
}

#[test]
fn an_input_reads_back_from_its_own_document() {
    let mut full = closed();
    set(&mut full, "/evidence/callSpec/riskTier", json!("low"));
    set(
        &mut full,
        "/evidence/handoff",
        json!({"target": "t", "returnPathRef": "r"}),
    );
    set(
        &mut full,
        "/governanceProfile",
        json!({"claimed": true, "policyProvenance": {"pinned": true}}),
    );
    set(
        &mut full,
        "/handoffConstraints",
        json!({"allowedTargets": ["t"]}),
    );
    set(
        &mut full,
        "/truncationConstraints",
        json!({"required": true}),
    );
    set(&mut full, "/protocolConstraints", json!({}));
    set(
        &mut full,
        "/decompositionConstraints",
        json!({"admissible": true}),
    );
    for input in [read(closed()), read(full)] {
        let text = serde_json::to_vec(&input).unwrap();
        let again = ParsedInput::from_slice(&text).unwrap();
        assert_eq!(again.input, input);
        assert!(again.unknown_fields.is_empty());
    }
}
