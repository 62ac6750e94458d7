//! The verification of a tree, in a checkout that only the harness writes: what
//! is judged is what would land, and not the lane in which the work was done.

use super::Lane;
use super::command::{Occasion, Phase, Ran};
use super::progress::Progress;
use super::step::StepError;
use super::watch::LeaseWatch;
use premath_kernel::record::boundary::Boundary;
use premath_memory::artifact;
use premath_memory::roots::lane_name;
use premath_worktree::tree::TreeState;

/// What is verified, and how.
pub(super) struct Verification<'a> {
    pub(super) phase: Phase,
    pub(super) command: &'a str,
    /// The commit whose tree is looked at.
    pub(super) commit: &'a str,
}

impl Lane {
    /// Verifies a commit; returns its tree where it passed. Otherwise the reason
    /// is in `progress`.
    pub(super) fn verify(
        &mut self,
        progress: &mut Progress,
        watch: &mut LeaseWatch,
        occasion: &Occasion<'_>,
        what: &Verification<'_>,
    ) -> Result<Option<TreeState>, StepError> {
        let alone = self.batch.landing.branches();
        self.tree.hold(&lane_name(&self.worktree), what.commit)?;
        drop(alone);
        self.batch.reached(Boundary::CandidateHeld);
        let state = match self.ready_checkout(occasion, watch, what.commit)? {
            Ok(state) => state,
            Err(failed) => {
                self.take_in(progress, *failed, Phase::VerifySetup);
                return Ok(None);
            }
        };
        self.batch.reached(Boundary::CheckoutReady);
        let before = Some(state.clone());
        let ran = self.run(what.phase, what.command, occasion, before, Some(watch))?;
        self.batch.reached(match what.phase {
            Phase::Landed => Boundary::LandingChecked,
            _ => Boundary::Verified,
        });
        let passed = self.take_in(progress, ran, what.phase);
        progress.is_warm |= passed && self.is_warm();
        Ok(passed.then_some(state))
    }

    /// Puts the checkout at a commit and makes it ready; the inner error is the
    /// setup that failed. What a setup makes is kept for later commits only
    /// where it ran on the commit that the batch began at.
    fn ready_checkout(
        &mut self,
        occasion: &Occasion<'_>,
        watch: &mut LeaseWatch,
        commit: &str,
    ) -> Result<Result<TreeState, Box<Ran>>, StepError> {
        if self.setup().is_none() {
            return Ok(Ok(self.put_checkout_at(commit)?));
        }
        let record = self.site.state.checkout_setup.clone();
        let phase = Phase::VerifySetup;
        let origin = self.site.origin.clone();
        self.put_checkout_at(&origin)?;
        if let Some(ran) = self.set_up(phase, occasion, Some(&mut *watch))?
            && !ran.passed()
        {
            return Ok(Err(Box::new(ran)));
        }
        let state = self.put_checkout_at(commit)?;
        match self.set_up(phase, occasion, Some(watch))? {
            Some(ran) if !ran.passed() => return Ok(Err(Box::new(ran))),
            Some(_) => {
                artifact::remove(&record)?;
                // What the base's build state rests on is another now.
                self.go_cold();
            }
            None => {}
        }
        Ok(Ok(state))
    }
}
