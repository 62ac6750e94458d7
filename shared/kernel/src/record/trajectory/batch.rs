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
    conflicts: BTreeSet<Attempt>,
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

    /// Returns how many of them failed because the work conflicted with what landed.
    pub fn conflicts(&self) -> u32 {
        u32::try_from(self.conflicts.len()).unwrap_or(u32::MAX)
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

    /// Returns how many of them failed because the work conflicted with what landed.
    pub fn conflicts(&self, issue_id: &IssueId) -> u32 {
        self.issue(issue_id).map_or(0, IssueRecord::conflicts)
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
                    if row.has_class(FailureClass::LandingConflict) {
                        record.conflicts.insert(Attempt::of(row));
                    }
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
mod tests;
