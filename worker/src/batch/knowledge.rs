//! What a batch knows about its issues: from the rows that it wrote or found,
//! and from the steps that its lanes take now.

use super::Batch;
use super::failure::FailedStep;
use premath_kernel::issue::dispatch::{Discoveries, Discovery};
use premath_kernel::json::id::{BatchId, IssueId};
use premath_kernel::policy::landing::LandingRecord;
use premath_kernel::record::event::LandingCheck;
use premath_kernel::record::trajectory::{Account, BatchHistory, FailureStreaks, StepRow, action};
use premath_memory::{IssueMemory, IssueRow, MemoryView, StoreError};
use premath_worktree::landing::LandingError;
use std::collections::{BTreeMap, BTreeSet};
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
}

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
            *known = generation.max(*known);
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

    /// Returns how many attempts of an issue failed by themselves so far.
    pub(crate) fn attempts(&self, issue_id: &IssueId) -> u32 {
        self.knowledge()
            .history
            .batch(&self.id)
            .map_or(0, |batch| batch.attempts(issue_id))
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
