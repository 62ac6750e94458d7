use super::*;
use crate::json::canonical::value_of;
use proptest::prelude::*;
use serde_json::json;

fn now() -> Timestamp {
    "2026-03-05T10:00:00Z".parse().unwrap()
}

fn ledger(features: Value) -> FeatureLedger {
    let document = json!({
        "schema": 1, "ledgerKind": LEDGER_KIND, "updatedAt": "2026-03-05T10:00:00Z",
        "features": features,
    });
    FeatureLedger::parse(document.to_string().as_bytes()).unwrap()
}

fn row(id: &str, status: &str) -> Value {
    json!({"featureId": id, "status": status, "updatedAt": "t", "verificationRefs": ["v"]})
}

fn classes(ledger: &FeatureLedger, require_closure: bool) -> Vec<&'static str> {
    let findings = ledger.check(require_closure);
    findings.into_iter().map(|f| f.class.as_str()).collect()
}

#[test]
fn each_fault_has_its_class() {
    let mut unverified = row("a", "completed");
    unverified["verificationRefs"] = json!([]);
    let mut blank_refs = row("a", "pending");
    blank_refs["verificationRefs"] = json!(["v", " "]);
    blank_refs["instructionRefs"] = json!([""]);
    let mut timeless = row("a", "pending");
    timeless["updatedAt"] = json!("");
    for (features, expected) in [
        (json!([]), vec!["harness_feature_ledger.empty"]),
        (
            json!([row(" ", "pending")]),
            vec!["harness_feature_ledger.feature_id.empty"],
        ),
        (
            json!([row("a", "pending"), row("a", "completed")]),
            vec!["harness_feature_ledger.feature_id.duplicate"],
        ),
        (
            json!([row("a", "done")]),
            vec!["harness_feature_ledger.status.invalid"],
        ),
        (
            json!([row("b", "in_progress"), row("a", "in_progress")]),
            vec!["harness_feature_ledger.in_progress.non_contractible"],
        ),
        (
            json!([unverified]),
            vec!["harness_feature_ledger.completed_missing_verification_ref"],
        ),
        (
            json!([blank_refs]),
            vec![
                "harness_feature_ledger.instruction_ref.empty",
                "harness_feature_ledger.verification_ref.empty",
            ],
        ),
        (
            json!([timeless]),
            vec!["harness_feature_ledger.feature.updated_at.empty"],
        ),
        (json!([row("a", "completed"), row("b", "blocked")]), vec![]),
    ] {
        assert_eq!(
            classes(&ledger(features.clone()), false),
            expected,
            "{features}"
        );
    }
    let timeless =
        json!({"schema": 1, "ledgerKind": LEDGER_KIND, "features": [row("a", "pending")]});
    let timeless = FeatureLedger::parse(timeless.to_string().as_bytes()).unwrap();
    assert_eq!(
        classes(&timeless, false),
        ["harness_feature_ledger.updated_at.empty"]
    );
}

#[test]
fn closure_is_demanded_of_every_feature() {
    let open = ledger(json!([row("a", "completed"), row("b", "blocked")]));
    assert_eq!(
        classes(&open, true),
        ["harness_feature_ledger.closure_incomplete"]
    );
    assert_eq!(open.check(true)[0].feature_id.as_deref(), Some("b"));
    assert!(!open.closure_complete());
    let closed = ledger(json!([row("a", "completed")]));
    assert!(closed.check(true).is_empty() && closed.closure_complete());
    assert!(!ledger(json!([])).closure_complete());
}

#[test]
fn next_prefers_progress_then_the_smallest_id() {
    for (features, expected) in [
        (json!([row("b", "pending"), row("a", "pending")]), Some("a")),
        (
            json!([
                row("a", "pending"),
                row("c", "in_progress"),
                row("b", "in_progress")
            ]),
            Some("b"),
        ),
        (json!([row("a", "completed"), row("b", "blocked")]), None),
        (json!([]), None),
    ] {
        assert_eq!(ledger(features).next_feature(), expected);
    }
}

#[test]
fn a_write_records_its_input_and_keeps_the_rest() {
    let mut first = row("b", "in_progress");
    first["x"] = json!([1]);
    first["summary"] = json!("old");
    let write = FeatureWrite {
        status: Some(FeatureStatus::InProgress),
        session_ref: Some("session://s".into()),
        verification_refs: Some(["z", "y"].into_iter().collect()),
        ..FeatureWrite::new(" a ")
    };
    let two = FeatureLedger::write(Some(ledger(json!([first]))), write, now()).unwrap();
    assert_eq!(
        classes(&two, false),
        ["harness_feature_ledger.in_progress.non_contractible"]
    );
    let clear = FeatureWrite {
        summary: Some(String::new()),
        ..FeatureWrite::new("b")
    };
    let two = FeatureLedger::write(Some(two), clear, now()).unwrap();
    assert_eq!(
        value_of(&two),
        json!({
            "schema": 1, "ledgerKind": LEDGER_KIND, "sessionRef": "session://s",
            "updatedAt": "2026-03-05T10:00:00.000000Z",
            "features": [
                {"featureId": "a", "status": "in_progress", "instructionRefs": [],
                 "verificationRefs": ["y", "z"], "updatedAt": "2026-03-05T10:00:00.000000Z"},
                {"featureId": "b", "status": "in_progress", "instructionRefs": [], "x": [1],
                 "verificationRefs": ["v"], "updatedAt": "2026-03-05T10:00:00.000000Z"},
            ],
        })
    );
    let blank = FeatureLedger::write(None, FeatureWrite::new(" "), now());
    assert_eq!(
        blank.unwrap_err().class(),
        FailureClass::LedgerFeatureIdEmpty
    );
}

#[test]
fn a_field_of_the_wrong_type_is_named() {
    let document = json!({"schema": 1, "ledgerKind": LEDGER_KIND, "features": [{"featureId": 1}]});
    let LedgerError::Shape(error) =
        FeatureLedger::parse(document.to_string().as_bytes()).unwrap_err()
    else {
        panic!("not a shape")
    };
    assert_eq!(error.field(), Some("features[0].featureId"));
}

proptest! {
    #[test]
    fn the_order_of_writes_of_different_features_never_matters(
        ids in proptest::collection::btree_set("[a-c]{1,2}", 0..6)
    ) {
        let fill = |ids: &mut dyn Iterator<Item = &String>| {
            ids.fold(None, |ledger, id| {
                FeatureLedger::write(ledger, FeatureWrite::new(id), now()).ok()
            })
        };
        prop_assert_eq!(fill(&mut ids.iter()), fill(&mut ids.iter().rev()));
    }

    #[test]
    fn a_write_is_idempotent_and_survives_the_file(id in "[a-c]", active: bool) {
        let write = FeatureWrite {
            status: active.then_some(FeatureStatus::InProgress),
            ..FeatureWrite::new(id)
        };
        let prior = ledger(json!([row("b", "weird"), row("a", "pending")]));
        let once = FeatureLedger::write(Some(prior), write.clone(), now()).unwrap();
        let twice = FeatureLedger::write(Some(once.clone()), write, now()).unwrap();
        prop_assert_eq!(&once, &twice);
        let read = FeatureLedger::parse(value_of(&once).to_string().as_bytes()).unwrap();
        prop_assert_eq!(&read, &once);
    }
}
