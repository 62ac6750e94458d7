//! The bounds of a whole batch: time, budget, and patience for room.

use super::{Admission, since};
use crate::json::time::Moment;
use crate::policy::budget::{Budget, Spent};
use crate::policy::deadline::Reached;
use crate::policy::room::Shortage;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// A bound of a batch's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The time to end.
    StopAt,
    /// The longest duration.
    MaxDuration,
    /// The end of its window.
    Window,
    /// The tokens or the money that it may use.
    Budget,
    /// The machine's free disk or memory, waited for without success.
    Room,
    /// What the batch's changes rest on was changed or removed.
    Revoked,
    /// A landing failed its check, and could not be taken off the target: whatever
    /// lands on top fails too.
    BrokenTarget,
}

impl EndedBy {
    /// Returns what it is, as a phrase.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::StopAt => "the time to stop",
            Self::MaxDuration => "`max_duration`",
            Self::Window => "the end of its window",
            Self::Budget => "the batch's budget",
            Self::Room => "too little free disk or memory",
            Self::Revoked => "the revoked authorisation",
            Self::BrokenTarget => "the broken landing target",
        }
    }

    /// Returns that it was reached, as the beginning of a message.
    pub const fn reached(self) -> &'static str {
        match self {
            Self::StopAt => "the time to stop reached",
            Self::MaxDuration => "`max_duration` reached",
            Self::Window => "the end of the window reached",
            Self::Budget => "the batch's budget reached",
            Self::Room => "free disk or memory too low",
            Self::Revoked => "authorisation revoked",
            Self::BrokenTarget => "the landing target is broken",
        }
    }

    /// Returns whether work may be left that the batch would have done.
    pub(crate) const fn is_shortage(self) -> bool {
        matches!(
            self,
            Self::Budget | Self::Room | Self::Revoked | Self::BrokenTarget
        )
    }
}

impl From<Reached> for EndedBy {
    fn from(reached: Reached) -> Self {
        match reached {
            Reached::StopAt => Self::StopAt,
            Reached::MaxDuration => Self::MaxDuration,
            Reached::Window => Self::Window,
        }
    }
}

impl Admission {
    /// Takes in what the batch used so far. Returns its budget the first time
    /// that it is used up; the batch is to end then.
    pub fn spend(&mut self, spent: Spent) -> Option<Budget> {
        let budget = self.rule.budget;
        if self.is_budget_exceeded || !budget.is_used_up(spent, Duration::ZERO) {
            return None;
        }
        self.is_budget_exceeded = true;
        self.due = Some(EndedBy::Budget);
        Some(budget)
    }

    /// Takes in that lanes wait for room, or that none does. Returns whether the
    /// batch has waited for as long as it waits; it is to end then.
    pub fn wait_for_room(&mut self, short: Option<&Shortage>, runs: bool, now: Moment) -> bool {
        if short.is_none() || runs {
            self.short_since = None;
            return false;
        }
        let began = *self.short_since.get_or_insert(now.boot_ms);
        let is_over = since(began, now.boot_ms) >= self.rule.room.patience;
        if is_over {
            self.due = Some(EndedBy::Room);
        }
        is_over
    }

    /// Takes in that the batch may change nothing any more; it is to end.
    pub const fn revoke(&mut self) {
        self.due = Some(EndedBy::Revoked);
    }

    /// Takes in that a landing which failed its check stays on the target; the batch is
    /// to end.
    pub const fn break_target(&mut self) {
        self.due = Some(EndedBy::BrokenTarget);
    }

    /// Returns the bound that ends the batch now, once. A batch that is
    /// interrupted already does not end by a bound in time.
    pub fn end_by(
        &mut self,
        started_ms: u64,
        now: Moment,
        is_interrupted: bool,
    ) -> Option<EndedBy> {
        let due = self.due.take().or_else(|| {
            let ran = since(started_ms, now.boot_ms);
            let reached = self.rule.deadline.reached(now.wall, ran)?;
            (!is_interrupted).then_some(EndedBy::from(reached))
        })?;
        if self.ended_by.is_some() {
            return None;
        }
        self.ended_by = Some(due);
        Some(due)
    }

    /// Returns the bound that ended the batch.
    pub const fn ended_by(&self) -> Option<EndedBy> {
        self.ended_by
    }

    /// Returns how long it is until a bound in time; `None` where there is none.
    pub fn until_bound(&self, started_ms: u64, now: Moment) -> Option<Duration> {
        let ran = since(started_ms, now.boot_ms);
        self.rule.deadline.left(now.wall, ran)
    }
}
