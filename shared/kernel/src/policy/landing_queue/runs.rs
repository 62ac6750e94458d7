//! Runs: places next to each other that are verified as one. Only the tree of
//! the last one, the leader, is verified; it contains the work of all. The
//! others ride.
//!
//! Rules:
//!
//! - A place that starts rides if the next place behind it can lead, and the run
//!   has room. It costs no verification, and no slot.
//! - When the leader passes, its run lands in order, each work by itself. Nothing
//!   else lands in between.
//! - When the leader fails, the run is split in halves, and each half is verified
//!   as one. So the failure is found in as many rounds as the run can be halved,
//!   and is charged only to a place that was verified by itself.
//! - Where the leader is gone, the last one that rides leads.

use super::{LandingQueue, PlaceState, Ticket};

/// How a place takes part in runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// It rides where it can.
    Any,
    /// It is verified, and others may ride on it.
    Leads,
    /// It is verified by itself.
    Single,
}

/// What decides about a place that rides: the next place behind it that is
/// neither failed nor conflicting.
enum Follower {
    /// It is yet to start.
    Open(usize),
    Rides(usize),
    /// It is verified.
    Leads(usize),
    None,
}

impl LandingQueue {
    /// Limits how work takes part in runs from now on; `false` where that changes
    /// nothing.
    pub fn limit(&mut self, ticket: Ticket, part: Part) -> bool {
        let at = self.position(ticket);
        let at = at.filter(|at| self.batch > 1 && self.places[*at].part < part);
        if let Some(at) = at {
            self.places[at].part = part;
            self.settle_runs();
        }
        at.is_some()
    }

    /// Returns whether work is verified by a place behind it.
    pub fn is_riding(&self, ticket: Ticket) -> bool {
        let at = self.position(ticket);
        at.is_some_and(|at| matches!(self.places[at].state, PlaceState::Riding(_)))
    }

    /// Returns the place whose verification passed with the work of one that
    /// rides.
    pub fn leader(&self, ticket: Ticket) -> Option<Ticket> {
        let at = self.leader_of(self.position(ticket)?)?;
        let leader = &self.places[at];
        matches!(leader.state, PlaceState::Passed(_)).then_some(leader.ticket)
    }

    /// Returns whether other work of a place's run is on the target: its landing
    /// waits for nothing else.
    pub fn owes_landing(&self, ticket: Ticket) -> bool {
        let at = self.position(ticket);
        at.is_some_and(|at| self.is_owed(at))
    }

    /// Returns whether the rest of any run lands although another issue has the
    /// reservation.
    pub fn owes_any_landing(&self) -> bool {
        (0..self.places.len()).any(|at| self.is_owed(at))
    }

    pub(super) fn is_owed(&self, at: usize) -> bool {
        let leader = self.leader_of(at).unwrap_or(at);
        self.checks.has_riders(self.places[leader].ticket)
    }

    /// Returns whether a verification passed with the work of a place.
    pub(super) fn has_passed(&self, at: usize) -> bool {
        let decides = match self.places[at].state {
            PlaceState::Riding(_) => self.leader_of(at),
            _ => Some(at),
        };
        let is_passed = |at: usize| matches!(self.places[at].state, PlaceState::Passed(_));
        decides.is_some_and(is_passed)
    }

    /// Has a place that starts ride, where it can.
    pub(super) fn ride_if_possible(&mut self, at: usize) {
        let has_room = self.riders_before(at).len() + 1 < self.batch;
        // What is behind is open now, if there is anything.
        if !has_room || self.places[at].part != Part::Any || !self.has_follower(at) {
            return;
        }
        let state = &mut self.places[at].state;
        if let PlaceState::Verifying(ahead) = state {
            *state = PlaceState::Riding(std::mem::take(ahead));
        }
    }

    /// Splits the run of a place that failed in halves, each of which is verified
    /// as one; `false` where the place is all of its run.
    pub(super) fn halve_run(&mut self, at: usize) -> bool {
        let mut run = self.riders_before(at);
        let Some(first) = run.first().copied() else {
            return false;
        };
        run.push(at);
        for last in [run[run.len().div_ceil(2) - 1], at] {
            self.lead(last);
        }
        let ticket = self.places[first].ticket;
        self.places[first].state = PlaceState::Due;
        self.restart(first + 1, |ahead| ahead.contains(&ticket));
        true
    }

    /// Keeps every run whole: what rides has a leader, or it is verified itself;
    /// what landed riding is taken back where its leader does not land.
    pub(super) fn settle_runs(&mut self) {
        if self.batch == 1 {
            return;
        }
        for at in (0..self.places.len()).rev() {
            let rides = matches!(self.places[at].state, PlaceState::Riding(_));
            if rides && !self.has_follower(at) {
                let ticket = self.places[at].ticket;
                self.places[at].state = PlaceState::Due;
                self.lead(at);
                self.restart(at + 1, |ahead| ahead.contains(&ticket));
            }
        }
        let passed = self.places.iter();
        let passed = passed.filter(|place| matches!(place.state, PlaceState::Passed(_)));
        let passed: Vec<Ticket> = passed.map(|place| place.ticket).collect();
        self.checks.settle_riders(&passed);
    }

    /// Has a place ride no more.
    fn lead(&mut self, at: usize) {
        let part = &mut self.places[at].part;
        *part = Part::Leads.max(*part);
    }

    /// Returns the places right before one that ride.
    fn riders_before(&self, at: usize) -> Vec<usize> {
        let mut riders = Vec::new();
        for before in (0..at).rev() {
            match self.places[before].state {
                PlaceState::Riding(_) => riders.push(before),
                PlaceState::Failed(_) | PlaceState::Conflicting(_) => {}
                _ => break,
            }
        }
        riders.reverse();
        riders
    }

    fn follower(&self, at: usize) -> Follower {
        for behind in at + 1..self.places.len() {
            return match self.places[behind].state {
                PlaceState::Waiting | PlaceState::Due => Follower::Open(behind),
                PlaceState::Riding(_) => Follower::Rides(behind),
                PlaceState::Verifying(_) | PlaceState::Passed(_) => Follower::Leads(behind),
                PlaceState::Failed(_) | PlaceState::Conflicting(_) => continue,
            };
        }
        Follower::None
    }

    /// Returns whether a place behind one leads its run, or will.
    fn has_follower(&self, at: usize) -> bool {
        match self.follower(at) {
            Follower::Open(next) => next < self.window && self.places[next].part != Part::Single,
            Follower::Rides(_) | Follower::Leads(_) => true,
            Follower::None => false,
        }
    }

    /// Returns the place whose verification contains the work of one that rides.
    fn leader_of(&self, at: usize) -> Option<usize> {
        let mut at = at;
        if !matches!(self.places[at].state, PlaceState::Riding(_)) {
            return None;
        }
        loop {
            match self.follower(at) {
                Follower::Rides(next) => at = next,
                Follower::Leads(leader) => return Some(leader),
                Follower::Open(_) | Follower::None => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests;
