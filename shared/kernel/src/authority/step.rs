//! The identity of a step.

use crate::json::id::{IssueId, LeaseId, SessionId, StepId, WorkerName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The step that a turn belongs to, and the lease that it runs under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepIdentity {
    /// The issue that the step works on.
    pub issue_id: IssueId,
    /// The worker that does it, as in `worker.1`.
    pub worker_id: WorkerName,
    /// The lease's owner: the assignee that claimed.
    pub owner: String,
    /// The lease's id.
    pub lease_id: LeaseId,
    /// The lease's generation: the fencing token.
    pub generation: u64,
    /// The session that the step is recorded in.
    pub session_id: SessionId,
}

impl StepIdentity {
    /// Returns `<worker>.<issue>.<generation>`, which no two attempts share.
    pub fn step_id(&self) -> StepId {
        StepId::of(&self.worker_id, &self.issue_id, self.generation)
    }
}
