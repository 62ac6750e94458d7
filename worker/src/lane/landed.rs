//! What landed: checked where the settings ask for it, taken over from an
//! attempt that was cut, taken back where it may not stay.

use super::Lane;
use super::command::{Occasion, Phase};
use super::progress::Progress;
use super::step::StepError;
use super::verify::Verification;
use super::watch::LeaseWatch;
use premath_kernel::failure::FailureClass;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::turn::{Close, MutationReady};
use premath_worktree::landing::{LandingTicket, Undone};
use premath_worktree::tree::Base;

impl Lane {
    /// Runs the check on what landed, and judges the turn with it; `None` where
    /// it must not stay.
    pub(super) fn check_landed(
        &mut self,
        progress: &mut Progress,
        watch: &mut LeaseWatch,
        occasion: &Occasion<'_>,
        commit: &str,
        check: &str,
    ) -> Result<Option<MutationReady<Close>>, StepError> {
        let verification = Verification {
            phase: Phase::Landed,
            command: check,
            commit,
        };
        let passed = self
            .verify(progress, watch, occasion, &verification)?
            .is_some();
        let ready = self.judge(progress)?;
        Ok(ready.filter(|_| passed))
    }

    /// Reverts landed work that may not stay; returns a description.
    pub(super) fn take_off(
        &self,
        progress: &mut Progress,
        occasion: &Occasion<'_>,
        commit: &str,
    ) -> Result<(), StepError> {
        let landing = &self.batch.landing;
        let signer = self.batch.settings.signer.as_ref();
        let undone = landing.undo(commit, occasion.step_id, signer)?;
        self.batch.reached(Boundary::LandingUndone);
        landing.unmark(occasion.issue_id);
        self.batch.reached(Boundary::UndoneUnmarked);
        let target = landing.target();
        let text = match undone {
            Undone::Reset => format!("{target} was reset to the commit before it"),
            Undone::Reverted(revert) => format!("{target} reverts it in {revert}"),
            Undone::Conflict => {
                progress.fail(FailureClass::LandingNotTakenBack.as_str());
                format!("{target} still contains {commit}, because later commits build on it")
            }
        };
        tracing::warn!(step = %occasion.step_id, "{text}");
        if let Some((said, _)) = &mut progress.said {
            *said = format!("{said} ({text})");
        }
        Ok(())
    }

    /// Takes the landing of an earlier attempt over, whose harness died before
    /// the close; the lane is at the target's tip, which passed.
    pub(super) fn adopt(
        &mut self,
        progress: &mut Progress,
        watch: &mut LeaseWatch,
        occasion: &Occasion<'_>,
        base: &Base,
        commit: &str,
    ) -> Result<Option<MutationReady<Close>>, StepError> {
        let batch = self.batch.clone();
        let ready = match &batch.landing.rule().check {
            None => self.judge(progress)?,
            Some(check) => self.check_landed(progress, watch, occasion, &base.commit, check)?,
        };
        if ready.is_some() {
            progress.landing = Some(batch.landing.record(commit));
            progress.commit = Some(commit.to_owned());
        }
        Ok(ready)
    }

    /// Takes an earlier attempt's landed work off the target where it does not
    /// pass any more.
    pub(super) fn take_off_landed(
        &self,
        progress: &mut Progress,
        watch: &mut LeaseWatch,
        occasion: &Occasion<'_>,
        mut turn: LandingTicket<'_>,
        commit: &str,
    ) -> Result<(), StepError> {
        if progress.cut.is_some() || !self.await_turn(progress, watch, &mut turn)? {
            return Ok(());
        }
        self.take_off(progress, occasion, commit)
    }
}
