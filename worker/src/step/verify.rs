//! The verification of a tree, in a checkout that only the harness writes: what
//! is judged is what would land, and not the lane in which the work was done.

use super::attempt::Attempt;
use super::error::StageError;
use super::log::StepLog;
use super::verifications::JudgedTree;
use crate::lane::Lane;
use crate::lane::command::{CommandOwner, Phase, Ran};
use crate::lane::watch::LeaseWatch;
use premath_kernel::record::boundary::Boundary;
use premath_memory::artifact;
use premath_memory::roots::lane_name;
use premath_worktree::tree::TreeState;

/// What is verified, and how.
pub(super) struct VerificationTask<'a> {
    pub(super) phase: Phase,
    pub(super) command: &'a str,
    /// The commit whose tree is looked at.
    pub(super) commit: &'a str,
}

impl Lane {
    /// Verifies a commit; returns its tree where it passed. A command that fails
    /// is repeated on the same tree, as often as the settings allow: where it
    /// passes then, the failure is recorded as flaky.
    pub(super) fn verify_repeatedly(
        &mut self,
        attempt: &mut Attempt<'_>,
        owner: &CommandOwner<'_>,
        what: &VerificationTask<'_>,
        next: &mut dyn FnMut() -> Option<Phase>,
    ) -> Result<TreeState, StageError> {
        let began = attempt.log.mark();
        let mut failed = match self.verify(attempt, owner, what) {
            Err(StageError::Failed(failure)) if failure.may_pass_again() => failure,
            verified => return verified,
        };
        let mut red = attempt.log.mark();
        for _ in 0..self.batch.settings.flaky_reruns {
            let Some(phase) = next() else { break };
            let before = attempt.log.mark();
            let again = VerificationTask { phase, ..*what };
            match self.verify(attempt, owner, &again) {
                Ok(state) => {
                    tracing::info!(phase = phase.name(), "passes when repeated: flaky");
                    attempt.log.discard_between(&began, &before);
                    return Ok(state);
                }
                // What an agent can mend says more than what may pass by itself.
                Err(StageError::Failed(failure)) if failure.is_red() && !failed.is_red() => {
                    attempt.log.discard_between(&began, &before);
                    red = attempt.log.mark();
                    failed = failure;
                }
                Err(StageError::Failed(failure)) if failure.may_pass_again() => {}
                cut => return cut,
            }
        }
        attempt.log.discard_from(red);
        Err(failed.into())
    }

    /// Verifies a commit once; returns its tree where it passed.
    pub(super) fn verify(
        &mut self,
        attempt: &mut Attempt<'_>,
        owner: &CommandOwner<'_>,
        what: &VerificationTask<'_>,
    ) -> Result<TreeState, StageError> {
        let (log, watch) = (&mut attempt.log, &mut attempt.watch);
        // Work without a change is verified at the commit of the lane's HEAD, which holds it.
        let base = self.tree.base();
        let is_held = base.is_ok_and(|base| base.commit == what.commit);
        if !is_held {
            let _alone = self.batch.landing.branches();
            self.tree.hold(&lane_name(&self.worktree), what.commit)?;
        }
        self.batch.reached(Boundary::CandidateHeld);
        let state = match self.ready_checkout(owner, log, watch, what.commit)? {
            Ok(state) => state,
            Err(failed) => {
                let failed = self.take_in(log, *failed, Phase::VerifySetup);
                return Err(failed.err().unwrap_or_default().into());
            }
        };
        self.batch.reached(Boundary::CheckoutReady);
        let before = Some(state.clone());
        let ran = self.run(what.phase, what.command, owner, before, Some(watch))?;
        let witness = ran.witness_ref.clone();
        self.batch.reached(match what.phase {
            Phase::Landed(_) => Boundary::LandingChecked,
            _ => Boundary::Verified,
        });
        let ended = self.take_in(log, ran, what.phase);
        let judged = JudgedTree {
            tree: state.tree.clone(),
            is_check: matches!(what.phase, Phase::Landed(_)),
        };
        match &ended {
            Ok(()) => log.verified.passed(judged),
            Err(failure) if failure.may_pass_again() => log.verified.failed(judged, witness),
            Err(_) => {}
        }
        ended?;
        if self.is_warm() {
            log.verified.is_warm = true;
            // Before it lands: a harness that dies afterwards leaves the debt.
            self.record_tip_debt()?;
        }
        Ok(state)
    }

    /// Puts the checkout at a commit and makes it ready; the inner error is the
    /// setup that failed. What a setup makes is kept for later commits only
    /// where it ran on the commit that the batch began at.
    fn ready_checkout(
        &mut self,
        owner: &CommandOwner<'_>,
        log: &mut StepLog,
        watch: &mut LeaseWatch,
        commit: &str,
    ) -> Result<Result<TreeState, Box<Ran>>, StageError> {
        if self.setup().is_none() {
            return Ok(Ok(self.put_checkout_at(commit)?));
        }
        let record = self.site.state.checkout_setup.clone();
        let phase = Phase::VerifySetup;
        let origin = self.site.origin.clone();
        if !self.is_checkout_set_up(&origin)? {
            self.put_checkout_at(&origin)?;
            match self.set_up(phase, owner, Some(&mut *watch))? {
                Some(ran) if !ran.passed() => return Ok(Err(Box::new(ran))),
                // It may be the repetition of one that failed, whose witness is gone.
                Some(ran) => log.witnesses.insert(&ran.witness_ref),
                None => false,
            };
        }
        let state = self.put_checkout_at(commit)?;
        match self.set_up(phase, owner, Some(watch))? {
            Some(ran) if !ran.passed() => return Ok(Err(Box::new(ran))),
            Some(ran) => {
                log.witnesses.insert(&ran.witness_ref);
                artifact::remove(&record)?;
                // What the base's build state rests on is another now.
                self.leave_build_state();
            }
            None => {}
        }
        Ok(Ok(state))
    }
}
