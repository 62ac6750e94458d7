//! The landings whose issues are yet to close: their checks (`check_cmd`), which
//! run while other work lands on top.
//!
//! Rules:
//!
//! - A check runs in a slot, as verifications do. Checks get free slots first: no
//!   issue closes before those that landed before it.
//! - An issue closes when its check and all the checks of landings before it
//!   have passed. Issues close in the order in which their work landed.
//! - A check that fails is charged to its issue only when all landings before it
//!   have closed. Then its work is taken back with all that landed on top of it,
//!   and that lands again without it.
//! - Nothing lands while a check that failed is on the target.
//! - What landed riding has no check. It closes after the leader of its run has
//!   closed: from then on its work stays on the target. It is taken back with all
//!   of its run if the leader does not land or fails its check; then all of them
//!   land again, and none is charged.

use super::Ticket;

/// What the holder of a landing is to do about its check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckStart {
    /// Run it.
    Begins,
    /// Ask again after the next change: there is no free slot.
    Waits,
    /// Leave it: the work was taken back, or is to be.
    Ends,
}

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
    /// Take the work off the target, with the rest of its run and all that landed
    /// on top, and join the queue again: nothing verifies it.
    Withdraw,
    /// Leave the work on the target: whether it may stay there is decided with
    /// the leader of its run, whose issue did not close.
    Leave,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckState {
    /// Its check is yet to run.
    Due,
    Running,
    Passed,
    Failed,
    /// Its issue closes.
    Closing,
    /// It rides.
    Riding,
    /// Its run is to be taken back.
    Orphaned,
    /// The leader of its run has closed.
    Covered,
    /// The leader of its run has not closed, and stays on the target.
    Stranded,
}

#[derive(Clone, Copy, Debug)]
struct CheckedLanding {
    ticket: Ticket,
    /// The leader of its run, where it rides.
    leader: Option<Ticket>,
    state: CheckState,
}

impl CheckedLanding {
    fn is_of(&self, leader: Ticket) -> bool {
        self.leader == Some(leader)
    }
}

/// The landings whose issues have not closed, in the order in which they landed.
#[derive(Clone, Debug)]
pub(super) struct Checks {
    landings: Vec<CheckedLanding>,
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

    /// Returns whether something is on the target that is to be taken back.
    pub(super) fn has_failed(&self) -> bool {
        let failed = [CheckState::Failed, CheckState::Orphaned];
        let mut landings = self.landings.iter();
        landings.any(|landing| failed.contains(&landing.state))
    }

    pub(super) fn contains(&self, ticket: Ticket) -> bool {
        self.position(ticket).is_some()
    }

    /// Returns the tickets, in the order in which their work landed.
    pub(super) fn tickets(&self) -> Vec<Ticket> {
        let landings = self.landings.iter();
        landings.map(|landing| landing.ticket).collect()
    }

    /// Returns whether something on the target rides on a leader.
    pub(super) fn has_riders(&self, leader: Ticket) -> bool {
        self.landings.iter().any(|landing| landing.is_of(leader))
    }

    pub(super) fn begin(&mut self, ticket: Ticket) {
        self.landings.push(CheckedLanding {
            ticket,
            leader: None,
            state: CheckState::Due,
        });
    }

    /// Returns how many checks run.
    pub(super) fn running(&self) -> usize {
        self.count(CheckState::Running)
    }

    /// Returns how many checks are yet to run.
    pub(super) fn due(&self) -> usize {
        self.count(CheckState::Due)
    }

    fn count(&self, state: CheckState) -> usize {
        let landings = self.landings.iter();
        landings.filter(|landing| landing.state == state).count()
    }

    /// Takes in that a check begins, where it is due and `has_slot`.
    pub(super) fn start(&mut self, ticket: Ticket, has_slot: bool) -> CheckStart {
        let at = self.position(ticket);
        let due = at.filter(|at| self.landings[*at].state == CheckState::Due);
        match due {
            None => CheckStart::Ends,
            Some(_) if !has_slot => CheckStart::Waits,
            Some(at) => {
                self.landings[at].state = CheckState::Running;
                CheckStart::Begins
            }
        }
    }

    /// Takes in work that landed riding; it is taken back where its leader is
    /// gone.
    pub(super) fn begin_riding(&mut self, ticket: Ticket, leader: Option<Ticket>) {
        self.landings.push(CheckedLanding {
            ticket,
            leader,
            state: match leader {
                Some(_) => CheckState::Riding,
                None => CheckState::Orphaned,
            },
        });
    }

    /// Takes in how a check ended; `false` where its work was taken back. The
    /// failure of a run's check is not known to be its leader's.
    pub(super) fn end(&mut self, ticket: Ticket, passed: bool) -> bool {
        let Some(at) = self.position(ticket) else {
            return false;
        };
        if self.landings[at].state == CheckState::Orphaned {
            return true;
        }
        self.landings[at].state = match passed {
            true => CheckState::Passed,
            false if self.has_riders(ticket) => CheckState::Orphaned,
            false => CheckState::Failed,
        };
        true
    }

    /// Takes back what rides on a leader that neither passed in the queue nor
    /// landed.
    pub(super) fn settle_riders(&mut self, passed: &[Ticket]) {
        let leads = |landing: &&CheckedLanding| {
            landing.leader.is_none() && landing.state != CheckState::Orphaned
        };
        let leading = self.landings.iter().filter(leads);
        let leading: Vec<Ticket> = leading.map(|landing| landing.ticket).collect();
        for landing in &mut self.landings {
            let has_leader = landing
                .leader
                .is_some_and(|leader| leading.contains(&leader) || passed.contains(&leader));
            if landing.state == CheckState::Riding && !has_leader {
                landing.state = CheckState::Orphaned;
            }
        }
    }

    /// Takes in that an issue closes now; `false` where its work was taken back.
    pub(super) fn close(&mut self, ticket: Ticket) -> bool {
        let Some(at) = self.position(ticket) else {
            return false;
        };
        let state = &mut self.landings[at].state;
        if *state == CheckState::Passed {
            *state = CheckState::Closing;
        }
        !self.may_go(at)
    }

    /// Returns whether a landing may be taken back, with those on top of it.
    pub(super) fn may_be_taken_back(&self, ticket: Ticket) -> bool {
        let from = self.start_of(ticket);
        from.is_some_and(|from| (from..self.landings.len()).all(|at| self.may_go(at)))
    }

    fn may_go(&self, at: usize) -> bool {
        let stays = [
            CheckState::Closing,
            CheckState::Covered,
            CheckState::Stranded,
        ];
        !stays.contains(&self.landings[at].state)
    }

    /// Returns what the holder is to do now; `None` where it waits for the next
    /// change.
    pub(super) fn next(&self, ticket: Ticket) -> Option<CheckEnd> {
        let Some(at) = self.position(ticket) else {
            return Some(CheckEnd::LandAgain);
        };
        let before = &self.landings[..at];
        let is_first = before.iter().all(|landing| landing.is_of(ticket));
        match self.landings[at].state {
            CheckState::Covered => Some(CheckEnd::MayClose),
            CheckState::Stranded => Some(CheckEnd::Leave),
            CheckState::Orphaned => {
                let mut before = before.iter();
                let is_taken = before.any(|landing| landing.state == CheckState::Orphaned);
                (!is_taken).then_some(CheckEnd::Withdraw)
            }
            CheckState::Passed | CheckState::Closing if is_first => Some(CheckEnd::MayClose),
            CheckState::Failed if is_first => Some(CheckEnd::TakeBack),
            _ => None,
        }
    }

    /// Returns a landing with the rest of its run and those on top, in the order
    /// in which they landed.
    pub(super) fn from(&self, ticket: Ticket) -> Vec<Ticket> {
        let at = self.start_of(ticket);
        at.map_or_else(Vec::new, |at| self.tickets().split_off(at))
    }

    /// Removes work that is not on the target any more.
    pub(super) fn remove(&mut self, ticket: Ticket) {
        self.landings.retain(|landing| landing.ticket != ticket);
    }

    /// Removes work that stays on the target. What rides on it may close if its
    /// issue has.
    pub(super) fn leave(&mut self, ticket: Ticket, has_closed: bool) {
        self.remove(ticket);
        for landing in &mut self.landings {
            if landing.is_of(ticket) && landing.state == CheckState::Riding {
                landing.state = match has_closed {
                    true => CheckState::Covered,
                    false => CheckState::Stranded,
                };
            }
        }
    }

    fn position(&self, ticket: Ticket) -> Option<usize> {
        let mut landings = self.landings.iter();
        landings.position(|landing| landing.ticket == ticket)
    }

    /// Returns the position of the first landing of a landing's run.
    fn start_of(&self, ticket: Ticket) -> Option<usize> {
        let at = self.position(ticket)?;
        let leader = self.landings[at].leader.unwrap_or(ticket);
        let first = self
            .landings
            .iter()
            .position(|landing| landing.is_of(leader));
        Some(first.map_or(at, |first| first.min(at)))
    }
}
