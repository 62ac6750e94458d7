//! The checks of work that has landed (`check_cmd`). They run at once, while
//! other work lands on top.
//!
//! Rules:
//!
//! - An issue closes when its check and all the checks of landings before it
//!   have passed. Issues close in the order in which their work landed.
//! - A check that fails is charged to its issue only when all landings before it
//!   have closed. Then its work is taken back with all that landed on top of it,
//!   and that lands again without it.
//! - Nothing lands while a check that failed is on the target.

use super::Ticket;

/// How work ends that was checked after it landed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckEnd {
    /// The issue may close.
    MayClose,
    /// Take the work off the target, with all that landed on top of it: its
    /// check failed.
    TakeBack,
    /// Join the queue again: work that landed before it was taken back, and this
    /// with it.
    LandAgain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckState {
    Running,
    Passed,
    Failed,
}

/// The landings whose issues have not closed, in the order in which they landed.
#[derive(Clone, Debug)]
pub(super) struct Checks {
    landings: Vec<(Ticket, CheckState)>,
}

impl Checks {
    pub(super) const fn new() -> Self {
        Self {
            landings: Vec::new(),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.landings.is_empty()
    }

    pub(super) fn has_failed(&self) -> bool {
        let mut landings = self.landings.iter();
        landings.any(|(_, state)| *state == CheckState::Failed)
    }

    pub(super) fn contains(&self, ticket: Ticket) -> bool {
        self.position(ticket).is_some()
    }

    /// Returns the tickets, in the order in which their work landed.
    pub(super) fn tickets(&self) -> Vec<Ticket> {
        self.landings.iter().map(|(ticket, _)| *ticket).collect()
    }

    pub(super) fn begin(&mut self, ticket: Ticket) {
        self.landings.push((ticket, CheckState::Running));
    }

    /// Takes in how a check ended; `false` where its work was taken back.
    pub(super) fn end(&mut self, ticket: Ticket, passed: bool) -> bool {
        let Some(at) = self.position(ticket) else {
            return false;
        };
        self.landings[at].1 = match passed {
            true => CheckState::Passed,
            false => CheckState::Failed,
        };
        true
    }

    /// Returns what the holder is to do now; `None` where it waits for the next
    /// change.
    pub(super) fn next(&self, ticket: Ticket) -> Option<CheckEnd> {
        match self.position(ticket) {
            None => Some(CheckEnd::LandAgain),
            Some(0) => match self.landings[0].1 {
                CheckState::Running => None,
                CheckState::Passed => Some(CheckEnd::MayClose),
                CheckState::Failed => Some(CheckEnd::TakeBack),
            },
            Some(_) => None,
        }
    }

    /// Returns a landing and those on top of it, in the order in which they
    /// landed.
    pub(super) fn from(&self, ticket: Ticket) -> Vec<Ticket> {
        let at = self.position(ticket);
        at.map_or_else(Vec::new, |at| self.tickets().split_off(at))
    }

    pub(super) fn remove(&mut self, ticket: Ticket) {
        self.landings.retain(|(of, _)| *of != ticket);
    }

    fn position(&self, ticket: Ticket) -> Option<usize> {
        self.landings.iter().position(|(of, _)| *of == ticket)
    }
}
