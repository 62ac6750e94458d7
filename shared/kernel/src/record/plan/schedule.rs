//! The order in which a batch would dispatch issues.

use super::never::never;
use super::{NeverIssue, PlannedIssue};
use crate::issue::dispatch::UNTOUCHED_WAIT_MAX;
use crate::issue::graph::{Hold, IssueGraph};
use crate::issue::lease::{self, AssigneeRule, LeaseState, Observation};
use crate::issue::{Issue, Selection, Status};
use crate::json::id::{IssueId, WorkerName};
use crate::json::stamp::Stamp;
use crate::json::time;
use crate::record::live::LiveBatch;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a schedule is made by.
pub struct PlanScope<'a> {
    /// Which issues the batch works on.
    pub selection: &'a Selection,
    /// Whose issues it takes.
    pub assignees: &'a AssigneeRule,
    /// The issues that it does not take, because it is resumed.
    pub left_out: &'a BTreeSet<IssueId>,
    /// The issues that failed in one batch after another.
    pub set_aside: &'a BTreeSet<IssueId>,
    /// Whether it waits for issues whose next attempt begins later.
    pub waits: bool,
    /// The workers of its lanes, in order.
    pub workers: &'a [WorkerName],
    /// How many attempts a lane may have; none without a bound.
    pub attempts_per_lane: Option<u64>,
    /// The batches that run.
    pub batches: &'a [LiveBatch],
    /// The clocks and processes.
    pub seen: &'a Observation<'a>,
    /// Returns the title of an issue.
    pub title: &'a dyn Fn(&str) -> String,
}

impl PlanScope<'_> {
    /// Returns whether the batch leaves an issue alone that it could work on.
    fn leaves(&self, issue: &Issue) -> bool {
        self.left_out.contains(&*issue.id) || self.set_aside.contains(&*issue.id)
    }
}

/// The order of a batch, and what it leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The issues that lanes would be given, in the order of dispatch.
    pub order: Vec<PlannedIssue>,
    /// The first issue of each worker.
    pub first: Vec<Option<IssueId>>,
    /// The open issues that none would be given, by id.
    pub never: Vec<NeverIssue>,
    /// How many rounds of one issue a lane there would be.
    pub rounds: u64,
}

/// Plays a batch in which every attempt closes its issue, and all lanes end their
/// attempts together.
pub fn schedule(issues: &[&Issue], scope: &PlanScope<'_>) -> Schedule {
    let graph = IssueGraph::build(issues.iter().copied());
    let mut play = Play::begin(issues, scope);
    let mut schedule = Schedule {
        first: vec![None; scope.workers.len()],
        ..Schedule::default()
    };
    let mut given: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut beyond: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut rounds = 0;
    loop {
        let taken = play.round();
        if taken.is_empty() {
            match scope.waits && play.wait() {
                true => continue,
                false => break,
            }
        }
        rounds += 1;
        let is_beyond = scope.attempts_per_lane.is_some_and(|most| rounds > most);
        for (worker, id) in taken {
            play.close(&id);
            if is_beyond {
                beyond.insert(id);
                continue;
            }
            if rounds == 1 {
                schedule.first[worker] = Some(IssueId::from(&*id));
            }
            schedule.rounds = rounds;
            schedule.order.extend(play.planned(&id, &graph, rounds));
            given.insert(id);
        }
    }
    schedule.never = never(issues, &graph, (&given, &beyond), scope);
    schedule
}

/// A batch that is played.
struct Play<'a> {
    scope: &'a PlanScope<'a>,
    graph: IssueGraph,
    issues: BTreeMap<Arc<str>, &'a Issue>,
    /// Issues whose lease is over, by priority, then id.
    stale: BTreeSet<(i64, Arc<str>)>,
    /// Issues whose next attempt begins later.
    later: BTreeSet<(Timestamp, Arc<str>)>,
}

impl<'a> Play<'a> {
    fn begin(issues: &[&'a Issue], scope: &'a PlanScope<'a>) -> Self {
        let mut play = Self {
            scope,
            graph: IssueGraph::default(),
            issues: issues
                .iter()
                .map(|issue| (issue.id.clone(), *issue))
                .collect(),
            stale: BTreeSet::new(),
            later: BTreeSet::new(),
        };
        // What no lane is given holds others as a blocked issue does.
        let mut shown: Vec<Issue> = Vec::with_capacity(issues.len());
        for issue in issues {
            shown.push(play.enter(issue));
        }
        play.graph = IssueGraph::build(&shown);
        play
    }

    fn enter(&mut self, issue: &Issue) -> Issue {
        let status = match &issue.status {
            Status::Open => match admitted(issue, self.scope) {
                Admitted::Now => Status::Open,
                Admitted::At(at) => {
                    self.later.insert((at, issue.id.clone()));
                    Status::Blocked
                }
                Admitted::Never => Status::Blocked,
            },
            Status::InProgress if is_taken_over(issue, self.scope) => {
                self.stale.insert((issue.priority, issue.id.clone()));
                Status::InProgress
            }
            other => other.clone(),
        };
        Issue {
            status,
            ..issue.clone()
        }
    }

    /// Gives each worker its next issue, as a pass does.
    fn round(&mut self) -> Vec<(usize, Arc<str>)> {
        let mut taken = Vec::new();
        for (index, worker) in self.scope.workers.iter().enumerate() {
            let is_for = |id: &&Arc<str>| {
                let issue = self.issues.get(*id);
                issue.is_some_and(|issue| self.scope.assignees.admits(&issue.assignee, worker))
            };
            let ready = self.graph.frontier().find(is_for);
            let ready = ready.and_then(|id| Some((self.issues.get(id)?.priority, id.clone())));
            let next = ready.into_iter().chain(self.stale.first().cloned()).min();
            if let Some((priority, id)) = next {
                self.stale.remove(&(priority, id.clone()));
                self.becomes(&id, Status::InProgress);
                taken.push((index, id));
            }
        }
        taken
    }

    /// Waits for the next attempt that begins later; returns whether there is one.
    fn wait(&mut self) -> bool {
        let Some((at, _)) = self.later.first().cloned() else {
            return false;
        };
        while let Some((when, id)) = self.later.first().cloned()
            && when <= at
        {
            self.later.pop_first();
            self.becomes(&id, Status::Open);
        }
        true
    }

    fn close(&mut self, id: &Arc<str>) {
        self.becomes(id, Status::Closed);
    }

    fn becomes(&mut self, id: &Arc<str>, status: Status) {
        if let Some(issue) = self.issues.get(id) {
            self.graph.upsert(&Issue {
                status,
                ..(*issue).clone()
            });
        }
    }

    fn planned(&self, id: &Arc<str>, graph: &IssueGraph, round: u64) -> Option<PlannedIssue> {
        let issue = self.issues.get(id)?;
        let holds = graph.holds(id);
        let waits_for = holds.iter().map(|hold| IssueId::from(held_by(hold)));
        let waits_for: BTreeSet<IssueId> = waits_for.collect();
        let not_before = match admitted(issue, self.scope) {
            Admitted::At(at) if issue.status == Status::Open => Some(Stamp::at(at)),
            _ => None,
        };
        Some(PlannedIssue {
            issue_id: IssueId::from(&**id),
            title: (self.scope.title)(id),
            priority: issue.priority,
            round,
            waits_for: waits_for.into_iter().collect(),
            not_before,
            takes_over: issue.status == Status::InProgress,
        })
    }
}

/// Returns the issue that holds.
pub(super) fn held_by(hold: &Hold) -> &str {
    match hold {
        Hold::On(id) | Hold::OnMissing(id) | Hold::Child(id) | Hold::Ancestor(id) => id,
    }
}

/// Whether a batch takes an issue that is open once nothing holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admitted {
    /// Now.
    Now,
    /// Its next attempt begins later, and the batch waits for it.
    At(Timestamp),
    /// Not in this batch.
    Never,
}

fn admitted(issue: &Issue, scope: &PlanScope<'_>) -> Admitted {
    let mut workers = scope.workers.iter();
    let is_theirs = workers.any(|worker| scope.assignees.admits(&issue.assignee, worker));
    if !is_theirs || !scope.selection.admits(issue) || scope.leaves(issue) {
        return Admitted::Never;
    }
    let now = scope.seen.moment.wall;
    let retry_at = issue.retry_at.as_deref().and_then(time::parse);
    match retry_at.filter(|at| *at > now) {
        None => Admitted::Now,
        Some(at) if at <= now.saturating_add(UNTOUCHED_WAIT_MAX).unwrap_or(now) => Admitted::At(at),
        Some(_) => Admitted::Never,
    }
}

/// Returns whether a batch takes over the lease of an issue in progress.
pub(super) fn is_taken_over(issue: &Issue, scope: &PlanScope<'_>) -> bool {
    lease::state(Some(issue), scope.seen) == LeaseState::Stale
        && scope.selection.admits(issue)
        && !scope.leaves(issue)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
