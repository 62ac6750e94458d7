//! Properties: what never changes a digest, what is always refused, and that
//! nothing panics.

use super::{closed, normal, read};
use crate::failure::FailureClass;
use crate::turn::{
    Block, CallSpec, ClaimSet, Constraints, MutationBinding, ParsedInput, explain, join_check,
    join_classes, mutation_classes, normalize,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A closed turn of `n` calls, each ended, used and shown in its own way.
#[expect(clippy::too_many_lines, reason = "tests: a table is read as a whole")]
fn turn(ways: &[(u8, u8)]) -> Value {
    let mut input = closed();
    let evidence = &mut input["evidence"];
    let mut lists = [const { Vec::<Value>::new() }; 4];
    for (index, (end, use_)) in ways.iter().enumerate() {
        let id = format!("call-{index:03}");
        let mut request =
            json!({"toolCallId": id, "toolName": format!("tool-{end}"), "callerId": "me"});
        if end % 3 == 0 {
            request["facts"] = json!({"callGroup": "g", "actionId": id});
        }
        lists[0].push(request);
        lists[1].push(match end % 4 {
            0 => json!({"toolCallId": id, "status": "ok", "resultDigest": format!("sha256:{index}")}),
            1 => json!({"toolCallId": id, "payload": {"n": index, "of": [end, null]}}),
            2 => json!({"toolCallId": id, "status": "error", "errorCode": "e", "retryable": false, "errorMessage": "m"}),
            _ => json!({"toolCallId": id, "rawError": {"code": "e", "retryable": true, "message": "m"}}),
        });
        lists[2].push(match use_ % 4 {
            0 => json!({"toolCallId": id, "disposition": "consumed", "provenanceRef": "p"}),
            1 => json!({"toolCallId": id, "disposition": "observed"}),
            2 => json!({"toolCallId": id, "disposition": "discarded", "useReason": "r"}),
            _ => json!({"toolCallId": id, "disposition": "retry_scheduled"}),
        });
        lists[3].push(
            json!({"toolCallId": id, "operatorPayloadDigest": "o", "reminderRenderDigest": "r",
            "injectionPoint": "tool_response", "policyDigest": "render.v1"}),
        );
    }
    for row in &mut lists[1] {
        row["facts"] = json!({
            "payloadBytes": 7, "provenanceRef": "command://x",
            "artifactWrites": [{"path": "b", "digest": "d"}, {"path": "a", "digest": "d"}],
            "shell": {"workdir": "/w", "sandboxRef": "s", "commandDigest": "d"},
        });
    }
    evidence["callSpec"]["riskTier"] = json!("low");
    evidence["callSpec"]["toolChoice"] = json!("auto");
    evidence["callSpec"]["stopPolicy"] = json!({"checkpoint": "every_turn", "maxTurns": 3});
    evidence["facts"] = json!({
        "turn": 1,
        "checkpointRef": "session://looked",
        "guardrails": (0..3).map(|n| json!({
            "sequence": n, "stage": (["pre_flight", "input", "output"][n]), "guardrailId": "g",
            "triggered": false, "threshold": 0.5,
        })).collect::<Vec<_>>(),
        "transport": ways.iter().enumerate().flat_map(|(index, _)| ["call", "output"].map(|event| json!({
            "sequence": 2 * index + usize::from(event == "output"), "event": event,
            "toolCallId": format!("call-{index:03}"),
        }))).collect::<Vec<_>>(),
        "branches": [{"branchId": "a", "joinClosed": true}, {"branchId": "b", "joinClosed": true}],
        "scopeAccesses": [{"ref": "r", "access": "read"}, {"ref": "r", "access": "write"}],
        "trace": {"mode": "dashboard", "traceRefs": ["t", "s"]},
    });
    for (name, rows) in ["toolRequests", "toolResults", "toolUse", "toolRender"]
        .into_iter()
        .zip(lists)
    {
        evidence[name] = Value::Array(rows);
    }
    input["riskConstraints"] = json!({"controlProfiles": {"low": "profile://low"}});
    input
}

fn ways(least: usize) -> impl Strategy<Value = Vec<(u8, u8)>> {
    proptest::collection::vec(any::<(u8, u8)>(), least..8)
}

/// The fields whose letter case counts for nothing.
const WORDS: &[&str] = &[
    "actionMode",
    "executionPattern",
    "status",
    "disposition",
    "stopReason",
    "injectionPoint",
    "riskTier",
    "toolChoice",
    "checkpoint",
    "stage",
    "event",
    "access",
    "mode",
];

/// Says the same in other bytes, as decided by a stream of choices.
fn disturb(value: &mut Value, name: &str, choices: &mut impl FnMut(usize) -> usize) {
    const SPACES: &[&str] = &["", " ", "\t", "\n ", "\u{a0}"];
    match value {
        // What a payload holds is its own.
        _ if name == "payload" => {}
        Value::String(text) => {
            if WORDS.contains(&name) && choices(2) == 1 {
                *text = text.to_ascii_uppercase();
            }
            *text = format!("{}{text}{}", SPACES[choices(5)], SPACES[choices(5)]);
        }
        Value::Array(rows) => {
            for row in rows.iter_mut() {
                disturb(row, name, choices);
            }
            for _ in 0..choices(3) {
                if !rows.is_empty() {
                    let mut again = rows[choices(rows.len())].clone();
                    disturb(&mut again, name, choices);
                    rows.push(again);
                }
            }
            for index in (1..rows.len()).rev() {
                rows.swap(index, choices(index + 1));
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                disturb(value, name, choices);
            }
            for (of, absent) in [
                ("toolName", "schemaDigest"),
                ("toolName", "searchRefDigest"),
                ("disposition", "useReason"),
                ("guardrailId", "modelRef"),
                ("callId", "evalProfileRef"),
                ("callId", "parallelPolicy"),
                ("checkpointRef", "compaction"),
                ("payloadBytes", "parentCallId"),
            ] {
                if fields.contains_key(of) && !fields.contains_key(absent) && choices(2) == 1 {
                    let null = ["compaction"].contains(&absent);
                    let empty =
                        [json!(null), json!(" ")][if null { 0 } else { choices(2) }].clone();
                    fields.insert(absent.into(), empty);
                }
            }
        }
        _ => {}
    }
}

fn stream(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % below.max(1)
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
        prop_oneof![
            Just("ok"),
            Just("error"),
            Just("text"),
            Just("consumed"),
            Just("a")
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let name = prop_oneof![
            Just("evidence".to_owned()),
            Just("callSpec".to_owned()),
            Just("toolCallId".to_owned()),
            Just("rawError".to_owned()),
            Just("status".to_owned()),
            ".{0,4}",
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((name, inner), 0..4)
                .prop_map(|fields| Value::Object(Map::from_iter(fields))),
        ]
    })
}

/// Every JSON pointer of a document.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(rows) => {
            for (index, row) in rows.iter().enumerate() {
                pointers(row, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                pointers(value, &format!("{at}/{name}"), found);
            }
        }
        _ => {}
    }
}

/// Walks an input as far as it goes.
fn walk(input: Value) {
    let Ok(parsed) = ParsedInput::from_value(input) else {
        return;
    };
    let Ok(spec) = CallSpec::bind(&parsed.input) else {
        return;
    };
    let report = join_check(&parsed.input).unwrap();
    match spec.joined() {
        Err(classes) => assert_eq!(report.failure_classes, classes),
        Ok(joined) => {
            assert!(report.join_closed);
            let binding = MutationBinding {
                step: crate::authority::StepIdentity {
                    issue_id: "bd-1".into(),
                    worker_id: "worker.1".into(),
                    owner: "worker.1".into(),
                    lease_id: "l".into(),
                    generation: 4,
                    session_id: "session-1".into(),
                },
                mutation_policy_digest: "mutation.v1".into(),
                claims: ClaimSet::operator_override(),
                verification: None,
                normalizer: None,
                instruction_ref: None,
            };
            // Whatever a step admits, the report without a step admits too.
            if joined.admit::<Block>(&binding).is_ok() {
                assert!(report.mutation_ready);
            }
        }
    }
}

proptest! {
    #[test]
    fn order_duplicates_space_and_case_never_change_a_byte(ways in ways(0), seed: u64) {
        let plain = turn(&ways);
        let mut other = plain.clone();
        disturb(&mut other, "", &mut stream(seed));
        prop_assert_eq!(normal(plain), normal(other));
    }

    #[test]
    fn a_generated_turn_is_closed(ways in ways(0)) {
        let report = join_check(&read(turn(&ways))).unwrap();
        prop_assert!(report.mutation_ready, "{:?}", report.failure_classes);
    }

    #[test]
    fn dropping_a_row_of_a_closed_turn_is_refused(ways in ways(1), which: usize, list in 0..4_usize) {
        let mut input = turn(&ways);
        let (name, class) = [
            ("toolRequests", FailureClass::ToolResultOrphan),
            ("toolResults", FailureClass::ToolResultMissing),
            ("toolResults", FailureClass::ToolUseWithoutResult),
            ("toolUse", FailureClass::ToolUseMissing),
        ][list];
        input["evidence"][name].as_array_mut().unwrap().remove(which % ways.len());
        let found = join_classes(&normalize(read(input).evidence).unwrap(), &Constraints::default());
        prop_assert!(found.contains(&class));
        prop_assert!(found.contains(&FailureClass::ToolJoinIncomplete));
    }

    #[test]
    fn altering_a_row_changes_its_digest_and_the_joins(ways in ways(1), which: usize, list in 0..3_usize) {
        let before = normal(turn(&ways)).digests;
        let mut input = turn(&ways);
        let (name, field) = [("toolRequests", "toolName"), ("toolResults", "resultDigest"), ("toolUse", "useReason")][list];
        input["evidence"][name][which % ways.len()][field] = json!("altered");
        let after = normal(input).digests;
        let pick = |d: &crate::turn::Digests| [d.request_set_digest.clone(), d.result_set_digest.clone(), d.use_set_digest.clone()][list].clone();
        prop_assert_ne!(pick(&before), pick(&after));
        prop_assert_ne!(before.join_set_digest, after.join_set_digest);
    }

    #[test]
    fn altering_a_fact_changes_its_digest_and_the_joins(ways in ways(1), list in 0..6_usize) {
        let before = normal(turn(&ways)).digests;
        let mut input = turn(&ways);
        let facts = &mut input["evidence"]["facts"];
        match list {
            0 => facts["turn"] = json!(2),
            1 => facts["guardrails"][1]["triggered"] = json!(true),
            2 => facts["transport"][0]["toolCallId"] = json!("altered"),
            3 => facts["branches"][0]["joinSetDigest"] = json!("altered"),
            4 => facts["scopeAccesses"][0]["ref"] = json!("altered"),
            _ => facts["trace"]["processorRef"] = json!("altered"),
        }
        let after = normal(input).digests;
        prop_assert_ne!(before.fact_set_digest, after.fact_set_digest);
        prop_assert_ne!(before.join_set_digest, after.join_set_digest);
        prop_assert_eq!(before.request_set_digest, after.request_set_digest);
    }

    #[test]
    fn what_is_explained_is_what_is_refused(ways in ways(0), which: usize, value in any_json()) {
        let mut input = turn(&ways);
        let mut places = Vec::new();
        pointers(&input, "", &mut places);
        *input.pointer_mut(&places[which % places.len()]).unwrap() = value;
        if let Ok(parsed) = ParsedInput::from_value(input)
            && let Ok(normalized) = normalize(parsed.input.evidence.clone())
        {
            let rules = explain(&normalized, &parsed.input.constraints);
            let mut classes = join_classes(&normalized, &parsed.input.constraints);
            classes.extend(mutation_classes(&normalized, &parsed.input.constraints));
            prop_assert_eq!(rules.iter().map(|rule| rule.class).collect::<std::collections::BTreeSet<_>>(), classes);
        }
    }

    #[test]
    fn no_json_panics(input in any_json()) {
        walk(input);
    }

    #[test]
    fn no_turn_with_anything_put_anywhere_panics(which: usize, value in any_json()) {
        let mut input = closed();
        let mut places = Vec::new();
        pointers(&input, "", &mut places);
        *input.pointer_mut(&places[which % places.len()]).unwrap() = value;
        walk(input);
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64), at: usize) {
        let _ = ParsedInput::from_slice(&bytes);
        let mut text = closed().to_string().into_bytes();
        let at = at % text.len();
        for (offset, byte) in bytes.iter().take(3).enumerate() {
            if let Some(slot) = text.get_mut(at + offset) {
                *slot = *byte;
            }
        }
        if let Ok(parsed) = ParsedInput::from_slice(&text) {
            let _ = join_check(&parsed.input);
        }
    }
}
