//! Whether the verification passes without any work: asked before the first
//! step, and where one issue after the other fails it.

use super::super::warm::failed;
use super::super::{Lane, LanePlan, LaneState};
use super::BootError;
use crate::batch::{BaseVerdict, Batch};
use crate::supervisor::confine::scratch;
use premath_kernel::issue::Status;
use premath_memory::StoreError;
use std::sync::Arc;

/// Returns what a boot makes of what another lane found out.
fn answer(verdict: &BaseVerdict) -> Result<(), BootError> {
    match verdict {
        BaseVerdict::Passed => Ok(()),
        BaseVerdict::Failed(failed) => Err(BootError::Command(failed.clone())),
    }
}

impl Lane {
    /// Runs the startup verification, or the verification where there is none, on a
    /// commit, as a boot does on the one that its steps begin at. It runs where boots run
    /// none, too. Nothing else of a boot is done; the files of the worktree are not
    /// touched. What it needed and what was not there before is removed.
    ///
    /// # Errors
    ///
    /// [`BootError`], that of a command where it did not pass.
    pub(crate) fn verify_commit(
        batch: Arc<Batch>,
        plan: &LanePlan,
        commit: &str,
    ) -> Result<(), BootError> {
        let state = LaneState::at(&batch.settings.roots.repository, &plan.worktree);
        let was_there = state.folder.exists();
        let (mut lane, _) = Self::open(batch, plan)?;
        let ran = lane.verify_base_at(commit);
        lane.supervisor.close();
        lane.roots.remove_step_folder().map_err(StoreError::from)?;
        if !was_there {
            lane.forget_site()?;
        }
        ran
    }

    fn verify_base_at(&mut self, commit: &str) -> Result<(), BootError> {
        let hooks = &self.batch.settings.hooks;
        match hooks.startup.clone() {
            Some(command) => self.startup_at(&command, commit),
            None => self.verify_base(&hooks.verify.clone(), commit),
        }
    }

    /// Removes the checkout for verifications, and what is kept of the lane.
    fn forget_site(&self) -> Result<(), BootError> {
        let state = &self.site.state;
        for folder in [&state.checkout, &state.changes] {
            if folder.exists() {
                self.discard(folder)?;
            }
        }
        // Commands wrote this one.
        let git = &state.verification_git;
        scratch::remove(git).map_err(failed("remove", git))?;
        state.remove()?;
        // Other lanes may have theirs there.
        for place in [&state.checkout, &state.folder] {
            if let Some(above) = place.parent() {
                let _ = std::fs::remove_dir(above);
            }
        }
        Ok(())
    }

    /// Runs the startup verification: the startup command in each lane or, where
    /// there is none, the verify command on the base, once for the lanes that
    /// begin there. A base that work landed on in this batch was verified as it
    /// landed.
    pub(super) fn verify_at_startup(&mut self) -> Result<(), BootError> {
        let batch = self.batch.clone();
        if let Some(command) = &batch.settings.hooks.startup {
            return self.startup(command);
        }
        if !batch.settings.verify_base || !self.has_work()? {
            return Ok(());
        }
        let base = self.tree.base()?.commit;
        let mut known = batch.bases.lock();
        if let Some(verdict) = known.of(&base, batch.landing.is_on()) {
            return answer(verdict);
        }
        let ran = self.verify_base(&batch.settings.hooks.verify, &base);
        let verdict = match &ran {
            Ok(()) => Some(BaseVerdict::Passed),
            Err(BootError::Command(failed)) if !failed.is_interrupted() => {
                Some(BaseVerdict::Failed(failed.clone()))
            }
            Err(_) => None,
        };
        known.note(base, verdict);
        ran
    }

    /// Runs a verification on the base, as often as a verification is
    /// repeated.
    fn verify_base(&mut self, command: &str, commit: &str) -> Result<(), BootError> {
        let mut ran = self.startup_at(command, commit);
        for _ in 0..self.batch.settings.flaky_reruns {
            match &ran {
                Err(BootError::Command(failed)) if !failed.is_interrupted() => {}
                _ => break,
            }
            ran = self.startup_at(command, commit);
        }
        ran
    }

    /// Returns whether there is an issue that the batch may work on.
    fn has_work(&self) -> Result<bool, BootError> {
        let selection = &self.batch.settings.selection;
        let is_work = self.batch.memory.view(|view| {
            let mut rows = view.rows();
            rows.any(|row| {
                matches!(row.issue.status, Status::Open | Status::InProgress)
                    && selection.admits(&row.issue)
            })
        })?;
        Ok(is_work)
    }

    /// Runs the startup verification, or the verification where there is none,
    /// where the next step would begin; an interrupt is not an answer, and
    /// reads as passed.
    ///
    /// # Errors
    ///
    /// [`BootError`] where the lane cannot continue.
    pub fn baseline(&mut self) -> Result<bool, BootError> {
        self.roots.secure()?;
        self.refuse_dirty()?;
        self.to_the_target()?;
        let hooks = &self.batch.settings.hooks;
        let command = hooks.startup.as_ref().unwrap_or(&hooks.verify).clone();
        match self.startup(&command) {
            Ok(()) => Ok(true),
            Err(BootError::Command(failed)) => Ok(failed.is_interrupted()),
            Err(error) => Err(error),
        }
    }
}
