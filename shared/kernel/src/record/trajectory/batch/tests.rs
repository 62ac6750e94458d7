use super::*;
use crate::policy::retry::{RetryPolicy, decide};
use crate::record::control::ControlAnswer;
use crate::record::trajectory::{ControlRecord, RetryRecord, control_row};
use proptest::prelude::*;

fn now() -> Timestamp {
    "2026-03-05T10:00:00Z".parse().unwrap()
}

fn holder(pid: u32) -> BatchHolder {
    BatchHolder {
        host: "h".into(),
        boot_id: "b".into(),
        pid,
        started: 7,
        pid_ns: None,
    }
}

/// Returns whether batch `a` tries an issue no more.
fn uses_up(history: &BatchHistory, issue: &str) -> bool {
    let batch = history.batch(&"a".into()).unwrap();
    batch.used_up().contains(&IssueId::from(issue))
}

fn start(batch: &str, settings: &str, pid: u32) -> StepRow {
    let record = BatchRecord {
        settings_digest: settings.into(),
        holder: holder(pid),
    };
    batch_start_row(&batch.into(), record, now())
}

fn step(batch: &str, issue: &str, generation: u64, result: &str, classes: &[&str]) -> StepRow {
    StepRow {
        batch_id: Some(batch.into()),
        issue_id: Some(issue.into()),
        generation: Some(generation),
        failure_classes: classes.iter().map(|c| (*c).to_owned()).collect(),
        ..StepRow::new(
            format!("w.{issue}.{generation}"),
            action::WORKER_LOOP,
            result,
            now(),
        )
    }
}

fn retried(batch: &str, issues: Vec<IssueControl>) -> StepRow {
    let answer = ControlAnswer::of_issues(&batch.into(), issues.clone());
    let record = ControlRecord {
        operation: ControlOperation::Retry {
            issues: issues.iter().map(|issue| issue.issue_id.clone()).collect(),
        },
        uid: 0,
        pid: 1,
        operator: None,
        reason: None,
        detail: String::new(),
        issues,
    };
    control_row(record, &answer, (now(), now()), 0)
}

#[test]
fn an_operators_retry_gives_an_issue_its_attempts_again() {
    let policy = RetryPolicy::embedded().unwrap();
    let decision = decide(&policy, &["check_failed"], 9);
    let escalated = |issue: &str| StepRow {
        retry: Some(RetryRecord::from(&decision)),
        ..step("a", issue, 1, "failed_issue_blocked", &["check_failed"])
    };
    let mut rows = vec![start("a", "s", 1), escalated("i"), escalated("j")];
    let used_up = |rows: &[StepRow]| -> Vec<IssueId> {
        let history = BatchHistory::fold(rows);
        let batch = history.batch(&"a".into()).unwrap();
        batch.used_up().into_iter().cloned().collect()
    };
    assert_eq!(used_up(&rows), ["i", "j"].map(IssueId::from));
    rows.push(retried(
        "a",
        vec![
            IssueControl::done(&"i".into(), ""),
            IssueControl::refused(&"j".into(), ""),
        ],
    ));
    assert_eq!(used_up(&rows), [IssueId::from("j")]);
    let history = BatchHistory::fold(&rows);
    let batch = history.batch(&"a".into()).unwrap();
    assert_eq!(batch.attempts(&"i".into()), 0);
    // It has not ended well for that.
    assert_eq!(
        batch.issues()[&IssueId::from("i")].ended_well(),
        Some(false)
    );
    rows.push(escalated("i"));
    rows[4].generation = Some(2);
    assert_eq!(used_up(&rows), ["i", "j"].map(IssueId::from));
}

#[test]
fn a_usage_limit_uses_up_no_attempt_unless_the_policy_was_asked() {
    let limited = step("a", "i", 1, "retry_needed_lease_active", &["usage_limit"]);
    let decision = decide(&RetryPolicy::embedded().unwrap(), &["usage_limit"], 1);
    let asked = StepRow {
        retry: Some(RetryRecord::from(&decision)),
        ..step("a", "j", 1, "retry_needed_lease_active", &["usage_limit"])
    };
    let history = BatchHistory::fold(&[start("a", "s", 1), limited, asked]);
    let batch = history.batch(&"a".into()).unwrap();
    assert_eq!(
        (batch.attempts(&"i".into()), batch.attempts(&"j".into())),
        (0, 1)
    );
    assert_eq!(batch.used_up().into_iter().collect::<Vec<_>>(), ["j"]);
    assert_eq!(batch.issue(&"i".into()).unwrap().ended_well(), Some(false));
}

#[test]
fn a_batch_is_open_until_its_end_and_bound_to_its_last_holder() {
    let mut history = BatchHistory::fold(&[start("a", "s", 1), start("b", "t", 2)]);
    let ids = |h: &BatchHistory| {
        h.open()
            .iter()
            .map(|b| b.batch_id.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&history), ["a", "b"]);
    let none_lives = |_: &BatchHolder| false;
    let batch = history.resumable("s", &none_lives).unwrap().clone();
    assert_eq!(batch.batch_id, "a");
    assert!(history.resumable("s", &|h| h.pid == 1).is_none());
    assert!(history.resumable("u", &none_lives).is_none());

    let resume = batch_resume_row(&batch, holder(3), now());
    assert_eq!(resume.step_id, "coordinator.a.resume.1");
    history.observe(&resume);
    assert!(history.resumable("s", &|h| h.pid == 3).is_none());
    let again = batch_resume_row(history.batch(&"a".into()).unwrap(), holder(4), now());
    assert_eq!(again.step_id, "coordinator.a.resume.2");

    let dead: Vec<_> = history.abandoned(Some("a"), &none_lives);
    assert_eq!(dead.len(), 1);
    history.observe(&batch_end_row(&"a".into(), "completed", now()));
    assert_eq!(ids(&history), ["b"]);
}

#[test]
fn an_attempt_is_a_generation_that_failed_by_itself() {
    let mut take_over = take_over_row(Some(&"a".into()), &"w.i.4".into(), &"i".into(), 4, now());
    take_over.worker_id = Some("w".into());
    let history = BatchHistory::fold(&[
        step("a", "i", 9, "failed", &["work_failed"]), // before the batch
        start("a", "s", 1),
        step("a", "i", 1, "failed", &["work_failed"]),
        step("a", "i", 1, "failed_lease_lost", &["work_failed"]),
        step("a", "i", 2, "failed", &["step_interrupted"]),
        step("a", "i", 3, "failed", &["harness_died"]),
        take_over.clone(),
        take_over,
        step("a", "i", 5, "retry_needed_lease_active", &["gate_timeout"]),
        step("b", "i", 6, "failed", &["work_failed"]),
        step("a", "j", 1, "failed", &["work_failed"]),
        step("a", "j", 2, "completed", &[]),
    ]);
    let batch = history.batch(&"a".into()).unwrap();
    let record = batch.issue(&"i".into()).unwrap();
    assert_eq!((record.attempts(), record.take_overs()), (2, 1));
    assert_eq!(record.ended_well(), Some(false));
    assert_eq!(
        (batch.attempts(&"j".into()), batch.attempts(&"k".into())),
        (1, 0)
    );
    assert_eq!(batch.issue(&"j".into()).unwrap().ended_well(), Some(true));
    assert!(batch.used_up().is_empty());
}

#[test]
fn an_escalation_or_five_deaths_use_an_issue_up() {
    let policy = RetryPolicy::embedded().unwrap();
    let with = |classes: &[&str], attempt| StepRow {
        retry: Some(RetryRecord::from(&decide(&policy, classes, attempt))),
        ..step("a", "i", 1, "failed", classes)
    };
    for (row, expected) in [
        (with(&["gate_timeout"], 1), 0),
        (with(&["gate_timeout"], 3), 1),
        (with(&["check_failed"], 1), 1),
    ] {
        let history = BatchHistory::fold(&[start("a", "s", 1), row]);
        assert_eq!(
            history.batch(&"a".into()).unwrap().used_up().len(),
            expected
        );
    }
    let mut history = BatchHistory::fold(&[start("a", "s", 1)]);
    for generation in 1..=u64::from(TAKE_OVER_BOUND) {
        assert!(history.batch(&"a".into()).unwrap().used_up().is_empty());
        let step_id = format!("w.i.{generation}");
        history.observe(&take_over_row(
            Some(&"a".into()),
            &step_id.as_str().into(),
            &"i".into(),
            generation,
            now(),
        ));
    }
    assert!(uses_up(&history, "i"));
}

#[test]
fn a_hundred_failed_attempts_use_an_issue_up_whatever_ended_them() {
    let mut history = BatchHistory::fold(&[start("a", "s", 1)]);
    for generation in 1..=u64::from(ATTEMPTS_MAX) {
        assert!(history.batch(&"a".into()).unwrap().used_up().is_empty());
        history.observe(&step("a", "i", generation, "failed", &["gate_timeout"]));
    }
    assert!(uses_up(&history, "i"));
}

#[test]
fn rows_of_the_coordinator_survive_the_file() {
    for row in [
        start("a", "s", 1),
        batch_end_row(&"a".into(), "failed", now()),
        take_over_row(None, &"w.i.1".into(), &"i".into(), 1, now()),
    ] {
        let line = row.line().unwrap();
        assert_eq!(StepRow::parse(line.as_bytes()).unwrap(), row);
    }
    assert!(batch_id(&holder(1), now()).starts_with("hb1_20260305T100000Z_"));
    assert_ne!(batch_id(&holder(1), now()), batch_id(&holder(2), now()));
}

fn any_row() -> impl Strategy<Value = StepRow> {
    let batch = || prop::sample::select(vec!["a", "b"]);
    let result = prop::sample::select(vec!["failed", "completed"]);
    let classes = prop::sample::select(vec!["work_failed", "harness_died"]);
    prop_oneof![
        (batch(), 1u32..3).prop_map(|(b, pid)| start(b, "s", pid)),
        batch().prop_map(|b| batch_end_row(&b.into(), "ok", now())),
        (batch(), 1u64..4, result, classes).prop_map(|(b, generation, result, class)| step(
            b,
            "i",
            generation,
            result,
            &[class]
        )),
    ]
}

proptest! {
    #[test]
    fn a_row_that_appears_twice_adds_no_attempt(
        rows in proptest::collection::vec(any_row(), 0..20)
    ) {
        let steps = |r: &&StepRow| r.action == action::WORKER_LOOP;
        let doubled: Vec<&StepRow> = rows
            .iter()
            .flat_map(|r| std::iter::repeat_n(r, if steps(&r) { 2 } else { 1 }))
            .collect();
        prop_assert_eq!(BatchHistory::fold(&rows), BatchHistory::fold(doubled));
    }

    #[test]
    fn a_fold_can_be_cut_anywhere(
        rows in proptest::collection::vec(any_row(), 0..20), cut in 0usize..20
    ) {
        let (before, after) = rows.split_at(cut.min(rows.len()));
        let mut history = BatchHistory::fold(before);
        for row in after {
            let line = row.line().unwrap();
            history.observe(&StepRow::parse(line.as_bytes()).unwrap());
        }
        prop_assert_eq!(history, BatchHistory::fold(&rows));
    }
}
