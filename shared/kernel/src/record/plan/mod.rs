//! What a batch that began now would do: which issues its lanes would be given,
//! in which order, and which never, and why.
//!
//! Nothing of it is a promise. It assumes that every attempt closes its issue, and
//! that all attempts take the same time.

mod estimate;
mod never;
mod schedule;
mod terms;

pub use estimate::{PastPace, PlanEstimate};
pub use schedule::{PlanScope, Schedule, schedule};
pub use terms::{PlanTerms, PlannedAgent, PlannedBudget, PlannedLanding, PlannedPolicy};

use super::why::Reason;
use crate::failure::FailureClass;
use crate::json::id::{BatchId, IssueId, WorkerName};
use crate::json::stamp::Stamp;
use schemars::JsonSchema;
use serde::Serialize;

/// What a batch that began now would do. Nothing of it is done.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchPlan {
    /// When it was planned.
    pub at: Stamp,
    /// The issue store.
    pub issues_path: String,
    /// The interrupted batch that would be resumed; null where a new one begins.
    pub resumes: Option<BatchId>,
    /// Why the batch would be refused before it dispatches anything.
    pub refusals: Vec<PlannedRefusal>,
    /// What it would be run with.
    pub terms: PlanTerms,
    /// Its lanes, in order.
    pub lanes: Vec<PlannedLane>,
    /// The issues that lanes would be given, in the order of dispatch.
    pub order: Vec<PlannedIssue>,
    /// The issues that are not closed and that no lane would be given, by id.
    pub never: Vec<NeverIssue>,
    /// How long it would take, and what it would cost.
    pub estimate: PlanEstimate,
}

/// Why a batch would be refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedRefusal {
    /// The class of the refusal; null where it has none.
    pub failure_class: Option<FailureClass>,
    /// The refusal, for a person.
    pub text: String,
}

/// A lane of the batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedLane {
    /// The lane's worker.
    pub worker_id: WorkerName,
    /// The worktree of the lane.
    pub worktree: String,
    /// Whether the worktree is there; otherwise the batch creates it.
    pub exists: bool,
    /// The provider of the lane's agent.
    pub provider: String,
    /// The first issue that it would be given; null where there is none for it.
    pub first_issue: Option<IssueId>,
}

/// An issue that a lane would be given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedIssue {
    /// The issue.
    pub issue_id: IssueId,
    /// Its title.
    pub title: String,
    /// Its priority; a lower one is dispatched first.
    pub priority: i64,
    /// In which round it would be dispatched, from 1: a round gives each lane one
    /// issue.
    pub round: u64,
    /// The issues that it waits for, by id.
    pub waits_for: Vec<IssueId>,
    /// The time before which its next attempt does not begin; null where it may
    /// begin now.
    pub not_before: Option<Stamp>,
    /// Whether it is taken over from a lease that is over.
    pub takes_over: bool,
}

/// An issue that no lane would be given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NeverIssue {
    /// The issue.
    pub issue_id: IssueId,
    /// Its title.
    pub title: String,
    /// Why it would not run; the first reason is to be removed first.
    pub reasons: Vec<Reason>,
    /// The issue at the end of what it waits for, which this batch does not close;
    /// null where it waits for none.
    pub root: Option<IssueId>,
}
