//! The landing queue of a process: the finished work of its lanes in the order
//! in which it lands, with the commits that verifications assume.
//!
//! Processes that share a target have a queue each. Who lands now is decided
//! by the landing lock between them; work whose assumption another process
//! broke is verified again, with the lock held unless other work comes first.

use super::Batch;
use super::shared_run::SharedPass;
use crate::interrupt::Interrupt;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::IssueId;
use premath_kernel::policy::landing_queue::{
    CheckEnd, CheckStart, LandingQueue, Part, QueueBounds, QueueStep, Ticket,
};
use premath_kernel::policy::retry;
use premath_kernel::policy::slots::SlotRule;
use premath_memory::LandingLock;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The landing queue, shared by the lanes of a process.
#[derive(Debug)]
pub(super) struct SharedQueue {
    state: Mutex<QueueState>,
    /// Held while work lands or is taken back: the target and the landings that
    /// are checked change together.
    moves: Mutex<()>,
    /// Woken after every change.
    interrupt: Interrupt,
}

#[derive(Debug)]
struct QueueState {
    queue: LandingQueue,
    /// The commits that the places verify, to be merged with by places behind.
    assumed: BTreeMap<Ticket, String>,
    /// The verifications that passed, for the work that rides on them.
    passed: BTreeMap<Ticket, SharedPass>,
    /// The commits that are checked, but for those in which work was found: others made
    /// them.
    landed: BTreeMap<Ticket, String>,
    /// Counts the moves of the target other than landings: what was merged with the
    /// tip before one of them does not count.
    epoch: u64,
    /// The right to land, which the process keeps while landings are checked.
    kept: Option<LandingLock>,
}

impl QueueState {
    fn new(bounds: QueueBounds) -> Self {
        Self {
            queue: LandingQueue::new(bounds),
            assumed: BTreeMap::new(),
            passed: BTreeMap::new(),
            landed: BTreeMap::new(),
            epoch: 0,
            kept: None,
        }
    }

    /// Returns what a verification is to assume that rests on these places.
    fn assumption(&self, ahead: Vec<Ticket>) -> Assumption {
        let last = ahead.last().and_then(|last| self.assumed.get(last));
        Assumption {
            commit: last.cloned(),
            ahead,
            epoch: self.epoch,
        }
    }

    /// Begins a verification on a commit that rests on an assumption, if that still
    /// holds and the work does not ride.
    fn start(&mut self, ticket: Ticket, assumption: &Assumption, commit: &str) -> PlaceStart {
        if !assumption.holds_in(self) || !self.queue.started(ticket, &assumption.ahead) {
            return PlaceStart::Stale;
        }
        self.assumed.insert(ticket, commit.to_owned());
        match self.queue.is_riding(ticket) {
            true => PlaceStart::Rides,
            false => PlaceStart::Verified,
        }
    }

    /// Takes in that a landing and those on top of it were taken off the target.
    fn taken_back(&mut self, ticket: Ticket) {
        self.epoch += 1;
        let gone = self.queue.landings_from(ticket);
        self.queue.taken_back(ticket);
        gone.into_iter().for_each(|ticket| self.forget(ticket));
    }

    /// Takes in that a landing was taken off the target. One without a ticket landed in
    /// an earlier attempt, or was gone already; then only a change of the tip, or a tip
    /// that cannot be read, counts as a move.
    fn taken_off(&mut self, ticket: Option<Ticket>, tips: [Option<String>; 2]) {
        let [before, after] = tips;
        match ticket {
            Some(ticket) => self.taken_back(ticket),
            None if before.is_some() && before == after => {}
            None => self.moved(),
        }
    }

    /// Takes in that the target is not where the queue assumed it.
    fn moved(&mut self) {
        self.epoch += 1;
        self.queue.moved();
    }

    /// Returns the ticket of a commit that is checked, and the commits from it
    /// on, the oldest first; the commit alone where it is not.
    fn landings_from(&self, commit: &str) -> (Option<Ticket>, Vec<String>) {
        let mut unchecked = self.queue.unchecked().into_iter();
        let is_of = |ticket: &Ticket| self.landed.get(ticket).is_some_and(|of| of == commit);
        let ticket = unchecked.find(is_of);
        let commits = ticket.map(|ticket| {
            let from = self.queue.landings_from(ticket).into_iter();
            from.filter_map(|ticket| self.landed.get(&ticket).cloned())
                .collect()
        });
        (ticket, commits.unwrap_or_else(|| vec![commit.to_owned()]))
    }

    /// Forgets a ticket, and gives the right to land back once nothing is
    /// checked.
    fn forget(&mut self, ticket: Ticket) {
        self.assumed.remove(&ticket);
        self.passed.remove(&ticket);
        self.landed.remove(&ticket);
        if !self.queue.has_unchecked() {
            self.kept = None;
        }
    }
}

/// What a verification is to assume.
#[derive(Debug)]
pub(crate) struct Assumption {
    ahead: Vec<Ticket>,
    /// The commit that contains all the work ahead; none where that is the
    /// target's tip.
    pub(crate) commit: Option<String>,
    /// The epoch of the tip that it rests on.
    epoch: u64,
}

impl Assumption {
    /// Returns whether the work ahead is still verified as this commit: after
    /// the target moved it is another, under the same tickets.
    fn holds_in(&self, state: &QueueState) -> bool {
        let last = self.ahead.last();
        self.epoch == state.epoch
            && last.is_none_or(|last| state.assumed.get(last) == self.commit.as_ref())
    }
}

/// How work begins that was to be verified on an assumed state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlaceStart {
    /// The assumed state is another by now.
    Stale,
    /// It is verified.
    Verified,
    /// It is verified with work behind it.
    Rides,
}

/// What the holder of a place is to do.
#[derive(Debug)]
pub(crate) enum PlaceStep {
    /// Merge with the assumed state and verify.
    Try(Assumption),
    /// Look again after the next change.
    Wait,
    /// Land.
    Land,
    /// Leave: the failure is the work's own.
    Charged,
}

/// A step's place in the landing queue. Dropping it gives the place up.
pub(crate) struct LandingPlace<'a> {
    batch: &'a Batch,
    ticket: Ticket,
    /// The right to land, once it is taken.
    lock: Option<LandingLock>,
}

impl SharedQueue {
    pub(super) fn new(bounds: QueueBounds, interrupt: Interrupt) -> Self {
        Self {
            state: Mutex::new(QueueState::new(bounds)),
            moves: Mutex::new(()),
            interrupt,
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moves(&self) -> MutexGuard<'_, ()> {
        self.moves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves the next landing for an issue; `false` where another one has it, or
    /// while work assumes nothing. Wakes no thread: a reservation lets none
    /// continue, and threads that wait for one ask again after each wake-up.
    fn reserve(&self, issue_id: &IssueId) -> bool {
        self.state().queue.reserve(issue_id)
    }

    /// Changes the queue and wakes those who wait.
    fn change<T>(&self, change: impl FnOnce(&mut QueueState) -> T) -> T {
        let changed = change(&mut self.state());
        self.interrupt.wake();
        changed
    }
}

impl Batch {
    /// Takes in that an operator added or removed lanes: the slots of verifications
    /// follow, unless the settings name their number.
    pub fn set_lanes(&self, lanes: usize) {
        let slots = SlotRule::of(self.settings.verify_slots, lanes).at_once;
        let set = |state: &mut QueueState| state.queue.set_slots(slots);
        self.landing_queue.change(set);
    }

    /// Adds finished work to the landing queue.
    pub(crate) fn join_landing(&self, priority: i64, issue_id: &IssueId) -> LandingPlace<'_> {
        let joined = |state: &mut QueueState| state.queue.join(priority, issue_id);
        LandingPlace {
            batch: self,
            ticket: self.landing_queue.change(joined),
            lock: None,
        }
    }

    /// Takes landed work off the target: `take` has its commit and those that
    /// landed on top of it and are still checked, the oldest first, and what was
    /// verified as one with it. They land again. `None` where it stays: an issue
    /// closed, or closes now, that was verified as one with it.
    ///
    /// # Errors
    ///
    /// As `take` reports it. Then the queue keeps what may be on the target still.
    pub(crate) fn take_back<T, E>(
        &self,
        commit: &str,
        take: impl FnOnce(&[String]) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        let queue = &self.landing_queue;
        let _moves = queue.moves();
        let (ticket, commits) = {
            let state = queue.state();
            let (ticket, commits) = state.landings_from(commit);
            if ticket.is_some_and(|ticket| !state.queue.may_be_taken_back(ticket)) {
                return Ok(None);
            }
            (ticket, commits)
        };
        let tip = || self.landing.tip().ok();
        let before = tip();
        let taken = take(&commits);
        let after = tip();
        let ticket = ticket.filter(|_| taken.is_ok());
        queue.change(|state| state.taken_off(ticket, [before, after]));
        taken.map(Some)
    }

    /// Returns whether a verification or a check that runs is of no use any
    /// more.
    pub(crate) fn is_superseded(&self, ticket: Ticket) -> bool {
        self.landing_queue.state().queue.is_superseded(ticket)
    }
}

/// The right of an issue to land before all others. It ends when it is dropped.
#[must_use = "a reservation ends when it is dropped"]
pub(crate) struct LandingReservation<'a> {
    batch: &'a Batch,
    issue_id: IssueId,
}

impl fmt::Debug for LandingReservation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LandingReservation")
            .field(&self.issue_id)
            .finish()
    }
}

impl Drop for LandingReservation<'_> {
    fn drop(&mut self) {
        let release = |state: &mut QueueState| state.queue.release(&self.issue_id);
        self.batch.landing_queue.change(release);
    }
}

impl Batch {
    /// Reserves the next landing for an issue; `None` where another has it, or
    /// while work assumes nothing.
    pub(crate) fn reserve_landing(&self, issue_id: &IssueId) -> Option<LandingReservation<'_>> {
        let reserved = self.landing_queue.reserve(issue_id);
        reserved.then(|| LandingReservation {
            batch: self,
            issue_id: issue_id.to_owned(),
        })
    }

    /// Returns whether work lands although another issue has the reservation: a part of
    /// what was verified as one with it has landed.
    pub(crate) fn owes_landing(&self) -> bool {
        self.landing_queue.state().queue.owes_any_landing()
    }

    /// Returns whether the work of an issue conflicted in this batch, and one more
    /// conflict would block it.
    pub(crate) fn is_last_after_conflict(&self, issue_id: &IssueId) -> bool {
        let conflict = FailureClass::LandingConflict.as_str();
        let earlier = self.earlier_failures(issue_id);
        earlier.conflicts > 0
            && retry::decide_next(&self.settings.retry, &[conflict], earlier).is_escalation()
    }
}

impl<'a> LandingPlace<'a> {
    /// Returns whether it is still its turn to land.
    pub(crate) fn has_turn(&self) -> bool {
        let state = self.batch.landing_queue.state();
        state.queue.next(self.ticket) == QueueStep::Land
    }

    /// Returns the place's ticket.
    pub(crate) const fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Returns what is to be done now.
    pub(crate) fn next(&self) -> PlaceStep {
        let state = self.batch.landing_queue.state();
        match state.queue.next(self.ticket) {
            QueueStep::Wait => PlaceStep::Wait,
            QueueStep::Land => PlaceStep::Land,
            QueueStep::Charged => PlaceStep::Charged,
            QueueStep::Try(ahead) => PlaceStep::Try(state.assumption(ahead)),
        }
    }

    /// Says that a verification begins on a commit, if the work does not ride.
    pub(crate) fn started(&self, assumption: &Assumption, commit: &str) -> PlaceStart {
        let start = |state: &mut QueueState| state.start(self.ticket, assumption, commit);
        self.batch.landing_queue.change(start)
    }

    /// Has the work verified only once all the work ahead of it has landed and
    /// passed its check.
    pub(crate) fn assume_nothing(&self) {
        let queue = &self.batch.landing_queue;
        if queue.state().queue.assume_nothing(self.ticket) {
            queue.interrupt.wake();
        }
    }

    /// Limits how the work is verified as one with other work.
    pub(crate) fn limit(&self, part: Part) {
        let queue = &self.batch.landing_queue;
        if queue.state().queue.limit(self.ticket, part) {
            queue.interrupt.wake();
        }
    }

    /// Returns the verification that passed with the work, where it rides.
    pub(crate) fn shared_pass(&self) -> Option<SharedPass> {
        let state = self.batch.landing_queue.state();
        let leader = state.queue.leader(self.ticket)?;
        state.passed.get(&leader).cloned()
    }

    /// Says that the work conflicts with the assumed state. Returns whether that
    /// is charged: all of that state has closed.
    pub(crate) fn conflicted(&self, assumption: &Assumption) -> bool {
        self.batch.landing_queue.change(|state| {
            if state.queue.is_settled(&assumption.ahead) {
                return true;
            }
            if assumption.holds_in(state) {
                state.queue.conflicted(self.ticket, &assumption.ahead);
            }
            false
        })
    }

    /// Says that the verification passed, for the work that rides on it too;
    /// `false` where it was superseded.
    pub(crate) fn passed(&self, pass: Option<SharedPass>) -> bool {
        self.batch.landing_queue.change(|state| {
            let counts = state.queue.passed(self.ticket);
            if let Some(pass) = pass.filter(|_| counts) {
                state.passed.insert(self.ticket, pass);
            }
            counts
        })
    }

    /// Says that the verification failed; `false` where it was superseded.
    pub(crate) fn failed(&self) -> bool {
        let failed = |state: &mut QueueState| state.queue.failed(self.ticket);
        self.batch.landing_queue.change(failed)
    }

    /// Says that the target is not where the queue assumed it.
    pub(crate) fn moved(&self) {
        self.batch.landing_queue.change(QueueState::moved);
    }

    /// Keeps the right to land.
    pub(crate) fn keep_lock(&mut self, lock: LandingLock) {
        self.lock = Some(lock);
    }

    /// Returns whether it has the right to land, or its process has it.
    pub(crate) fn is_locked(&self) -> bool {
        self.lock.is_some() || self.is_kept()
    }

    /// Returns whether its process has the right to land, because landings are
    /// checked.
    pub(crate) fn is_kept(&self) -> bool {
        self.batch.landing_queue.state().kept.is_some()
    }

    /// Returns whether the rest of what was verified as one with it is on the
    /// target already: it lands before all others.
    pub(crate) fn owes_landing(&self) -> bool {
        let state = self.batch.landing_queue.state();
        state.queue.owes_landing(self.ticket)
    }

    /// Keeps other lanes of the process from moving the target.
    pub(crate) fn alone(&self) -> MutexGuard<'a, ()> {
        self.batch.landing_queue.moves()
    }

    /// Gives the right to land back, for work ahead of this one.
    pub(crate) fn unlock(&mut self) {
        self.lock = None;
    }

    /// Says that the work is on the target and checked now: other work of the process
    /// may land on top. The commit is its own; none where it found its work there. Work
    /// that rides has no check.
    pub(crate) fn advanced(&mut self, own: Option<&str>, rides: bool) {
        let lock = self.lock.take();
        self.batch.landing_queue.change(|state| {
            match rides {
                true => state.queue.advanced_riding(self.ticket),
                false => state.queue.advanced(self.ticket),
            }
            state.assumed.remove(&self.ticket);
            if let Some(commit) = own {
                state.landed.insert(self.ticket, commit.to_owned());
            }
            state.kept = state.kept.take().or(lock);
        });
    }

    /// Says that the check of the work begins, if there is a free slot for it.
    pub(crate) fn start_check(&self) -> CheckStart {
        self.batch
            .landing_queue
            .state()
            .queue
            .start_check(self.ticket)
    }

    /// Says how the check of the work ended; `false` where the work was taken
    /// back.
    pub(crate) fn checked(&self, passed: bool) -> bool {
        let checked = |state: &mut QueueState| state.queue.checked(self.ticket, passed);
        self.batch.landing_queue.change(checked)
    }

    /// Returns what is to be done with work that is checked; `None` where it
    /// waits.
    pub(crate) fn next_check(&self) -> Option<CheckEnd> {
        self.batch
            .landing_queue
            .state()
            .queue
            .next_check(self.ticket)
    }

    /// Says that the issue closes now: the work stays on the target. `false`
    /// where it was taken back.
    pub(crate) fn closing(&self) -> bool {
        let queue = &self.batch.landing_queue;
        let _moves = queue.moves();
        queue.change(|state| state.queue.closing(self.ticket))
    }

    /// Leaves the queue: the issue has closed.
    pub(crate) fn landed(mut self) {
        self.leave(|queue, ticket| {
            if !queue.settled(ticket) {
                queue.landed(ticket);
            }
        });
    }

    fn leave(&mut self, leave: impl FnOnce(&mut LandingQueue, Ticket)) {
        let queue = &self.batch.landing_queue;
        let _moves = queue.moves();
        self.lock = None;
        queue.change(|state| {
            leave(&mut state.queue, self.ticket);
            state.forget(self.ticket);
        });
    }
}

impl fmt::Debug for LandingPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LandingPlace")
            .field("ticket", &self.ticket)
            .field("lock", &self.lock)
            .finish_non_exhaustive()
    }
}

impl Drop for LandingPlace<'_> {
    fn drop(&mut self) {
        // Work that is on the target stays there, with its mark.
        self.leave(|queue, ticket| {
            if !queue.stayed(ticket) {
                queue.left(ticket);
            }
        });
    }
}

#[cfg(test)]
mod tests;
