//! What a killed harness, or a person, left in the worktree.

use super::super::Lane;
use super::{BootError, TAKING_UP};
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::session::{SessionState, SessionStep, SessionWrite};
use premath_kernel::record::trajectory::salvage_row;
use premath_memory::clock;
use premath_worktree::tree::{Base, CommitText, TreeError};
use std::time::Duration;

impl Lane {
    /// Takes up what a killed harness left in this worktree: what its step did
    /// is salvaged, and the tree goes back to the step's base, unless that
    /// step had closed its issue.
    pub(crate) fn take_up(&mut self) -> Result<Option<String>, BootError> {
        let cut = match &self.session {
            Some(session) if session.state == SessionState::Active => session.step.clone(),
            _ => None,
        };
        let Some(step) = cut else {
            return Ok(None);
        };
        if let Some(world) = &step.world
            && !self.return_to_remote(world)?
        {
            // Nothing of it is left to be taken up.
            return Ok(None);
        }
        let taken = self.take_up_here(&step);
        self.leave_world();
        taken
    }

    /// Takes up a step in the worktree that it worked in.
    fn take_up_here(&mut self, step: &SessionStep) -> Result<Option<String>, BootError> {
        let closed = self.batch.memory.view(|view| {
            view.issue(&step.issue_id)
                .is_some_and(|issue| issue.was_closed_by(&step.step_id))
        })?;
        if self.session.as_ref().and_then(|s| s.next_step.as_deref()) != Some(TAKING_UP) {
            self.refuse_moved(step)?;
        }
        let base = if closed {
            self.tree.base()?
        } else {
            Base {
                commit: step.base_commit.clone(),
                branch: step.base_branch.clone(),
            }
        };
        // Should this be cut in turn, what it did is not taken for a person's.
        self.write_session(SessionWrite {
            state: SessionState::Active,
            next_step: Some(TAKING_UP.to_owned()),
            ..SessionWrite::default()
        })?;
        self.batch.reached(Boundary::RecoveryBegun);
        let salvage = self.back_to(&base, step)?;
        self.batch.reached(Boundary::WorkSalvaged);
        self.reset(&base)?;
        self.batch.reached(Boundary::LaneRestored);
        let salvage = salvage.map(|salvage| self.kept(salvage));
        if let Some(salvage) = &salvage {
            self.record_salvage(&step.step_id, salvage, Some(step))?;
            self.batch.reached(Boundary::SalvageRecorded);
        }
        self.leave_branch(step, closed);
        self.batch.reached(Boundary::BranchRecovered);
        Ok(salvage)
    }

    /// Refuses a worktree that a user changed after the interrupted step had
    /// ended: going back to its base would move that work away.
    fn refuse_moved(&self, step: &SessionStep) -> Result<(), BootError> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        let limits = &self.batch.settings.limits;
        let margin = limits.verify + limits.grace * 3 + Duration::from_secs(60);
        // A step does not outlive its lease; one that closed its issue has none.
        let over = self.batch.memory.view(|view| {
            let row = view.row(&step.issue_id)?;
            let at = match &row.issue.lease {
                Some(lease) if lease.generation == step.generation => lease.expires_at.to_string(),
                _ if row.issue.closed_by_step.as_deref() == Some(&step.step_id) => {
                    row.text_of("closed_at")
                }
                _ => return None,
            };
            premath_kernel::json::time::parse(&at)
        })?;
        let (from, longest) = match over {
            Some(at) => (at, margin),
            None => (
                session.updated_at.time(),
                limits.step + limits.verify + margin,
            ),
        };
        let last = from.saturating_add(longest).unwrap_or(from);
        if self
            .tree
            .last_touched(&step.base_commit, clock::now().wall)?
            <= last
        {
            return Ok(());
        }
        Err(BootError::Moved {
            worktree: self.worktree.clone(),
            step_id: step.step_id.clone(),
            session: self.home.session.clone(),
        })
    }

    /// Salvages and restores.
    pub(crate) fn back_to(
        &self,
        base: &Base,
        step: &SessionStep,
    ) -> Result<Option<String>, TreeError> {
        let lease = format!("{}#{}", step.lease_id, step.generation);
        let text = CommitText {
            issue_id: &step.issue_id,
            title: "cut or failed step",
            lease: &lease,
            step_id: &step.step_id,
            ..CommitText::default()
        };
        let since = self
            .session
            .as_ref()
            .map(|session| session.updated_at.time());
        let salvage = self.tree.take_back(base, step.generation, &text, since)?;
        self.tree.must_be_clean()?;
        Ok(salvage.map(|salvage| salvage.to_string()))
    }

    /// Clears a worktree that the harness made: leftover work is saved like a
    /// step's, and the lane stays usable.
    pub(crate) fn clear(&self) -> Result<Option<String>, BootError> {
        if self.tree.settled_changes()?.is_empty() {
            return Ok(None);
        }
        let text = CommitText {
            issue_id: &self.worker_id,
            title: "found in the lane",
            lease: "none",
            step_id: "none",
            ..CommitText::default()
        };
        let base = self.tree.base()?;
        let salvage = self.tree.take_back(&base, 0, &text, None)?;
        self.reset(&base)?;
        let salvage = salvage.map(|salvage| self.kept(salvage.to_string()));
        if let Some(salvage) = &salvage {
            let stamp = clock::now().wall.as_microsecond();
            self.record_salvage(&format!("{}.{stamp}", self.worker_id), salvage, None)?;
        }
        Ok(salvage)
    }

    /// Names what was put aside in the trajectory.
    fn record_salvage(
        &self,
        what: &str,
        salvage: &str,
        step: Option<&SessionStep>,
    ) -> Result<(), BootError> {
        let now = clock::now().wall;
        let mut row = salvage_row(self.batch.id(), &self.worker_id, what, salvage, now);
        row.issue_id = step.map(|step| step.issue_id.clone());
        row.generation = step.map(|step| step.generation);
        self.batch.record_once(&row)?;
        Ok(())
    }
}
