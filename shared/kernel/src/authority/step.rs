//! The identity of a step.

/// The step that a turn belongs to, and the lease that it runs under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepIdentity {
    /// The issue that the step works on.
    pub issue_id: String,
    /// The worker that does it, as in `worker.1`.
    pub worker_id: String,
    /// The lease's owner: the assignee that claimed.
    pub owner: String,
    /// The lease's id.
    pub lease_id: String,
    /// The lease's generation: the fencing token.
    pub generation: u64,
    /// The session that the step is recorded in.
    pub session_id: String,
}

impl StepIdentity {
    /// Returns `<worker>.<issue>.<generation>`, which no two attempts share.
    pub fn step_id(&self) -> String {
        format!("{}.{}.{}", self.worker_id, self.issue_id, self.generation)
    }
}
