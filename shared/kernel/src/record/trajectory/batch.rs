//! Batches: what a coordinator that starts again must know (`contracts.md` 6, 7).

use super::{BatchHolder, StepRow, action};
use crate::failure::FailureClass;
use crate::json::canonical::ref_digest;
use crate::json::id::{BatchId, IssueId, StepId, WorkerName};
use crate::json::read::text;
use crate::json::reference::RefSet;
use crate::json::stamp::{Stamp, compact};
use crate::policy::retry::RetryVerdict;
use crate::record::control::{ControlOperation, ControlResult, IssueControl};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How many times an issue's step may be cut by the death of the harness in a
/// batch, before the issue is not dispatched again.
pub(crate) const TAKE_OVER_BOUND: u32 = 5;

/// How many attempts of an issue may fail by themselves in a batch: more are
/// not policy's will, whose own limit is at most this.
pub(crate) const ATTEMPTS_MAX: u32 = 100;

/// What a batch is bound to and who runs it: the `batch` of a start or resume
/// row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchRecord {
    /// The digest of the settings that the batch runs under.
    #[serde(deserialize_with = "text")]
    pub settings_digest: String,
    /// The process that runs the batch.
    pub holder: BatchHolder,
}

/// Returns `hb1_<UTC yyyymmddThhmmssZ>_<digest of the holder, 12 digits>`,
/// which no two coordinators share.
pub fn batch_id(holder: &BatchHolder, now: Timestamp) -> BatchId {
    let digest: String = ref_digest(holder).chars().take(12).collect();
    BatchId::from(format!("hb1_{}_{digest}", compact(now)))
}

/// Returns the row that opens a batch.
pub fn batch_start_row(batch_id: &BatchId, record: BatchRecord, now: Timestamp) -> StepRow {
    StepRow {
        batch: Some(record),
        ..batch_row(batch_id, "start", action::BATCH_START, "ok", now)
    }
}

/// Returns the row of the process that resumes a batch, with its settings.
pub fn batch_resume_row(batch: &OpenBatch, holder: BatchHolder, now: Timestamp) -> StepRow {
    let act = format!("resume.{}", batch.resumptions.saturating_add(1));
    StepRow {
        batch: Some(BatchRecord {
            settings_digest: batch.settings_digest.clone(),
            holder,
        }),
        ..batch_row(&batch.batch_id, &act, action::BATCH_RESUME, "ok", now)
    }
}

/// Returns the row that closes a batch, with how it ended.
pub fn batch_end_row(batch_id: &BatchId, result_class: &str, now: Timestamp) -> StepRow {
    batch_row(batch_id, "end", action::BATCH_END, result_class, now)
}

/// Returns the row of a batch that was refused before it began.
pub fn batch_refused_row(batch_id: &BatchId, classes: &[FailureClass], now: Timestamp) -> StepRow {
    StepRow {
        failure_classes: classes.iter().map(|c| c.as_str().to_owned()).collect(),
        ..batch_row(
            batch_id,
            "refused",
            action::DISPATCH_REFUSED,
            "refused",
            now,
        )
    }
}

fn batch_row(batch_id: &BatchId, act: &str, action: &str, result: &str, now: Timestamp) -> StepRow {
    StepRow {
        batch_id: Some(batch_id.to_owned()),
        started_at: Some(Stamp::at(now)),
        ..StepRow::new(format!("coordinator.{batch_id}.{act}"), action, result, now)
    }
}

/// Returns the row of a step that was cut by the death of its harness.
///
/// `step_id` is the step that was cut; the row's own id is
/// `coordinator.take_over.<step id>`, so that one death has one row. `batch_id`
/// is the batch that takes over, where there is one.
pub fn take_over_row(
    batch_id: Option<&BatchId>,
    step_id: &StepId,
    issue_id: &IssueId,
    generation: u64,
    now: Timestamp,
) -> StepRow {
    StepRow {
        batch_id: batch_id.cloned(),
        issue_id: Some(issue_id.to_owned()),
        generation: Some(generation),
        started_at: Some(Stamp::at(now)),
        failure_classes: vec![FailureClass::HarnessDied.as_str().to_owned()],
        ..StepRow::new(
            format!("{}.{step_id}", action::TAKE_OVER),
            action::TAKE_OVER,
            "retry_needed_harness_died",
            now,
        )
    }
}

/// Returns the row of what was found in a worker's lane and put aside. Its id
/// is `worker.salvage.<what>`: the cut step, or worker and time.
pub fn salvage_row(
    batch_id: &BatchId,
    worker_id: &WorkerName,
    what: &str,
    salvage: &str,
    now: Timestamp,
) -> StepRow {
    StepRow {
        batch_id: Some(batch_id.to_owned()),
        worker_id: Some(worker_id.to_owned()),
        started_at: Some(Stamp::at(now)),
        salvage: Some(salvage.to_owned()),
        ..StepRow::new(
            format!("{}.{what}", action::SALVAGE),
            action::SALVAGE,
            "completed",
            now,
        )
    }
}

/// What a batch knows about one issue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IssueRecord {
    attempts: BTreeSet<Attempt>,
    take_overs: BTreeSet<Attempt>,
    escalated: bool,
    ended_well: Option<bool>,
}

/// One lease of an issue: its generation, or the step id of a row without one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Attempt {
    Generation(u64),
    Step(StepId),
}

impl Attempt {
    fn of(row: &StepRow) -> Self {
        match row.generation {
            Some(generation) => Self::Generation(generation),
            None => Self::Step(row.step_id.clone()),
        }
    }
}

impl IssueRecord {
    /// Returns how many attempts failed by themselves.
    pub fn attempts(&self) -> u32 {
        u32::try_from(self.attempts.len()).unwrap_or(u32::MAX)
    }

    /// Returns how many were cut by the death of the harness.
    pub(crate) fn take_overs(&self) -> u32 {
        u32::try_from(self.take_overs.len()).unwrap_or(u32::MAX)
    }

    /// Returns whether the issue must not be dispatched again in the batch:
    /// the policy escalated it, or it was taken over `TAKE_OVER_BOUND` times or
    /// attempted 100 times.
    pub(crate) fn is_used_up(&self) -> bool {
        self.escalated || self.take_overs() >= TAKE_OVER_BOUND || self.attempts() >= ATTEMPTS_MAX
    }

    /// Returns whether the last step ended well, `None` where none ended.
    pub const fn ended_well(&self) -> Option<bool> {
        self.ended_well
    }
}

/// A batch that has a start and no end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenBatch {
    /// The batch's id.
    pub batch_id: BatchId,
    /// The digest of the settings that it runs under.
    pub settings_digest: String,
    /// Who runs it, by its last start or resume row.
    pub holder: BatchHolder,
    /// The time at which the batch began.
    pub started_at: Stamp,
    /// How many times it was taken up again.
    pub resumptions: u32,
    /// The instructions that it acts under, by its last start or resume row.
    pub instruction_refs: RefSet,
    issues: BTreeMap<IssueId, IssueRecord>,
}

impl OpenBatch {
    /// Returns what the batch knows about an issue.
    pub(crate) fn issue(&self, issue_id: &IssueId) -> Option<&IssueRecord> {
        self.issues.get(issue_id)
    }

    /// Returns what the batch knows, by issue.
    pub const fn issues(&self) -> &BTreeMap<IssueId, IssueRecord> {
        &self.issues
    }

    /// Returns how many attempts of an issue failed by themselves.
    pub fn attempts(&self, issue_id: &IssueId) -> u32 {
        self.issue(issue_id).map_or(0, IssueRecord::attempts)
    }

    /// Returns the issues that must not be dispatched again in the batch.
    pub fn used_up(&self) -> BTreeSet<&IssueId> {
        self.issues
            .iter()
            .filter(|(_, record)| record.is_used_up())
            .map(|(issue, _)| issue)
            .collect()
    }

    fn observe(&mut self, row: &StepRow) {
        if row.action == action::CONTROL {
            return self.observe_control(row);
        }
        let Some(issue_id) = &row.issue_id else {
            return;
        };
        match row.action.as_str() {
            action::WORKER_LOOP => {
                let record = self.issues.entry(issue_id.clone()).or_default();
                if !row.succeeded() && row.is_attempt() {
                    record.attempts.insert(Attempt::of(row));
                }
                record.escalated |= row
                    .retry
                    .as_ref()
                    .is_some_and(|retry| retry.decision == RetryVerdict::Escalate);
                record.ended_well = Some(row.succeeded());
            }
            action::TAKE_OVER => {
                let record = self.issues.entry(issue_id.clone()).or_default();
                record.take_overs.insert(Attempt::of(row));
            }
            _ => {}
        }
    }
}

impl OpenBatch {
    /// Takes in what an operator asked: a retry gives its issues all of their
    /// attempts again.
    fn observe_control(&mut self, row: &StepRow) {
        let Some(control) = &row.control else {
            return;
        };
        if !matches!(control.operation, ControlOperation::Retry { .. }) {
            return;
        }
        let is_done = |issue: &&IssueControl| issue.result == ControlResult::Done;
        for issue in control.issues.iter().filter(is_done) {
            if let Some(record) = self.issues.get_mut(&issue.issue_id) {
                *record = IssueRecord {
                    ended_well: record.ended_well,
                    ..IssueRecord::default()
                };
            }
        }
    }
}

/// The batches of a trajectory that are open, by its rows in file order.
///
/// A fold: rows that are appended later are observed one by one, and the
/// history is the same as that of a reader who starts afresh.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchHistory {
    open: Vec<OpenBatch>,
}

impl BatchHistory {
    /// Folds rows in file order.
    pub fn fold<'a>(rows: impl IntoIterator<Item = &'a StepRow>) -> Self {
        let mut history = Self::default();
        for row in rows {
            history.observe(row);
        }
        history
    }

    /// Takes in the next row.
    ///
    /// A start or resume row without our `batch` record opens nothing: it
    /// cannot be determined whether its holder lives.
    pub fn observe(&mut self, row: &StepRow) {
        let Some(batch_id) = &row.batch_id else {
            return;
        };
        let position = self.open.iter().position(|b| b.batch_id == *batch_id);
        match row.action.as_str() {
            action::BATCH_START | action::BATCH_RESUME => {
                let Some(record) = &row.batch else {
                    return;
                };
                match position.and_then(|index| self.open.get_mut(index)) {
                    Some(batch) => {
                        batch.holder = record.holder.clone();
                        batch.settings_digest.clone_from(&record.settings_digest);
                        batch.instruction_refs.clone_from(&row.instruction_refs);
                        batch.resumptions = batch.resumptions.saturating_add(1);
                    }
                    None => self.open.push(OpenBatch {
                        batch_id: batch_id.clone(),
                        settings_digest: record.settings_digest.clone(),
                        holder: record.holder.clone(),
                        started_at: row.started_at.clone().unwrap_or(row.finished_at.clone()),
                        resumptions: 0,
                        instruction_refs: row.instruction_refs.clone(),
                        issues: BTreeMap::new(),
                    }),
                }
            }
            action::BATCH_END => {
                if let Some(index) = position {
                    self.open.remove(index);
                }
            }
            _ => {
                if let Some(batch) = position.and_then(|index| self.open.get_mut(index)) {
                    batch.observe(row);
                }
            }
        }
    }

    /// Returns the open batches, in the order in which they began.
    pub fn open(&self) -> &[OpenBatch] {
        &self.open
    }

    /// Returns an open batch.
    pub fn batch(&self, batch_id: &BatchId) -> Option<&OpenBatch> {
        self.open.iter().find(|b| b.batch_id == *batch_id)
    }

    /// Returns the batch that a start under these settings resumes: the latest
    /// with the same digest whose holder is not alive.
    pub fn resumable(
        &self,
        settings_digest: &str,
        is_alive: &dyn Fn(&BatchHolder) -> bool,
    ) -> Option<&OpenBatch> {
        self.open
            .iter()
            .rev()
            .find(|b| b.settings_digest == settings_digest && !is_alive(&b.holder))
    }

    /// Returns the open batches whose holder is not alive, except one.
    ///
    /// A coordinator that begins afresh or resumes another closes them, so
    /// that no later start takes up a night long past.
    pub fn abandoned(
        &self,
        except: Option<&str>,
        is_alive: &dyn Fn(&BatchHolder) -> bool,
    ) -> Vec<&OpenBatch> {
        self.open
            .iter()
            .filter(|b| Some(b.batch_id.as_str()) != except && !is_alive(&b.holder))
            .collect()
    }
}

#[cfg(test)]
mod tests {
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
        let nobody = |_: &BatchHolder| false;
        let batch = history.resumable("s", &nobody).unwrap().clone();
        assert_eq!(batch.batch_id, "a");
        assert!(history.resumable("s", &|h| h.pid == 1).is_none());
        assert!(history.resumable("u", &nobody).is_none());

        let resume = batch_resume_row(&batch, holder(3), now());
        assert_eq!(resume.step_id, "coordinator.a.resume.1");
        history.observe(&resume);
        assert!(history.resumable("s", &|h| h.pid == 3).is_none());
        let again = batch_resume_row(history.batch(&"a".into()).unwrap(), holder(4), now());
        assert_eq!(again.step_id, "coordinator.a.resume.2");

        let dead: Vec<_> = history.abandoned(Some("a"), &nobody);
        assert_eq!(dead.len(), 1);
        history.observe(&batch_end_row(&"a".into(), "completed", now()));
        assert_eq!(ids(&history), ["b"]);
    }

    #[test]
    fn an_attempt_is_a_generation_that_failed_by_itself() {
        let mut take_over =
            take_over_row(Some(&"a".into()), &"w.i.4".into(), &"i".into(), 4, now());
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
        assert!(
            history
                .batch(&"a".into())
                .unwrap()
                .used_up()
                .contains(&IssueId::from("i"))
        );
    }

    #[test]
    fn a_hundred_failed_attempts_use_an_issue_up_whatever_ended_them() {
        let mut history = BatchHistory::fold(&[start("a", "s", 1)]);
        for generation in 1..=u64::from(ATTEMPTS_MAX) {
            assert!(history.batch(&"a".into()).unwrap().used_up().is_empty());
            history.observe(&step("a", "i", generation, "failed", &["gate_timeout"]));
        }
        assert!(
            history
                .batch(&"a".into())
                .unwrap()
                .used_up()
                .contains(&IssueId::from("i"))
        );
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
}
