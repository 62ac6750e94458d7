use super::*;
use crate::policy::retry::{RetryPolicy, decide};
use crate::record::trajectory::action::WORKER_LOOP;
use proptest::prelude::*;
use serde_json::json;

fn now() -> Timestamp {
    "2026-03-05T10:00:00.123456789Z".parse().unwrap()
}

fn full() -> StepRow {
    let decision = decide(&RetryPolicy::embedded().unwrap(), &["check_failed"], 1);
    StepRow {
        issue_id: Some("bd-1".into()),
        witness_refs: ["b", "a"].into_iter().collect(),
        started_at: Some(Stamp::at(now())),
        failure_classes: vec!["check_failed".into()],
        verification: Some(Verification {
            class: "check_failed".into(),
            witness_ref: Some("v".into()),
        }),
        next_step: Some("n".into()),
        generation: Some(2),
        worker_id: Some("w".into()),
        batch_id: Some("hb".into()),
        recovered: true,
        retry: Some(RetryRecord::from(&decision)),
        ..StepRow::new("w.bd-1.2", WORKER_LOOP, "failed_issue_closed", now())
    }
}

#[test]
fn a_row_is_one_canonical_line_that_reads_back() {
    let line = full().line().unwrap();
    assert_eq!(
        line,
        concat!(
            r#"{"action":"worker.loop","batchId":"hb","failureClasses":["check_failed"],"#,
            r#""finishedAt":"2026-03-05T10:00:00.123456Z","generation":2,"issueId":"bd-1","#,
            r#""nextStep":"n","recovered":true,"resultClass":"failed_issue_closed","#,
            r#""retry":{"action":"mark_blocked","attempt":1,"backoffClass":"none","#,
            r#""decision":"escalate","failureClass":"check_failed","maxAttempts":1,"#,
            r#""ruleId":"semantic_no_retry"},"schema":1,"#,
            r#""startedAt":"2026-03-05T10:00:00.123456Z","stepId":"w.bd-1.2","#,
            r#""stepKind":"premath.harness.step.v1","#,
            r#""verification":{"class":"check_failed","witnessRef":"v"},"#,
            r#""witnessRefs":["a","b"],"workerId":"w"}"#
        )
    );
    assert_eq!(StepRow::parse(line.as_bytes()).unwrap(), full());
}

#[test]
fn a_wrong_field_is_named() {
    for (field, value, expected) in [
        ("schema", json!("1"), "`schema` must be 1, found \"1\""),
        (
            "stepKind",
            json!("x"),
            "`stepKind` must be \"premath.harness.step.v1\", found \"x\"",
        ),
        (
            "stepId",
            json!(""),
            "`stepId` is missing: it must be text that is not blank",
        ),
        (
            "action",
            Value::Null,
            "`action` is missing: it must be text that is not blank",
        ),
        (
            "resultClass",
            json!(1),
            "`resultClass` must be a string, found 1",
        ),
        (
            "finishedAt",
            json!("x"),
            "`finishedAt` must be an RFC 3339 time such as 2026-03-05T10:00:00Z, found \"x\"",
        ),
        (
            "startedAt",
            json!("x"),
            "`startedAt` must be an RFC 3339 time such as 2026-03-05T10:00:00Z, found \"x\"",
        ),
        (
            "lineageRefs",
            json!([null]),
            "`lineageRefs[0]` must be a string, found null",
        ),
    ] {
        let mut document: Value = serde_json::from_str(&full().line().unwrap()).unwrap();
        document[field] = value;
        match StepRow::parse(document.to_string().as_bytes()) {
            Err(TrajectoryError::Shape(error)) => assert_eq!(error.to_string(), expected),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        StepRow::new(" ", "a", "b", now()).line(),
        Err(TrajectoryError::Blank { field: "stepId" })
    );
}

#[test]
fn a_name_of_ours_in_another_shape_is_kept_and_means_nothing() {
    let foreign = json!({
        "schema": 1, "stepKind": STEP_KIND, "stepId": "s", "action": "a", "resultClass": "ok",
        "finishedAt": "2026-03-05T10:00:00+00:00", "x": 1.5,
        "retry": true, "batch": [], "generation": "seven", "workerId": 5, "recovered": "yes",
        "verification": "none", "failureClasses": [1],
    });
    let row = StepRow::parse(foreign.to_string().as_bytes()).unwrap();
    assert_eq!(
        (row.retry.is_none(), row.generation, row.recovered),
        (true, None, false)
    );
    let written: Value = serde_json::from_str(&row.line().unwrap()).unwrap();
    assert_eq!(written, foreign);
}

#[test]
fn a_row_reads_alike_with_its_chain_value_and_without() {
    let (line, _) = crate::record::trajectory::Chain::default().line(&full().line().unwrap());
    assert!(line.contains("\"chain\":\"sha256:"), "{line}");
    assert_eq!(StepRow::parse(line.as_bytes()).unwrap(), full());
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = StepRow::parse(&bytes);
    }
}

#[test]
fn the_commit_of_a_step_is_that_of_its_row_unless_nothing_changed() {
    let mut row = StepRow::new("w.a.1", WORKER_LOOP, "completed", now());
    let [named, landed] = ["c", "d"].map(|digit| digit.repeat(40));
    let close = |commit: Value| json!({"commit": commit});
    let named_by = close(json!(named));
    assert_eq!(row.commit(None), None);
    assert_eq!(row.commit(Some(&named_by)), Some(named));
    assert_eq!(row.commit(Some(&close(json!("../c")))), None);
    row.landing = Some(LandingRecord {
        target: "t".to_owned(),
        commit: landed.clone(),
    });
    assert_eq!(row.commit(None).as_ref(), Some(&landed));
    assert_eq!(row.commit(Some(&named_by)), Some(landed));
    assert_eq!(row.commit(Some(&close(Value::Null))), None);
    row.result_class = "failed".to_owned();
    assert_eq!(row.commit(Some(&named_by)), None);
}
