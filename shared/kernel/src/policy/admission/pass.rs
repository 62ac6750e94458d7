//! One pass: which idle lanes may claim, and what the others wait for.

use super::Admission;
use crate::json::id::WorkerName;
use crate::policy::breaker::Passage;
use crate::policy::provider::ProviderAssignment;
use crate::policy::retry::retry_at;
use crate::policy::room::{Room, Shortage};
use jiff::Timestamp;
use std::time::Duration;

/// When to check again what has no time of its own.
const CHECK_AGAIN: Duration = Duration::from_secs(5);

/// A worker that may claim an issue, with its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmittedWorker {
    /// The worker's index in the pass.
    pub worker: usize,
    /// The provider that the worker uses.
    pub assignment: ProviderAssignment,
}

/// What the workers without a claim wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Whether there is work for each worker that it must wait for.
    pub held: Vec<bool>,
    /// The worker that is to find out whether the verification passes without
    /// any work.
    pub asks: Option<usize>,
    /// When to check again; `None` where that depends on a running step.
    pub look_at: Option<Timestamp>,
    /// What the machine has too little of.
    pub short: Option<Shortage>,
}

/// A pass. Claims are made round by round: a worker that gets no issue leaves
/// its assignment to another one.
#[derive(Clone, Debug)]
#[must_use]
pub struct AdmissionPass {
    workers: Vec<WorkerName>,
    /// The workers that were not offered a claim yet.
    left: Vec<usize>,
    passage: Passage,
    short: Option<Shortage>,
    now: Timestamp,
    is_over: bool,
}

impl Admission {
    /// Starts a pass for the idle workers, in order.
    pub fn pass(&self, workers: &[WorkerName], room: &Room, now: Timestamp) -> AdmissionPass {
        let short = self.rule.room.shortage(room);
        let passage = self.breaker.passage(now);
        AdmissionPass {
            workers: workers.to_vec(),
            left: (0..workers.len()).collect(),
            passage,
            short,
            now,
            is_over: short.is_some() || !matches!(passage, Passage::All | Passage::One),
        }
    }
}

impl AdmissionPass {
    /// Returns the workers that may claim an issue in the next round; none where
    /// the pass is over.
    pub fn round(&mut self, admission: &Admission) -> Vec<AdmittedWorker> {
        if self.is_over {
            return Vec::new();
        }
        let names: Vec<&WorkerName> = self.left.iter().map(|i| &self.workers[*i]).collect();
        let assignments = admission.pool.assignments(&names, self.now);
        let admitted = self.left.iter().zip(assignments);
        let admitted = admitted.filter_map(|(worker, assignment)| {
            Some(AdmittedWorker {
                worker: *worker,
                assignment: assignment?,
            })
        });
        let most = if self.passage == Passage::One {
            1
        } else {
            usize::MAX
        };
        let admitted: Vec<AdmittedWorker> = admitted.take(most).collect();
        self.left
            .retain(|left| !admitted.iter().any(|admitted| admitted.worker == *left));
        admitted
    }

    /// Records that a worker of the round got a claim.
    pub fn claimed(&mut self, admission: &mut Admission, admitted: AdmittedWorker) {
        let worker = &self.workers[admitted.worker];
        admission.pool.take(worker, admitted.assignment);
        admission.breaker.take(worker);
        // One step is let through: it is a probe.
        self.is_over |= self.passage == Passage::One;
    }

    /// Returns the workers that were not offered a claim, in order.
    pub fn left(&self) -> &[usize] {
        &self.left
    }

    /// Ends the pass. `with_work` are the workers without an offer that would
    /// have got a claim.
    pub fn end(self, admission: &mut Admission, with_work: &[usize]) -> Waiting {
        let mut waiting = Waiting {
            held: vec![false; self.workers.len()],
            short: self.short,
            ..Waiting::default()
        };
        for index in with_work {
            waiting.held[*index] = true;
            let worker = &self.workers[*index];
            if self.passage == Passage::Baseline && self.short.is_none() && waiting.asks.is_none() {
                admission.breaker.ask(worker);
                waiting.asks = Some(*index);
            }
            let look_at = match self.passage {
                _ if self.short.is_some() => Some(retry_at(self.now, CHECK_AGAIN)),
                Passage::NoneUntil(until) => Some(until),
                Passage::All | Passage::One => admission.pool.next(worker),
                Passage::Baseline | Passage::NoneYet => None,
            };
            waiting.look_at = look_at.into_iter().chain(waiting.look_at).min();
        }
        waiting
    }
}
