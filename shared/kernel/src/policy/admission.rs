//! Admission: which idle lanes may start a step now, and what ends the batch
//! (`agents.md`, "Supervision").
//!
//! One value holds everything that these decisions depend on: the breaker, the
//! providers, the room on the machine, the budget, and the bounds in time. It
//! has no clock and no lock; the loops of the coordinator and of a single worker
//! drive it.

mod bound;
mod pass;

pub use bound::EndedBy;
pub use pass::{AdmissionPass, AdmittedWorker, Waiting};

use super::breaker::{Blame, Breaker, BreakerChange, BreakerRule};
use super::budget::Budget;
use super::deadline::Deadline;
use super::provider::{ProviderAnswer, ProviderChange, ProviderPool};
use super::room::RoomRule;
use crate::json::id::{IssueId, WorkerName};
use jiff::Timestamp;
use std::time::Duration;

/// The rules of a batch's admission.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmissionRule {
    /// When dispatch pauses for what fails alike.
    pub breaker: BreakerRule,
    /// What must be free on the machine.
    pub room: RoomRule,
    /// What the batch may use.
    pub budget: Budget,
    /// When the batch is to end.
    pub deadline: Deadline,
}

/// What decides which lanes may start a step.
#[derive(Clone, Debug)]
pub struct Admission {
    rule: AdmissionRule,
    breaker: Breaker,
    pool: ProviderPool,
    /// Since when no step runs for want of room, on CLOCK_BOOTTIME.
    short_since: Option<u64>,
    is_budget_exceeded: bool,
    /// A bound that is reached and was not yet returned.
    due: Option<EndedBy>,
    ended_by: Option<EndedBy>,
}

/// The end of a step, as far as the admission of later steps depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepResult<'a> {
    /// The worker.
    pub worker: &'a WorkerName,
    /// The issue.
    pub issue_id: &'a IssueId,
    /// How it ended for the provider.
    pub answer: ProviderAnswer,
    /// What it shows about its environment.
    pub blame: Blame,
}

impl Admission {
    /// Begins with a closed breaker.
    pub const fn new(rule: AdmissionRule, pool: ProviderPool) -> Self {
        Self {
            rule,
            breaker: Breaker::new(rule.breaker),
            pool,
            short_since: None,
            is_budget_exceeded: false,
            due: None,
            ended_by: None,
        }
    }

    /// Returns the provider that a worker's lane uses now: its own, or a
    /// fallback while its own is parked; `None` where the lane waits.
    pub fn provider_of(&self, worker: &WorkerName, now: Timestamp) -> Option<&str> {
        self.pool.of(worker, now)
    }

    /// Takes in the end of a step.
    pub fn step_ended(
        &mut self,
        step: StepResult<'_>,
        now: Timestamp,
    ) -> (Option<ProviderChange>, Option<BreakerChange>) {
        let provider = self.pool.ended(step.worker, step.answer, now);
        let breaker = self
            .breaker
            .ended(step.worker, step.issue_id, step.blame, now);
        (provider, breaker)
    }

    /// Takes in that a worker's step will not report how it ended.
    pub fn step_lost(&mut self, worker: &WorkerName, now: Timestamp) {
        self.pool.ended(worker, ProviderAnswer::Unknown, now);
        self.breaker
            .ended(worker, &IssueId::default(), Blame::NotCounted, now);
    }

    /// Takes in whether the verification passes without any work.
    pub fn baseline_answered(&mut self, passes: bool, now: Timestamp) -> Option<BreakerChange> {
        self.breaker.answered(passes, now)
    }
}

/// How long it has been since a moment, both on CLOCK_BOOTTIME.
const fn since(then_ms: u64, now_ms: u64) -> Duration {
    Duration::from_millis(now_ms.saturating_sub(then_ms))
}

#[cfg(test)]
mod tests;
