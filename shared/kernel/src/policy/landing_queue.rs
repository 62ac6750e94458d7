//! The order in which finished work lands, and what each verification assumes
//! about the work ahead of it (HARNESS-RUNTIME 3.2).
//!
//! Work is verified on the target's tip with all the work ahead of it in the
//! queue, while that work is verified too. When everything ahead has landed,
//! the verified tree is the tree that lands. When something ahead fails, every
//! verification that contains it is superseded, and is done again without it.
//! It is the dependent pipeline of Zuul.
//!
//! Rules:
//!
//! - The order is priority, then natural id (`bd-2` before `bd-10`), until a
//!   verification starts: from then on the position is fixed, so that a stream of
//!   urgent work cannot keep other work from landing.
//! - A failed verification is charged to its issue only when everything that it
//!   assumed has landed, and passed its check. Otherwise it is done again.
//! - Work that conflicts with the assumed state waits until something ahead of
//!   it fails, or until all of it has landed.
//! - An issue may reserve the next landing: while it works, other work is
//!   verified and does not land, and its own work joins in front.
//! - Work whose assumptions broke too often [assumes](LandingQueue::assume_nothing)
//!   nothing any more: it is verified once all the work ahead of it has landed and
//!   passed its check. From then on its position is fixed too, and no issue gets a
//!   reservation until it has landed. After that, at most one more verification is
//!   superseded: when an issue that already held the reservation lands.
//! - The window bounds how many verifications rest on assumptions. It grows by
//!   one for each landing and halves for each failure that is charged.
//! - At most as many verifications and checks run as there are slots. Free ones go
//!   to checks, then to the work at the front.
//!
//! Work that landed is checked while other work lands on top of it (`checks`).
//! Where the bounds allow it, several places are verified as one (`runs`).
//!
//! The queue is about assumptions only. The caller that lands compares the tree
//! that was verified with the tree that would land.

mod checks;
mod landings;
mod runs;

pub use checks::{CheckEnd, CheckStart};
pub use runs::Part;

use crate::issue::natural;
use crate::json::id::IssueId;
use checks::Checks;

/// The window's size that no failure goes below.
const WINDOW_FLOOR: usize = 3;

/// A place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// What the holder of a place is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueStep {
    /// Merge with the state that all of these make on the target's tip, in this
    /// order, and say [`LandingQueue::started`] or [`LandingQueue::conflicted`].
    Try(Vec<Ticket>),
    /// Look again after the next change.
    Wait,
    /// Land: all that was assumed has landed.
    Land,
    /// Leave: the verification failed on a state that has landed.
    Charged,
}

/// Where a place is in its verification. The tickets are the work ahead that
/// is assumed to land and has not landed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PlaceState {
    /// Never started: the position may change.
    Waiting,
    /// What it assumed does not hold: it starts again.
    Due,
    Verifying(Vec<Ticket>),
    /// Verified by a place behind it, whose tree contains its work.
    Riding(Vec<Ticket>),
    Passed(Vec<Ticket>),
    Failed(Vec<Ticket>),
    Conflicting(Vec<Ticket>),
}

impl PlaceState {
    /// Returns what the place assumed, once it started.
    const fn ahead(&self) -> Option<&Vec<Ticket>> {
        match self {
            Self::Waiting | Self::Due => None,
            Self::Verifying(ahead)
            | Self::Riding(ahead)
            | Self::Passed(ahead)
            | Self::Failed(ahead)
            | Self::Conflicting(ahead) => Some(ahead),
        }
    }

    const fn ahead_mut(&mut self) -> Option<&mut Vec<Ticket>> {
        match self {
            Self::Waiting | Self::Due => None,
            Self::Verifying(ahead)
            | Self::Riding(ahead)
            | Self::Passed(ahead)
            | Self::Failed(ahead)
            | Self::Conflicting(ahead) => Some(ahead),
        }
    }

    /// Returns whether places behind assume that this one lands.
    const fn is_assumed(&self) -> bool {
        matches!(self, Self::Verifying(_) | Self::Riding(_) | Self::Passed(_))
    }

    /// Returns whether it is open what this place adds to the state.
    const fn is_open(&self) -> bool {
        matches!(self, Self::Waiting | Self::Due)
    }
}

#[derive(Clone, Debug)]
struct Place {
    ticket: Ticket,
    priority: i64,
    issue_id: IssueId,
    state: PlaceState,
    part: Part,
    /// Whether it may rest on work that is yet to land, or to pass its check.
    assumes: bool,
    /// The landings that were yet to pass their check when the work failed or
    /// conflicted on top of them.
    doubts: Vec<Ticket>,
}

/// How many verifications of a queue may run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueBounds {
    /// How many places behind the first one may be verified on an assumed state.
    pub speculation: usize,
    /// How many places may be verified at once, the first one included.
    pub slots: usize,
    /// How many places may be verified as one.
    pub batch: usize,
}

/// The queue of the work that is to land on one target.
#[derive(Clone, Debug)]
pub struct LandingQueue {
    places: Vec<Place>,
    /// How many places may be verified at once.
    slots: usize,
    /// How many places from the first one may be verified at once.
    window: usize,
    window_max: usize,
    /// How many places may be verified as one.
    batch: usize,
    next: u64,
    /// The issue that lands next, whatever else is ready.
    reserved: Option<IssueId>,
    checks: Checks,
}

impl LandingQueue {
    /// Makes an empty queue. Without a slot nothing would ever be verified: there
    /// is at least one. Without speculation places are verified one by one.
    pub fn new(bounds: QueueBounds) -> Self {
        let window_max = bounds.speculation.saturating_add(1);
        Self {
            places: Vec::new(),
            slots: bounds.slots.max(1),
            window: window_max,
            window_max,
            batch: match window_max {
                1 => 1,
                _ => bounds.batch.max(1),
            },
            next: 0,
            reserved: None,
            checks: Checks::new(),
        }
    }

    /// Changes how many places may be verified at once. What runs continues, even
    /// where that is more.
    pub fn set_slots(&mut self, slots: usize) {
        self.slots = slots.max(1);
    }

    /// Reserves the next landing for an issue; `false` where another one has it,
    /// and while work is in the queue that assumes nothing. Nothing else lands
    /// until it is released.
    pub fn reserve(&mut self, issue_id: &IssueId) -> bool {
        if self.reserved.is_none() && self.places.iter().any(|place| !place.assumes) {
            return false;
        }
        let holder = self.reserved.get_or_insert_with(|| issue_id.to_owned());
        holder == issue_id
    }

    /// Releases the reservation of an issue.
    pub fn release(&mut self, issue_id: &IssueId) {
        self.reserved.take_if(|holder| holder == issue_id);
    }

    /// Returns whether a place may land, as far as reservations and checks go.
    fn may_land(&self, at: usize) -> bool {
        let holder = self.reserved.as_ref();
        let is_free = holder.is_none_or(|holder| *holder == self.places[at].issue_id);
        (is_free || self.is_owed(at)) && !self.checks.has_failed()
    }

    /// Adds finished work: behind all whose position is fixed, and in
    /// the order of priority and natural id among the rest. Work with the
    /// reservation comes first, but for a run of which a part has landed.
    pub fn join(&mut self, priority: i64, issue_id: &IssueId) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        let is_reserved = self.reserved.as_ref() == Some(issue_id);
        let mut places = self.places.iter();
        let last_before = match is_reserved {
            true => (0..self.places.len()).rfind(|at| self.is_owed(*at)),
            false => places.rposition(|place| self.stays_before(place, priority, issue_id)),
        };
        let at = last_before.map_or(0, |at| at + 1);
        let place = Place {
            ticket,
            priority,
            issue_id: issue_id.to_owned(),
            state: PlaceState::Waiting,
            part: match is_reserved {
                true => Part::Single,
                false => Part::Any,
            },
            assumes: true,
            doubts: Vec::new(),
        };
        self.places.insert(at, place);
        self.settle_runs();
        ticket
    }

    /// Returns whether a place stays before work that joins.
    fn stays_before(&self, place: &Place, priority: i64, issue_id: &IssueId) -> bool {
        let has_reservation = self.reserved.as_ref() == Some(&place.issue_id);
        place.state != PlaceState::Waiting
            || !place.assumes
            || has_reservation
            || place
                .priority
                .cmp(&priority)
                .then_with(|| natural::compare(&place.issue_id, issue_id))
                .is_le()
    }

    /// Has work verified only once all the work ahead of it has landed and passed
    /// its check, and by itself; `false` where that changes nothing.
    pub fn assume_nothing(&mut self, ticket: Ticket) -> bool {
        let at = self.position(ticket);
        let at = at.filter(|at| self.places[*at].assumes);
        if let Some(at) = at {
            self.places[at].assumes = false;
            self.places[at].part = Part::Single;
            self.settle_runs();
        }
        at.is_some()
    }

    /// Returns what the holder of a place is to do now.
    pub fn next(&self, ticket: Ticket) -> QueueStep {
        let Some(at) = self.position(ticket) else {
            return QueueStep::Wait;
        };
        let before = &self.places[..at];
        match &self.places[at].state {
            PlaceState::Waiting | PlaceState::Due if at >= self.window => QueueStep::Wait,
            PlaceState::Waiting | PlaceState::Due
                if self.running() + self.checks.due() >= self.slots =>
            {
                QueueStep::Wait
            }
            PlaceState::Waiting | PlaceState::Due => {
                let ahead = self.chain(at);
                if before.iter().any(|place| place.state.is_open())
                    || !(self.places[at].assumes || self.is_settled(&ahead))
                {
                    QueueStep::Wait
                } else {
                    QueueStep::Try(ahead)
                }
            }
            PlaceState::Passed(ahead) | PlaceState::Riding(ahead)
                if ahead.is_empty() && self.has_passed(at) =>
            {
                let is_open = before.iter().any(|place| place.state.is_open());
                if is_open || !self.may_land(at) {
                    QueueStep::Wait
                } else {
                    QueueStep::Land
                }
            }
            PlaceState::Failed(ahead) if ahead.is_empty() && self.places[at].doubts.is_empty() => {
                QueueStep::Charged
            }
            _ => QueueStep::Wait,
        }
    }

    /// Takes in that a verification begins on an assumed state, or that the work
    /// [rides](Self::is_riding); `false` where the state is another by now.
    pub fn started(&mut self, ticket: Ticket, ahead: &[Ticket]) -> bool {
        if !self.take_state(ticket, ahead, PlaceState::Verifying) {
            return false;
        }
        // What is behind was merged without it.
        if let Some(at) = self.position(ticket) {
            self.restart(at + 1, |_| true);
            self.ride_if_possible(at);
        }
        self.settle_runs();
        true
    }

    /// Takes in that work conflicts with an assumed state; `false` where the
    /// state is another by now.
    ///
    /// Work that assumes nothing is tried again on the tip: it rests on no other work
    /// until all of that has landed and passed its check.
    pub fn conflicted(&mut self, ticket: Ticket, ahead: &[Ticket]) -> bool {
        let at = self.position(ticket);
        if at.is_some_and(|at| !self.places[at].assumes) {
            return false;
        }
        let taken = self.take_state(ticket, ahead, PlaceState::Conflicting);
        if taken {
            self.doubt(ticket);
            self.settle_runs();
        }
        taken
    }

    /// Returns whether a conflict with a state is charged: all of it has landed,
    /// and passed its check.
    pub const fn is_settled(&self, ahead: &[Ticket]) -> bool {
        ahead.is_empty() && self.checks.is_empty()
    }

    /// Returns whether a verification or a check that runs is of no use any
    /// more.
    pub fn is_superseded(&self, ticket: Ticket) -> bool {
        if self.checks.contains(ticket) {
            return false;
        }
        let state = self.position(ticket).map(|at| &self.places[at].state);
        !matches!(state, Some(PlaceState::Verifying(_)))
    }

    /// Takes in that a verification passed; `false` where it was superseded.
    pub fn passed(&mut self, ticket: Ticket) -> bool {
        self.verified(ticket, PlaceState::Passed).is_some()
    }

    /// Takes in that a verification failed; `false` where it was superseded.
    /// Every verification behind it that contains the work is superseded. The
    /// failure of a run is searched in its halves.
    pub fn failed(&mut self, ticket: Ticket) -> bool {
        let Some(at) = self.verified(ticket, PlaceState::Failed) else {
            return false;
        };
        self.restart(at + 1, |ahead| ahead.contains(&ticket));
        if !self.halve_run(at) {
            self.doubt(ticket);
        }
        self.settle_runs();
        true
    }

    /// Takes in that work is on the target, and is checked now: other work may
    /// land on top. Without speculation it stays in the queue until it is
    /// settled.
    pub fn advanced(&mut self, ticket: Ticket) {
        self.checks.begin(ticket);
        if self.window_max > 1 {
            self.landed(ticket);
        }
    }

    /// Takes in that work is on the target that no verification of its own
    /// passed.
    pub fn advanced_riding(&mut self, ticket: Ticket) {
        let leader = self.leader(ticket);
        self.checks.begin_riding(ticket, leader);
        self.landed(ticket);
    }

    /// Removes work that landed, as it was assumed.
    pub fn landed(&mut self, ticket: Ticket) {
        let Some(at) = self.position(ticket) else {
            return;
        };
        self.places.remove(at);
        self.restart(at, |ahead| ahead.first() != Some(&ticket));
        let is_unchecked = self.checks.contains(ticket);
        for place in &mut self.places[at..] {
            if let Some(ahead) = place.state.ahead_mut() {
                ahead.remove(0);
                // What failed already may have failed because of it.
                place.doubts.extend(is_unchecked.then_some(ticket));
            }
        }
        self.retry_conflicts();
        self.window = self.window_max.min(self.window + 1);
        self.settle_runs();
    }

    /// Has work tried again that conflicted with what has landed since, and
    /// passed its check.
    fn retry_conflicts(&mut self) {
        for place in &mut self.places {
            let is_over =
                matches!(&place.state, PlaceState::Conflicting(ahead) if ahead.is_empty());
            if is_over && place.doubts.is_empty() {
                place.state = PlaceState::Due;
            }
        }
    }

    /// Notes which landings the failure of a place may be due to.
    fn doubt(&mut self, ticket: Ticket) {
        if let Some(at) = self.position(ticket) {
            self.places[at].doubts = self.checks.tickets();
        }
    }

    /// Removes work that does not land.
    pub fn left(&mut self, ticket: Ticket) {
        let Some(at) = self.position(ticket) else {
            return;
        };
        let place = self.places.remove(at);
        self.restart(at, |ahead| ahead.contains(&ticket));
        if matches!(place.state, PlaceState::Failed(_)) {
            let floor = WINDOW_FLOOR.min(self.window_max);
            self.window = floor.max(self.window / 2);
        }
        self.settle_runs();
    }

    /// Takes in that the target is not where the queue assumed it: every
    /// verification is superseded.
    pub fn moved(&mut self) {
        self.restart(0, |_| true);
        self.settle_runs();
    }

    fn position(&self, ticket: Ticket) -> Option<usize> {
        self.places.iter().position(|place| place.ticket == ticket)
    }

    /// Returns how many verifications and checks run.
    fn running(&self) -> usize {
        let is_running = |place: &&Place| matches!(place.state, PlaceState::Verifying(_));
        self.places.iter().filter(is_running).count() + self.checks.running()
    }

    /// Returns the places before one that are assumed to land.
    fn chain(&self, at: usize) -> Vec<Ticket> {
        let before = self.places[..at].iter();
        before
            .filter(|place| place.state.is_assumed())
            .map(|place| place.ticket)
            .collect()
    }

    /// Moves a place that is open to a state that rests on what is ahead.
    fn take_state(
        &mut self,
        ticket: Ticket,
        ahead: &[Ticket],
        state: fn(Vec<Ticket>) -> PlaceState,
    ) -> bool {
        let Some(at) = self.position(ticket) else {
            return false;
        };
        let before = &self.places[..at];
        if !self.places[at].state.is_open()
            || before.iter().any(|place| place.state.is_open())
            || self.chain(at) != ahead
        {
            return false;
        }
        self.places[at].state = state(ahead.to_vec());
        true
    }

    /// Ends a verification that runs; returns the place's position.
    fn verified(&mut self, ticket: Ticket, state: fn(Vec<Ticket>) -> PlaceState) -> Option<usize> {
        let at = self.position(ticket)?;
        let place = &mut self.places[at];
        let PlaceState::Verifying(ahead) = &mut place.state else {
            return None;
        };
        place.state = state(std::mem::take(ahead));
        Some(at)
    }

    /// Supersedes the places from a position whose assumption is broken.
    fn restart(&mut self, from: usize, is_broken: impl Fn(&[Ticket]) -> bool) {
        for place in &mut self.places[from..] {
            if place.state.ahead().is_some_and(|ahead| is_broken(ahead)) {
                place.state = PlaceState::Due;
                place.doubts.clear();
            }
        }
    }
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
