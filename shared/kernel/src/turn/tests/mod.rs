//! Tests of the turn: a known answer, tables, the chain, properties.

mod admission;
mod explanation;
mod known_answer;
mod laws;
mod reading;
mod rules;

use super::{EvidenceError, JoinCheckInput, Normalized, ParsedInput, normalize};
use crate::failure::FailureClass;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The wire form of a turn with a success, an error and a discarded result,
/// which is closed and ready for a change.
pub(crate) fn closed() -> Value {
    json!({
        "evidence": {
            "callSpec": {
                "callId": "call-1",
                "modelRef": "model-1",
                "actionMode": "code",
                "executionPattern": "single",
                "normalizerId": "nf.v1",
                "mutationPolicyDigest": "mutation.v1",
                "governancePolicyDigest": "governance.v1",
                "toolRenderProtocolDigest": "render.v1",
                "reminderQueuePolicyDigest": "queue.v1",
                "stateViewPolicyDigest": "view.v1",
                "decompositionPolicyDigest": "decomposition.v1"
            },
            "toolRequests": [
                {"toolCallId": "a", "toolName": "edit"},
                {"toolCallId": "b", "toolName": "fetch"},
                {"toolCallId": "verify", "toolName": "verify"}
            ],
            "toolResults": [
                {"toolCallId": "a", "status": "ok", "resultDigest": "sha256:a"},
                {"toolCallId": "b", "status": "error", "errorCode": "timeout", "retryable": true, "errorMessage": "too slow"},
                {"toolCallId": "verify", "status": "ok", "payload": {"exit": 0}}
            ],
            "toolUse": [
                {"toolCallId": "a", "disposition": "consumed", "resultDigest": "sha256:a", "provenanceRef": "artifact://a"},
                {"toolCallId": "b", "disposition": "discarded", "useReason": "timed out"},
                {"toolCallId": "verify", "disposition": "observed"}
            ],
            "protocolState": {"stopReason": "end_turn", "continuationAllowed": false},
            "toolRender": [
                {"toolCallId": "a", "operatorPayloadDigest": "o", "reminderRenderDigest": "r", "injectionPoint": "tool_response", "policyDigest": "render.v1"},
                {"toolCallId": "b", "operatorPayloadDigest": "o", "reminderRenderDigest": "r", "injectionPoint": "tool_response", "policyDigest": "render.v1"},
                {"toolCallId": "verify", "operatorPayloadDigest": "o", "reminderRenderDigest": "r", "injectionPoint": "tool_response", "policyDigest": "render.v1"}
            ],
            "reminderQueue": [{"queueId": "q", "reducedDigest": "x", "policyDigest": "queue.v1"}],
            "stateViews": [{"viewId": "v", "viewDigest": "x", "policyDigest": "view.v1", "sourceRefs": ["s"]}],
            "sessionRefs": ["session://session-1"],
            "trajectoryRefs": ["trajectory://step/worker.1.bd-1.4"]
        }
    })
}

/// A turn that called nothing: nothing of its context is in scope.
fn silent() -> Value {
    let mut input = closed();
    let evidence = input["evidence"].as_object_mut().unwrap();
    for list in [
        "toolRequests",
        "toolResults",
        "toolUse",
        "toolRender",
        "reminderQueue",
        "stateViews",
    ] {
        evidence.remove(list);
    }
    input
}

/// Sets the value at a JSON pointer; objects on the way are made.
fn set(input: &mut Value, pointer: &str, value: Value) {
    let mut at = input;
    for part in pointer.trim_start_matches('/').split('/') {
        at = match part.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[part],
        };
    }
    *at = value;
}

/// Removes the field or the row at a JSON pointer.
fn remove(input: &mut Value, pointer: &str) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match input.pointer_mut(parent).unwrap() {
        Value::Object(map) => assert!(map.remove(name).is_some(), "{pointer}"),
        Value::Array(rows) => {
            rows.remove(name.parse().unwrap());
        }
        _ => panic!("{pointer}"),
    }
}

fn read(input: Value) -> JoinCheckInput {
    ParsedInput::from_value(input).unwrap().input
}

fn normal(input: Value) -> Normalized {
    normalize(read(input).evidence).unwrap()
}

/// What a command does with bytes: reads and normalises.
fn fault(input: Value) -> String {
    let text = |error: EvidenceError| error.to_string();
    match ParsedInput::from_value(input) {
        Err(error) => text(error),
        Ok(parsed) => text(normalize(parsed.input.evidence.clone()).unwrap_err()),
    }
}

fn classes(texts: &[&str]) -> BTreeSet<FailureClass> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}
