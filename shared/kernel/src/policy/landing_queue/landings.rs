//! What the queue knows of landings whose issues are yet to close.

use super::{CheckEnd, CheckStart, LandingQueue, Ticket};

impl LandingQueue {
    /// Takes in that the check of a landing begins, if there is a free slot for it.
    pub fn start_check(&mut self, ticket: Ticket) -> CheckStart {
        let has_slot = self.running() < self.slots;
        self.checks.start(ticket, has_slot)
    }

    /// Takes in how the check of a landing ended; `false` where its work was
    /// taken back.
    pub fn checked(&mut self, ticket: Ticket, passed: bool) -> bool {
        let counts = self.checks.end(ticket, passed);
        self.settle_runs();
        counts
    }

    /// Takes in that an issue closes now: its work and what rides on it stay on
    /// the target. `false` where they were taken back.
    pub fn closing(&mut self, ticket: Ticket) -> bool {
        self.checks.close(ticket)
    }

    /// Returns whether a landing, and those that are to be taken back with it, may
    /// still be taken back.
    pub fn may_be_taken_back(&self, ticket: Ticket) -> bool {
        self.checks.may_be_taken_back(ticket)
    }

    /// Returns what the holder of a landing that is checked is to do now; `None`
    /// where it waits for the next change.
    pub fn next_check(&self, ticket: Ticket) -> Option<CheckEnd> {
        self.checks.next(ticket)
    }

    /// Returns the landings that are checked, in the order in which they landed.
    pub fn unchecked(&self) -> Vec<Ticket> {
        self.checks.tickets()
    }

    /// Returns a landing that is checked, with the rest of its run and those on
    /// top of it, in the order in which they landed.
    pub fn landings_from(&self, ticket: Ticket) -> Vec<Ticket> {
        self.checks.from(ticket)
    }

    /// Returns whether a landing is checked whose issue has not closed.
    pub const fn has_unchecked(&self) -> bool {
        !self.checks.is_empty()
    }

    /// Takes in that a landing and those on top of it were taken off the target.
    pub fn taken_back(&mut self, ticket: Ticket) {
        for gone in self.checks.from(ticket) {
            self.checks.remove(gone);
            self.left(gone);
        }
        self.moved();
    }

    /// Takes in that a landing that was checked is over: its issue has closed.
    /// `false` where the work is not checked.
    pub fn settled(&mut self, ticket: Ticket) -> bool {
        self.leave_checks(ticket, true)
    }

    /// Takes in that a landing that was checked is over, although its issue has
    /// not closed: the work stays on the target. `false` where the work is not
    /// checked.
    pub fn stayed(&mut self, ticket: Ticket) -> bool {
        self.leave_checks(ticket, false)
    }

    fn leave_checks(&mut self, ticket: Ticket, has_closed: bool) -> bool {
        if !self.checks.contains(ticket) {
            return false;
        }
        self.checks.leave(ticket, has_closed);
        for place in &mut self.places {
            place.doubts.retain(|doubt| *doubt != ticket);
        }
        self.landed(ticket);
        self.retry_conflicts();
        self.settle_runs();
        true
    }
}
