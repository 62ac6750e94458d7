//! What landed: checked where the settings ask for it, adopted from an attempt
//! that was cut, taken off the target where it may not stay.

use super::attempt::Attempt;
use super::error::StageError;
use super::landing::{AdvancedLanding, ReadyToClose};
use super::step_failure::StepFailure;
use super::verify::VerificationTask;
use crate::lane::Lane;
use crate::lane::command::{CommandOwner, Phase};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::StepId;
use premath_memory::LandingLock;
use premath_worktree::landing::{LandedMark, LandingError, Undone};
use premath_worktree::tree::{Base, TreeState};

impl Lane {
    /// Runs the check on what landed earlier.
    fn check_landed(
        &mut self,
        attempt: &mut Attempt<'_>,
        owner: &CommandOwner<'_>,
        commit: &str,
        check: &str,
    ) -> Result<(), StageError> {
        let verification = VerificationTask {
            phase: Phase::Landed(0),
            command: check,
            commit,
        };
        let mut round = 0;
        let next = &mut || {
            round += 1;
            Some(Phase::Landed(round))
        };
        match self.verify_repeatedly(attempt, owner, &verification, next) {
            Ok(_) => Ok(()),
            Err(StageError::Failed(failure)) => Err(self.refused(&mut attempt.log, failure)),
            Err(error) => Err(error),
        }
    }

    /// Takes landed work that may not stay off the target.
    pub(super) fn take_off(
        &self,
        failure: &mut StepFailure,
        step_id: &StepId,
        landed: AdvancedLanding,
    ) -> Result<(), LandingError> {
        let commit = landed.record().commit.clone();
        let signer = self.batch.settings.signer.as_ref();
        let target = self.batch.landing.target();
        let was_there = self.batch.landing.has(&commit).unwrap_or(true);
        let undone = landed.undo(step_id, signer, failure.cut.is_some());
        if undone.is_err() && failure.cut.is_none() {
            // What failed is on the target, and others would be charged for it.
            self.batch.break_target(&commit);
        }
        let Some(undone) = undone? else {
            let text = format!("{target} keeps {commit}, which was verified with closed work");
            tracing::warn!(step = %step_id, "{text}");
            failure.note(&text);
            return Ok(());
        };
        let is_off = was_there && matches!(undone, Undone::Reset | Undone::Reverted(_));
        let text = match undone {
            Undone::Reset if !was_there => format!("{target} does not contain it any more"),
            Undone::Reset => format!("{target} was reset to the commit before it"),
            Undone::Foreign => {
                format!("{target} holds the work in {commit}, which the step did not land")
            }
            Undone::Reverted(revert) => {
                self.batch.owe_push();
                format!("{target} reverts it in {revert}")
            }
            Undone::Conflict => {
                // Others that landed with it may be reverted.
                self.batch.owe_push();
                // Work that did not fail its check breaks nothing.
                if failure.cut.is_none() {
                    self.batch.break_target(&commit);
                }
                failure.fail(FailureClass::LandingNotTakenBack.as_str());
                format!("{target} still contains {commit}, because later commits build on it")
            }
        };
        tracing::warn!(step = %step_id, "{text}");
        failure.note(&text);
        if is_off {
            self.warn_checked_out(failure);
        }
        Ok(())
    }

    /// Names the worktree in which a person has the target checked out: what was taken
    /// back is among its files still, and a commit there brings it back.
    fn warn_checked_out(&self, failure: &mut StepFailure) {
        let landing = &self.batch.landing;
        let Some(worktree) = landing.checked_out() else {
            return;
        };
        let text = format!(
            "{} is checked out in {}, whose files still have that work: look at `git status` \
             there before you commit",
            landing.target(),
            worktree.display()
        );
        tracing::warn!("{text}");
        failure.note(&text);
    }

    /// Adopts the landing of an earlier attempt, whose harness died before the
    /// close; the lane is at the target's tip, which passed.
    pub(super) fn adopt(
        &mut self,
        attempt: &mut Attempt<'_>,
        owner: &CommandOwner<'_>,
        base: &Base,
        tree: TreeState,
        mark: &LandedMark,
    ) -> Result<ReadyToClose, StageError> {
        if let Some(check) = self.batch.landing.rule().check.clone() {
            self.check_landed(attempt, owner, &base.commit, &check)?;
        }
        let lock = self.landing_is_there(attempt, mark)?;
        let ready = self.admitted(&mut attempt.log)?;
        let landing = AdvancedLanding::adopt(&self.batch, attempt.claim(), mark);
        let commit = landing.is_own()?.then(|| mark.commit.clone());
        Ok(ReadyToClose {
            ready,
            landing: Some(landing),
            lock: Some(lock),
            commit,
            tree,
        })
    }

    /// Returns the right to land, with which no other process takes the landing back.
    /// Ends the attempt uncharged where one did so while it was verified.
    fn landing_is_there(
        &self,
        attempt: &mut Attempt<'_>,
        mark: &LandedMark,
    ) -> Result<LandingLock, StageError> {
        let lock = attempt.landing_lock()?;
        self.batch.landing.refresh();
        let found = self.batch.landed(&attempt.claim().issue_id)?;
        if found.as_ref() == Some(mark) {
            return Ok(lock);
        }
        let (commit, target) = (&mark.commit, self.batch.landing.target());
        tracing::warn!(commit, target, "taken off the target while it was verified");
        Err(self.moved_meanwhile(attempt, 0))
    }

    /// Takes an earlier attempt's landed work off the target where it does not
    /// pass any more. Where the target is not at the commit that was `judged`, other
    /// work may have failed there: the attempt ends uncharged, and the next one judges
    /// again.
    pub(super) fn take_off_landed(
        &mut self,
        failure: &mut StepFailure,
        attempt: &mut Attempt<'_>,
        mark: &LandedMark,
        judged: &str,
    ) {
        if failure.cut.is_some() {
            return;
        }
        let _lock = match attempt.landing_lock() {
            Ok(lock) => lock,
            Err(stage_error) => return self.absorb(failure, stage_error),
        };
        self.batch.landing.refresh();
        match self.batch.landing.tip() {
            Ok(tip) if tip != judged => {
                tracing::warn!(judged, tip, "the target moved while landed work was judged");
                *failure = *StepFailure::of_interrupt();
                return;
            }
            Ok(_) => {}
            Err(error) => return self.absorb(failure, error),
        }
        let landed = AdvancedLanding::adopt(&self.batch, attempt.claim(), mark);
        if let Err(error) = self.take_off(failure, &attempt.log.step_id(), landed) {
            self.absorb(failure, error);
        }
    }
}
