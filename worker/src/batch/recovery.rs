//! The rows that killed workers could not write any more.

use super::holder::is_alive;
use super::{Batch, BatchError};
use jiff::Timestamp;
use premath_kernel::issue::Status;
use premath_kernel::json::id::{IssueId, StepId};
use premath_kernel::json::token;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::trajectory::{BlockedBy, ClosedIssue, RecoverAt, is_settled};
use premath_kernel::record::trajectory::{CrossingResult, WorldRecord};
use premath_kernel::record::world::WorldSelection;
use premath_memory::{IssueRow, StoreError, clock};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How fresh a close is whose row is waited for, and in how many looks.
const FRESH: Duration = Duration::from_secs(1);
const FRESH_LOOKS: u32 = 20;

/// Returns the step that blocked an issue.
fn blocked_by(row: &IssueRow) -> Option<BlockedBy> {
    if row.issue.status != Status::Blocked {
        return None;
    }
    let by = row.value().get("blocked_by")?.clone();
    serde_json::from_value(by).ok()
}

impl Batch {
    /// Gives closed and blocked issues whose step has no row the row that a
    /// killed worker could not write any more.
    ///
    /// A worker that lives writes its row right after its close, and knows
    /// more: while another batch runs, fresh closes are left to it.
    ///
    /// # Errors
    ///
    /// [`BatchError`].
    pub fn recover_rows(&self, at: RecoverAt) -> Result<(), BatchError> {
        if at == RecoverAt::End {
            // A worker elsewhere that closed something just now writes its row
            // in the next instant.
            for _ in 0..FRESH_LOOKS {
                if self.missing_rows(Duration::ZERO)? == self.missing_rows(FRESH)? {
                    break;
                }
                std::thread::sleep(FRESH / FRESH_LOOKS);
            }
        }
        self.recover(at)?;
        if at == RecoverAt::End {
            self.sweep_marks()?;
        }
        Ok(())
    }

    /// Removes what landings left for a death of their harness, where the
    /// issue is closed and its row is written, or nothing landed and nothing
    /// works on the issue any more.
    fn sweep_marks(&self) -> Result<(), StoreError> {
        let mut over = BTreeSet::new();
        let mut unleased = BTreeMap::new();
        self.memory.view(|view| {
            for row in view.rows() {
                let issue = token::encode_branch(&row.issue.id);
                let closed_by = row.issue.closed_by_step.as_deref().map(StepId::from);
                if closed_by.is_some_and(|step| self.trajectory.has_step(&step).unwrap_or(false)) {
                    over.insert(issue);
                } else if row.issue.lease.is_none() {
                    unleased.insert(issue, row.issue.lease_generation);
                }
            }
        })?;
        let is_over = |issue: &str| over.contains(issue);
        let generation = |issue: &str| unleased.get(issue).copied();
        self.landing.sweep_marks(is_over, generation);
        self.reached(Boundary::MarksSwept);
        Ok(())
    }

    /// Counts the closed and blocked issues whose step has no row and ended
    /// longer ago than a grace.
    fn missing_rows(&self, grace: Duration) -> Result<usize, StoreError> {
        let now = clock::now().wall;
        self.memory.view(|view| {
            view.rows()
                .filter(|row| {
                    let closed = row.issue.closed_by_step.as_deref();
                    let (step, at) = match closed {
                        Some(step) => (Some(StepId::from(step)), "closed_at"),
                        None => (blocked_by(row).map(|by| by.step_id), "updated_at"),
                    };
                    step.is_some_and(|step| {
                        !self.trajectory.has_step(&step).unwrap_or(true)
                            && is_settled(&row.text_of(at), grace, now)
                    })
                })
                .count()
        })
    }

    /// Returns the other world that a closed issue was worked on in.
    fn world_of(&self, issue_id: &IssueId) -> Result<Option<WorldRecord>, StoreError> {
        self.memory.view(|view| {
            let issue = view.issue(issue_id)?;
            match WorldSelection::of(issue.labels.iter().map(|label| &**label)) {
                WorldSelection::There(name) => Some(WorldRecord {
                    crossing: Some(CrossingResult::Accepted),
                    ..WorldRecord::named(name)
                }),
                WorldSelection::Here | WorldSelection::Unclear { .. } => None,
            }
        })
    }

    /// Records the failed attempts of issues that were blocked by a step without
    /// a row.
    fn recover_blocked(&self, grace: Duration, now: Timestamp) -> Result<(), BatchError> {
        let blocked: Vec<(IssueId, BlockedBy)> = self.memory.view(|view| {
            view.rows()
                .filter(|row| is_settled(&row.text_of("updated_at"), grace, now))
                .filter_map(|row| Some((IssueId::from(&*row.issue.id), blocked_by(row)?)))
                .collect()
        })?;
        for (issue_id, by) in blocked {
            if !self.trajectory.has_step(&by.step_id)? {
                let row = by.recovered_row(&issue_id, &self.id, clock::now().wall);
                self.record(&row)?;
                self.reached(Boundary::RowRecovered);
            }
        }
        Ok(())
    }

    fn recover(&self, at: RecoverAt) -> Result<(), BatchError> {
        let others = self
            .knowledge()
            .history
            .open()
            .iter()
            .any(|open| open.batch_id != self.id && is_alive(&open.holder));
        let grace = at.grace(others);
        let now = clock::now().wall;
        self.recover_blocked(grace, now)?;
        let closed: Vec<ClosedIssue> = self.memory.view(|view| {
            view.rows()
                .filter_map(|row| {
                    let step = StepId::from(row.issue.closed_by_step.as_deref()?);
                    if !grace.is_zero()
                        && !self.trajectory.has_step(&step).unwrap_or(false)
                        && !is_settled(&row.text_of("closed_at"), grace, now)
                    {
                        return None;
                    }
                    row.issue.status.is_terminal().then(|| ClosedIssue {
                        step_id: step,
                        issue_id: IssueId::from(&*row.issue.id),
                        assignee: row.issue.assignee.to_string(),
                        status: row.issue.status.as_str().to_owned(),
                        generation: row.issue.lease_generation,
                        instruction_ref: Some(row.text_of("closed_under"))
                            .filter(|instruction| !instruction.is_empty()),
                    })
                })
                .collect()
        })?;
        for closed in closed {
            if self.trajectory.has_step(&closed.step_id)? {
                continue;
            }
            let prefix = &self.settings.witness_prefix;
            let mut row = closed.recovered_row(&self.id, prefix, clock::now().wall);
            let landed = self.landing.landed(&closed.issue_id).ok().flatten();
            row.landing = landed.map(|mark| self.landing.record(&mark.commit));
            if row.landing.is_some() {
                self.owe_push();
            }
            // It closed because the other world had admitted its turn.
            if row.landing.is_none() {
                row.world = self.world_of(&closed.issue_id)?;
            }
            self.record(&row)?;
            self.reached(Boundary::RowRecovered);
        }
        Ok(())
    }
}
