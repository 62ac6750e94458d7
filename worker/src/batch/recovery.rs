//! The rows that killed workers could not write any more.

use super::holder::is_alive;
use super::{Batch, BatchError};
use jiff::Timestamp;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::Status;
use premath_kernel::issue::lease::Claim;
use premath_kernel::json::id::{IssueId, StepId};
use premath_kernel::json::token;
use premath_kernel::policy::retry::{self, retry_at};
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::trajectory::{BlockedBy, ClosedIssue, RecoverAt, is_settled};
use premath_kernel::record::trajectory::{CrossingResult, WorldRecord, panicked_row};
use premath_kernel::record::world::WorldSelection;
use premath_memory::{IssueRow, StoreError, clock};
use premath_worktree::landing::{LandedMark, LandingError};
use std::collections::BTreeMap;
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

/// Returns the closes that an issue's row names, each with its time: the one before the
/// issue was reopened, and the last one. The time of the first is gone; it is not later
/// than the last change.
fn closes(row: &IssueRow) -> impl Iterator<Item = (ClosedIssue, String)> {
    let issue = &row.issue;
    let of = |step_id: &str, status: &Status, generation: Option<u64>| ClosedIssue {
        step_id: StepId::from(step_id),
        issue_id: IssueId::from(&*issue.id),
        assignee: issue.assignee.to_string(),
        status: status.as_str().to_owned(),
        generation: generation.unwrap_or(issue.lease_generation),
        instruction_ref: Some(row.text_of("closed_under")).filter(|under| !under.is_empty()),
    };
    let step = issue.closed_by_step.as_deref();
    let last = step.filter(|_| issue.status.is_terminal()).map(|step| {
        let closed = of(step, &issue.status, None);
        (closed, row.text_of("closed_at"))
    });
    let before = issue.reopened().map(|(step, generation)| {
        let closed = ClosedIssue {
            instruction_ref: None,
            ..of(&step, &Status::Closed, Some(generation))
        };
        (closed, row.text_of("updated_at"))
    });
    before.into_iter().chain(last)
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
        self.sweep_marks(at)?;
        Ok(())
    }

    /// Removes what landings left for a death of their harness, where the
    /// issue was closed and its row is written; at the end also where nothing landed and
    /// nothing works on the issue any more.
    fn sweep_marks(&self, at: RecoverAt) -> Result<(), StoreError> {
        let mut closed = BTreeMap::new();
        let mut unleased = BTreeMap::new();
        let is_written = |step: &StepId| self.trajectory.has_step(step).unwrap_or(false);
        self.memory.view(|view| {
            for row in view.rows() {
                let issue = token::encode_branch(&row.issue.id);
                let closed_by = row.issue.closed_by_step.as_deref().map(StepId::from);
                if closed_by.is_some_and(|step| is_written(&step)) {
                    closed.insert(issue, u64::MAX);
                    continue;
                }
                if let Some((step, generation)) = row.issue.reopened()
                    && is_written(&step)
                {
                    closed.insert(issue.clone(), generation);
                }
                if at == RecoverAt::End && row.issue.lease.is_none() {
                    unleased.insert(issue, row.issue.lease_generation);
                }
            }
        })?;
        let known = |of: &BTreeMap<String, u64>, issue: &str| of.get(issue).copied();
        let closed = |issue: &str| known(&closed, issue);
        self.landing
            .sweep_marks(closed, |issue| known(&unleased, issue));
        self.reached(Boundary::MarksSwept);
        Ok(())
    }

    /// Records the attempt of a lane that panicked: it failed by itself. Returns when its
    /// issue may be claimed again, where the policy waits. Where the attempt had closed or
    /// blocked its issue, what is missing is recovered from the issue's row.
    ///
    /// # Errors
    ///
    /// [`BatchError`].
    pub fn record_panicked(&self, claim: &Claim) -> Result<Option<Timestamp>, BatchError> {
        let step_id = StepId::of(&claim.owner, &claim.issue_id, claim.generation);
        let has_ended = self.memory.view(|view| {
            let row = view.row(&claim.issue_id)?;
            let closed = row.issue.was_closed_by(&step_id);
            let blocked = blocked_by(row).is_some_and(|by| by.step_id == step_id);
            Some(closed || blocked)
        })?;
        if has_ended == Some(true) {
            return Ok(None);
        }
        let class = FailureClass::LanePanicked.as_str();
        let earlier = self.earlier_failures(&claim.issue_id);
        let decision = retry::decide_next(&self.settings.retry, &[class], earlier);
        let now = clock::now().wall;
        let row = panicked_row(claim, &decision, &self.id, now);
        self.record(&row)?;
        let backoff = &self.settings.backoff;
        let wait = backoff.wait_of(&decision.backoff_class, decision.attempt, &step_id);
        Ok((!decision.is_escalation()).then(|| retry_at(now, wait)))
    }

    /// Returns the landing of an issue's work whose harness died before the close; none
    /// where the issue was closed under that lease and reopened since.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub(crate) fn landed(&self, issue_id: &IssueId) -> Result<Option<LandedMark>, LandingError> {
        let Some(mark) = self.landing.landed(issue_id)? else {
            return Ok(None);
        };
        let reopened = self.memory.view(|view| {
            let (_, generation) = view.issue(issue_id)?.reopened()?;
            Some(generation)
        });
        // Where issue memory cannot be read, the work is done again.
        let last = reopened.map_or(u64::MAX, |last| last.unwrap_or(0));
        Ok((mark.generation > last).then_some(mark))
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
        let grace = at.grace(self.others_run());
        let now = clock::now().wall;
        self.recover_blocked(grace, now)?;
        let has_row = |step: &StepId| self.trajectory.has_step(step).unwrap_or(false);
        let closed: Vec<ClosedIssue> = self.memory.view(|view| {
            let rows = view.rows();
            rows.flat_map(closes)
                .filter(|(closed, at)| {
                    grace.is_zero() || has_row(&closed.step_id) || is_settled(at, grace, now)
                })
                .map(|(closed, _)| closed)
                .collect()
        })?;
        closed
            .iter()
            .try_for_each(|closed| self.recover_closed(closed))
    }

    /// Gives the close of an issue before it was reopened its row, where it has none: it
    /// comes before the row of the attempt that begins. A worker that lives writes it
    /// right after its close, so it is waited for a moment.
    ///
    /// # Errors
    ///
    /// [`BatchError`].
    pub(crate) fn recover_reopened(&self, issue_id: &IssueId) -> Result<(), BatchError> {
        let closes = self.memory.view(|view| {
            let row = view
                .row(issue_id)
                .filter(|row| !row.issue.status.is_terminal());
            row.into_iter().flat_map(closes).collect::<Vec<_>>()
        })?;
        for _ in 0..FRESH_LOOKS {
            let mut steps = closes.iter().map(|(closed, _)| &closed.step_id);
            if steps.all(|step| self.trajectory.has_step(step).unwrap_or(false)) {
                return Ok(());
            }
            std::thread::sleep(FRESH / FRESH_LOOKS);
        }
        closes
            .iter()
            .try_for_each(|(closed, _)| self.recover_closed(closed))
    }

    /// Returns whether another batch runs on the issue store.
    fn others_run(&self) -> bool {
        let knowledge = self.knowledge();
        let mut others = knowledge.history.open().iter();
        others.any(|open| open.batch_id != self.id && is_alive(&open.holder))
    }

    /// Gives the step that closed an issue its row, where it has none.
    fn recover_closed(&self, closed: &ClosedIssue) -> Result<(), BatchError> {
        if !self.trajectory.has_step(&closed.step_id)? {
            let prefix = &self.settings.witness_prefix;
            let mut row = closed.recovered_row(&self.id, prefix, clock::now().wall);
            let landing = &self.landing;
            let landed = landing.landed_until(&closed.issue_id, closed.generation);
            let landed = landed.ok().flatten();
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
