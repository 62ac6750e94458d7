//! What a batch knows about its issues: from the rows that it wrote or found,
//! and from the steps that its lanes take now.

use super::Batch;
use super::failure::FailedStep;
use premath_kernel::issue::dispatch::{Discoveries, Discovery};
use premath_kernel::json::id::{BatchId, IssueId};
use premath_kernel::policy::landing::LandingRecord;
use premath_kernel::policy::retry::EarlierFailures;
use premath_kernel::record::event::LandingCheck;
use premath_kernel::record::trajectory::{Account, BatchHistory, FailureStreaks, StepRow, action};
use premath_memory::{IssueMemory, IssueRow, MemoryView, StoreError};
use premath_worktree::landing::LandingError;
use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::Arc;

/// What is known about the trajectory and of what the lanes do.
#[derive(Debug, Default)]
pub(super) struct Knowledge {
    pub(super) history: BatchHistory,
    pub(super) failures: BTreeMap<IssueId, FailedStep>,
    /// Issues that a lane of this process was given and that have no row for
    /// it yet: released, they look claimable before the history knows why not.
    pub(super) dispatched: BTreeSet<IssueId>,
    /// The highest generation of each issue that has a row: issue memory may
    /// have been taken back to an older version since.
    pub(super) generations: Arc<BTreeMap<IssueId, u64>>,
    /// What steps of this batch filed.
    pub(super) discoveries: Discoveries,
    /// What landed of each issue whose last step ended well, and in which
    /// batch that was.
    pub(super) landings: BTreeMap<IssueId, (Option<BatchId>, Option<LandingRecord>)>,
    /// What this batch used and waited for.
    pub(super) account: Account,
    /// The issues that failed in one batch after another.
    pub(super) streaks: FailureStreaks,
    /// How often others moved the target under what landed of an issue.
    moved: BTreeMap<IssueId, u32>,
    /// How many issues this batch gave up; set when it ends.
    given_up: Option<u64>,
}

/// How often others may move the target under what landed of an issue before its
/// attempts fail by that.
const MOVED_MAX: u32 = 8;

impl Knowledge {
    /// Reads what the trajectory reports.
    pub(super) fn of(rows: &[StepRow]) -> Self {
        let mut knowledge = Self {
            history: BatchHistory::fold(rows),
            ..Self::default()
        };
        for row in rows {
            knowledge.note(row);
        }
        knowledge
    }

    /// Returns the issues that are not to be dispatched again in a batch.
    pub(super) fn used_up(&self, batch: &BatchId) -> BTreeSet<IssueId> {
        self.history
            .batch(batch)
            .map(|batch| batch.used_up().into_iter().cloned().collect())
            .unwrap_or_default()
    }

    /// Returns how many issues the batch does not try again.
    pub(super) fn given_up(&self, batch: &BatchId) -> u64 {
        self.given_up
            .unwrap_or_else(|| self.used_up(batch).len() as u64)
    }

    /// Takes in a row that was appended; the batch is that of this process.
    pub(super) fn observe(&mut self, row: &StepRow, batch: &BatchId) {
        if row.action == action::BATCH_END && row.batch_id.as_ref() == Some(batch) {
            // The history of open batches forgets it.
            self.given_up = Some(self.given_up(batch));
        }
        self.history.observe(row);
        self.note(row);
        self.note_account(slice::from_ref(row), batch);
    }

    /// Returns where the work of closed issues landed.
    pub(super) fn landed(&self, view: &MemoryView<'_>) -> Vec<(&str, &LandingRecord)> {
        let is_closed = |issue: &str| {
            view.row(issue)
                .is_some_and(|row| row.issue.status.is_terminal())
        };
        let landings = self.landings.iter();
        landings
            .filter(|(issue, _)| is_closed(issue))
            .filter_map(|(issue, (_, record))| Some((issue.as_str(), record.as_ref()?)))
            .collect()
    }

    /// Records what the rows of a batch report about what it used.
    pub(super) fn note_account(&mut self, rows: &[StepRow], batch: &BatchId) {
        for row in rows
            .iter()
            .filter(|row| row.batch_id.as_ref() == Some(batch))
        {
            self.account.observe(row);
        }
    }

    /// Records what a row reports about its issue.
    pub(super) fn note(&mut self, row: &StepRow) {
        self.streaks.observe(row);
        let Some(issue_id) = &row.issue_id else {
            return;
        };
        if let Some(generation) = row.generation {
            let known = Arc::make_mut(&mut self.generations)
                .entry(issue_id.clone())
                .or_default();
            if generation < *known {
                // A row that was recovered late, of an earlier attempt.
                return;
            }
            *known = generation;
        }
        if row.action != action::WORKER_LOOP {
            return;
        }
        if row.succeeded() {
            self.failures.remove(issue_id);
            // What was done in another world lands there, or not.
            if row.world.is_some() {
                self.landings.remove(issue_id);
                return;
            }
            let landing = (row.batch_id.clone(), row.landing.clone());
            self.landings.insert(issue_id.clone(), landing);
        } else if !row.is_limited() {
            self.failures.insert(
                issue_id.clone(),
                FailedStep {
                    step_id: row.step_id.clone(),
                    classes: row.failure_classes.clone(),
                    salvage: row.salvage.clone(),
                },
            );
        }
    }
}

/// Reads what was filed since a batch began.
pub(super) fn filed_since(
    memory: &IssueMemory,
    began: jiff::Timestamp,
) -> Result<Discoveries, StoreError> {
    memory.view(|view| {
        let since = |row: &IssueRow| {
            premath_kernel::json::time::parse(&row.text_of("created_at"))
                .is_some_and(|at| at >= began)
        };
        let found = |row: &IssueRow| Discovery::of(&row.issue).filter(|_| since(row));
        Discoveries::of(view.rows().filter_map(found))
    })
}

impl Batch {
    /// Takes up what a batch that was cut had filed since it began.
    pub(super) fn take_up_filed(&self, began: jiff::Timestamp) -> Result<(), StoreError> {
        let discoveries = filed_since(&self.memory, began)?;
        self.knowledge().discoveries = discoveries;
        Ok(())
    }

    /// Compares what this batch closed with the branch that it lands on;
    /// `None` where work is not to land.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub fn check_landing(&self) -> Result<Option<LandingCheck>, LandingError> {
        if !self.landing.merges() {
            return Ok(None);
        }
        let landings = self.knowledge().landings.clone();
        let ours = landings
            .iter()
            .filter(|(_, (batch, _))| batch.as_ref() == Some(&self.id))
            .map(|(issue, (_, record))| (issue.as_str(), record.as_ref()));
        self.landing.check(ours).map(Some)
    }

    /// Counts that others moved the target under what landed of an issue; returns whether
    /// another attempt may begin for it uncharged.
    pub(crate) fn may_land_again(&self, issue_id: &IssueId) -> bool {
        let mut knowledge = self.knowledge();
        let moved = knowledge.moved.entry(issue_id.clone()).or_default();
        *moved = moved.saturating_add(1);
        *moved <= MOVED_MAX
    }

    /// Returns how many attempts of an issue failed by themselves so far.
    pub(crate) fn attempts(&self, issue_id: &IssueId) -> u32 {
        self.knowledge()
            .history
            .batch(&self.id)
            .map_or(0, |batch| batch.attempts(issue_id))
    }

    /// Returns how the attempts of an issue failed by themselves so far.
    pub(crate) fn earlier_failures(&self, issue_id: &IssueId) -> EarlierFailures {
        let knowledge = self.knowledge();
        let batch = knowledge.history.batch(&self.id);
        batch.map_or_else(EarlierFailures::default, |batch| EarlierFailures {
            attempts: batch.attempts(issue_id),
            conflicts: batch.conflicts(issue_id),
        })
    }

    /// Returns the issues that are not to be dispatched again in this batch.
    pub(crate) fn used_up(&self) -> BTreeSet<IssueId> {
        self.knowledge().used_up(&self.id)
    }

    /// Returns, by issue, whether its last step in this batch ended well.
    pub fn endings(&self) -> BTreeMap<IssueId, (u32, Option<bool>)> {
        self.knowledge()
            .history
            .batch(&self.id)
            .map(|batch| {
                batch
                    .issues()
                    .iter()
                    .map(|(id, record)| (id.clone(), (record.attempts(), record.ended_well())))
                    .collect()
            })
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::holder::batch_holder;
    use jiff::Timestamp;
    use premath_kernel::policy::retry::RetryVerdict;
    use premath_kernel::record::trajectory::{
        BatchRecord, RetryRecord, batch_end_row, batch_start_row,
    };

    fn escalated(batch: &BatchId, issue: &str) -> StepRow {
        let step = format!("worker.1.{issue}.1");
        let mut row = StepRow::new(step, action::WORKER_LOOP, "failed", Timestamp::UNIX_EPOCH);
        row.batch_id = Some(batch.clone());
        row.issue_id = Some(issue.into());
        row.retry = Some(RetryRecord {
            decision: RetryVerdict::Escalate,
            action: None,
            attempt: 1,
            max_attempts: 1,
            backoff_class: "none".to_owned(),
            rule_id: None,
            failure_class: None,
        });
        row
    }

    #[test]
    fn what_a_batch_gave_up_is_known_after_its_end() {
        let (ours, other) = (BatchId::from("hb1_a"), BatchId::from("hb1_b"));
        let now = Timestamp::UNIX_EPOCH;
        let record = BatchRecord {
            settings_digest: "d".to_owned(),
            holder: batch_holder(None),
        };
        let mut knowledge = Knowledge::default();
        for row in [
            batch_start_row(&ours, record, now),
            escalated(&ours, "a"),
            batch_end_row(&other, "completed", now),
            escalated(&ours, "b"),
        ] {
            knowledge.observe(&row, &ours);
        }
        assert_eq!(knowledge.given_up(&ours), 2);
        knowledge.observe(&batch_end_row(&ours, "failed", now), &ours);
        assert!(knowledge.used_up(&ours).is_empty());
        assert_eq!(knowledge.given_up(&ours), 2);
    }
}
