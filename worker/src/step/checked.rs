//! Work that landed and whose issue is yet to close: it is checked while other
//! work lands on top, or waits for the verification that it rests on.

use super::attempt::Attempt;
use super::error::{StageError, StepError};
use super::landing::AdvancedLanding;
use super::queued::QueuedWork;
use super::step_failure::StepFailure;
use super::verify::VerificationTask;
use crate::lane::Lane;
use crate::lane::command::CommandOwner;
use premath_kernel::policy::landing_queue::CheckEnd;
use premath_kernel::turn::{Close, MutationReady};
use std::time::Instant;

/// A landing whose issue may close, and the right to close it.
type Closable = (MutationReady<Close>, AdvancedLanding);

impl Lane {
    /// Checks what landed, and takes it off the target where it may not stay.
    /// `None` where it was taken back with other work, and is to land again.
    pub(super) fn check_advanced(
        &mut self,
        attempt: &mut Attempt<'_>,
        owner: &CommandOwner<'_>,
        queued: &mut QueuedWork<'_>,
        landed: AdvancedLanding,
    ) -> Result<Option<Closable>, StageError> {
        let (mark, waited, began) = (attempt.log.mark(), attempt.log.waited, Instant::now());
        let commit = landed.record().commit.clone();
        let (issue_id, batch) = (attempt.claim().issue_id.clone(), self.batch.clone());
        // Reverted work is not there, although the target has its commit. Where that cannot
        // be found out, the witness of the landing shows it.
        let is_there = || match batch.landed(&issue_id) {
            Ok(mark) => mark.is_some_and(|mark| mark.commit == commit),
            Err(_) => true,
        };
        let end = match self.check_in_turn(attempt, owner, queued, &landed) {
            Ok(CheckEnd::MayClose) if !is_there() => {
                tracing::warn!(commit, "taken off the target while it was checked");
                Err(self.moved_meanwhile(attempt, queued.land_round()))
            }
            Ok(CheckEnd::MayClose) => match self.admitted(&mut attempt.log) {
                Ok(ready) if self.may_close(queued) => return Ok(Some((ready, landed))),
                // Work that was verified as one with it was taken back just now.
                Ok(_) => Ok(CheckEnd::LandAgain),
                Err(refused) => Err(refused),
            },
            end => end,
        };
        match end {
            Ok(CheckEnd::Leave) => {
                // Its mark stays: the next attempt adopts the landing.
                drop(landed);
                Err(StepFailure::of_interrupt().into())
            }
            Ok(end) => {
                match end {
                    CheckEnd::Withdraw => self.withdraw(owner, landed)?,
                    // It could not be taken back, and rests on work that nothing checks:
                    // its mark keeps other work from landing on it.
                    _ if is_there() => drop(landed),
                    _ => landed.unmark(),
                }
                attempt.log.discard_from(mark);
                // All of it, and with that what was counted meanwhile.
                attempt.log.waited = waited + began.elapsed();
                Ok(None)
            }
            Err(stage_error) => Err(self.take_off_failed(owner, landed, stage_error)),
        }
    }

    /// Returns whether the work is still on the target, where it stays from now
    /// on. What is verified as one may be taken back by each of its steps.
    fn may_close(&self, queued: &QueuedWork<'_>) -> bool {
        self.batch.landing.rule().batch() == 1 || queued.place.closing()
    }

    /// Takes landed work whose step failed off the target; returns the failure.
    fn take_off_failed(
        &mut self,
        owner: &CommandOwner<'_>,
        landed: AdvancedLanding,
        stage_error: StageError,
    ) -> StageError {
        let mut failure = match stage_error {
            StageError::Failed(failure) => failure,
            StageError::Error(error) => {
                let mut failure = Box::<StepFailure>::default();
                let undone = self.take_off(&mut failure, owner.step_id, landed);
                let error = undone.err().map_or(error, StepError::from);
                self.absorb(&mut failure, error);
                return failure.into();
            }
        };
        if let Err(error) = self.take_off(&mut failure, owner.step_id, landed) {
            self.absorb(&mut failure, error);
        }
        failure.into()
    }

    /// Takes landed work that nothing verifies off the target.
    fn withdraw(
        &self,
        owner: &CommandOwner<'_>,
        landed: AdvancedLanding,
    ) -> Result<(), StageError> {
        let mut failure = Box::<StepFailure>::default();
        self.take_off(&mut failure, owner.step_id, landed)?;
        match failure.classes.is_empty() {
            true => Ok(()),
            false => Err(failure.into()),
        }
    }

    /// Checks a commit while other work lands on top of it, and waits for its
    /// turn.
    fn check_in_turn(
        &mut self,
        attempt: &mut Attempt<'_>,
        owner: &CommandOwner<'_>,
        queued: &mut QueuedWork<'_>,
        landed: &AdvancedLanding,
    ) -> Result<CheckEnd, StageError> {
        let commit = &landed.record().commit;
        let check = self.batch.landing.rule().check.clone();
        let mut failed = None;
        match check {
            // It is checked with the last commit of those that are verified as one.
            _ if queued.rides.is_some() => {}
            None => drop(queued.place.checked(true)),
            Some(check) if attempt.await_check_slot(&queued.place)? => {
                let verification = VerificationTask {
                    phase: queued.next_check(),
                    command: &check,
                    commit,
                };
                attempt.watch.follow(Some(queued.place.ticket()));
                let next = &mut || Some(queued.next_check());
                let verified = self.verify_repeatedly(attempt, owner, &verification, next);
                attempt.watch.follow(None);
                failed = match verified {
                    Ok(_) => None,
                    Err(StageError::Failed(failure)) if failure.is_of_the_command() => {
                        Some(failure)
                    }
                    Err(stage_error) => return Err(stage_error),
                };
                queued.place.checked(failed.is_none());
            }
            Some(_) => {}
        }
        match attempt.await_check(&queued.place)? {
            CheckEnd::TakeBack => {
                let failure = failed.unwrap_or_default();
                Err(self.refused(&mut attempt.log, failure))
            }
            end => {
                match end {
                    CheckEnd::LandAgain => {
                        tracing::info!(commit, "taken back with work below it; lands again");
                    }
                    CheckEnd::Withdraw => {
                        tracing::info!(commit, "verified with work that does not land");
                    }
                    CheckEnd::Leave => {
                        tracing::warn!(commit, "verified with work whose issue did not close");
                    }
                    CheckEnd::MayClose | CheckEnd::TakeBack => {}
                }
                Ok(end)
            }
        }
    }
}
