//! What every stage of a step carries: its claim, its log, and the watch over
//! its lease.

use super::error::StageError;
use super::failed::Failed;
use super::log::StepLog;
use super::step_failure::StepFailure;
use super::work::WorkDone;
use super::work_bound::WorkBound;
use crate::batch::{Abandoned, Batch, LandingPlace, LandingReservation, PlaceStep};
use crate::interrupt::{LOOK, Level};
use crate::lane::Lane;
use crate::lane::watch::LeaseWatch;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::lease::{self, Claim};
use premath_kernel::policy::landing::CHECKOUT_MAX;
use premath_kernel::policy::landing_queue::{CheckEnd, CheckStart};
use premath_kernel::record::live::StepPhase;
use premath_memory::LandingLock;
use premath_memory::{Claimed, clock};
use premath_worktree::landing::LandingError;
use premath_worktree::tree::Base;
use std::time::Instant;

/// A step under way.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    pub(super) batch: &'a Batch,
    pub(super) claimed: &'a Claimed,
    /// What bounds how many issues are worked on at once.
    pub(super) bound: &'a dyn WorkBound,
    pub(super) log: StepLog,
    pub(super) watch: LeaseWatch,
    /// How many verifications of work that has not passed yet ran.
    pub(super) verified_runs: usize,
    /// On how many states its work was verified in earlier repair rounds.
    pub(super) verified_states: usize,
    /// The right to land before all others, where the attempt has it.
    pub(super) reservation: Option<LandingReservation<'a>>,
}

impl<'a> Attempt<'a> {
    /// Returns the claim.
    pub(super) fn claim(&self) -> &'a Claim {
        &self.claimed.claim
    }

    /// Ends the step: it failed, with what is needed to stop.
    pub(super) fn failed(
        self,
        lane: &mut Lane,
        base: Option<Base>,
        work: WorkDone,
        stage_error: StageError,
    ) -> Box<Failed> {
        let mut failure = StepFailure::default();
        lane.absorb(&mut failure, stage_error);
        Box::new(Failed {
            log: self.log,
            base,
            work,
            failure,
        })
    }

    /// Fails where the lease can no longer be relied on, by its own clock.
    pub(super) fn look_at_lease(&mut self) -> Result<(), Box<StepFailure>> {
        self.watch.look().map_err(StepFailure::of_lease)
    }

    /// Fails where memory does not have the lease as the claim has it.
    pub(super) fn fence(&self) -> Result<(), StageError> {
        let claim = self.claim();
        let memory = &self.batch.memory;
        let held = memory.view(|view| match view.issue(&claim.issue_id) {
            Some(issue) => lease::fence(issue, &claim.key(), &clock::observe())
                .map_err(|refusal| refusal.class),
            None => Err(FailureClass::LeaseNotFound),
        });
        held?.map_err(|class| StepFailure::of_lease(class).into())
    }

    /// Waits for a change after the ones that were counted, or until the lease is
    /// to be looked at. What is waited for others is not held against the issue.
    fn pause(&mut self, seen: u64) {
        let began = Instant::now();
        let worker_id = &self.log.identity.worker_id;
        self.batch.note_phase(worker_id, StepPhase::Waiting);
        self.batch.interrupt.wait_since(seen, LOOK);
        self.log.waited += began.elapsed();
    }

    /// Fails where the lease or an interrupt ends the step.
    fn look(&mut self) -> Result<(), Box<StepFailure>> {
        self.look_at_lease()?;
        if self.batch.interrupt.level() >= Level::Kill {
            return Err(StepFailure::of_interrupt());
        }
        if self.watch.is_cancelled() {
            return Err(StepFailure::of_cancellation());
        }
        Ok(())
    }

    /// Reserves the next landing for the last attempt of an issue whose work
    /// conflicted, so that what other lanes land cannot make it conflict again.
    /// Waits while another issue has the reservation, while work is in the queue that
    /// assumes nothing, and until work has landed that lands in spite of it.
    pub(super) fn reserve_landing(&mut self) -> Result<(), StageError> {
        let (batch, issue_id) = (self.batch, &self.claim().issue_id);
        if !batch.landing.merges() || !batch.is_last_after_conflict(issue_id) {
            return Ok(());
        }
        loop {
            let seen = batch.interrupt.changes();
            self.look()?;
            if self.reservation.is_none() {
                self.reservation = batch.reserve_landing(issue_id);
            }
            if self.reservation.is_some() && !batch.owes_landing() {
                break;
            }
            // Its work has not begun: there is nothing to finish.
            if batch.interrupt.level() >= Level::Drain {
                return Err(StepFailure::of_interrupt().into());
            }
            self.pause(seen);
        }
        // What was landing when it was reserved has landed now, or not.
        drop(self.landing_lock()?);
        tracing::info!("reserved the next landing: the last attempt after a conflict");
        Ok(())
    }

    /// Waits until the agent may work again: its lane may have begun another issue
    /// meanwhile. `false` where it may not, because the batch drains.
    ///
    /// With the right to land next it does not wait: the other issue may be waiting
    /// for that.
    pub(super) fn await_mending(&mut self) -> Result<bool, Box<StepFailure>> {
        self.bound.ask_again();
        loop {
            let seen = self.batch.interrupt.changes();
            self.look()?;
            if self.bound.may_work() || self.reservation.is_some() {
                return Ok(true);
            }
            if self.batch.interrupt.level() >= Level::Drain {
                return Ok(false);
            }
            self.pause(seen);
        }
    }

    /// Waits until a place in the landing queue has something to do.
    pub(super) fn await_place(
        &mut self,
        place: &mut LandingPlace<'_>,
    ) -> Result<PlaceStep, Box<StepFailure>> {
        loop {
            let seen = self.batch.interrupt.changes();
            self.look()?;
            match place.next() {
                PlaceStep::Wait => {
                    // Work ahead of it may need the right to land.
                    place.unlock();
                    self.pause(seen);
                }
                step => return Ok(step),
            }
        }
    }

    /// Waits until no other process lands, with the first place of the queue.
    /// Where the process has the right to land already, others that wait for it
    /// are let in first: nothing lands until all that landed is checked, but for
    /// the rest of what is verified as one with it.
    pub(super) fn await_lock(&mut self, place: &mut LandingPlace<'_>) -> Result<(), StageError> {
        while place.is_kept() && !place.owes_landing() && self.batch.landing.is_waited_for()? {
            let seen = self.batch.interrupt.changes();
            self.look()?;
            if place.is_kept() {
                self.pause(seen);
            }
        }
        if !place.is_locked() {
            let lock = self.landing_lock()?;
            // Nothing of this process is checked, and none of another one that lives.
            let defers_close = self.batch.landing.rule().defers_close();
            let found = match defers_close {
                true => self.batch.take_back_abandoned(&lock)?,
                false => Abandoned::Nothing,
            };
            match found {
                Abandoned::Nothing => {}
                Abandoned::TakenBack => place.moved(),
                // Others would be charged for it.
                Abandoned::Stays(commit) => {
                    self.batch.break_target(&commit);
                    return Err(StepFailure::of_interrupt().into());
                }
            }
            place.keep_lock(lock);
        }
        Ok(())
    }

    /// Returns whether work waits because a person has the target checked out: they may
    /// look at it for a moment. `since` is when this attempt began to wait.
    pub(super) fn may_wait_for_checkout(
        &self,
        error: &LandingError,
        since: &mut Option<Instant>,
    ) -> bool {
        let LandingError::CheckedOut { target, worktree } = error else {
            return false;
        };
        let began = *since.get_or_insert_with(|| {
            let worktree = worktree.display();
            tracing::warn!(
                "{target} is checked out in {worktree}; work waits for that to end before it lands"
            );
            Instant::now()
        });
        began.elapsed() < CHECKOUT_MAX
    }

    /// Waits a moment.
    pub(super) fn await_checkout(&mut self) -> Result<(), Box<StepFailure>> {
        let seen = self.batch.interrupt.changes();
        self.look()?;
        self.pause(seen);
        Ok(())
    }

    /// Waits for a free slot for the check of landed work; `false` where no check is
    /// needed any more.
    pub(super) fn await_check_slot(
        &mut self,
        place: &LandingPlace<'_>,
    ) -> Result<bool, StageError> {
        loop {
            let seen = self.batch.interrupt.changes();
            self.look()?;
            match place.start_check() {
                CheckStart::Waits => self.pause(seen),
                start => return Ok(start == CheckStart::Begins),
            }
        }
    }

    /// Waits until work that is checked may close, or until it is taken back.
    pub(super) fn await_check(&mut self, place: &LandingPlace<'_>) -> Result<CheckEnd, StageError> {
        loop {
            let seen = self.batch.interrupt.changes();
            self.look()?;
            match place.next_check() {
                None => self.pause(seen),
                Some(end) => return Ok(end),
            }
        }
    }

    /// Waits until no other step lands.
    pub(super) fn landing_lock(&mut self) -> Result<LandingLock, StageError> {
        self.look()?;
        let (landing, interrupt) = (&self.batch.landing, &self.batch.interrupt);
        if let Some(lock) = landing.try_lock()? {
            return Ok(lock);
        }
        let waker = interrupt.clone();
        let _waiter = landing.announce_wait()?;
        // Where no thread can be started, the lock is tried at each look.
        let wait = landing.wait_for_lock(move || waker.wake()).ok();
        loop {
            let seen = interrupt.changes();
            self.look()?;
            let taken = match &wait {
                Some(wait) => wait.take()?,
                None => landing.try_lock()?,
            };
            if let Some(lock) = taken {
                return Ok(lock);
            }
            self.pause(seen);
        }
    }
}
