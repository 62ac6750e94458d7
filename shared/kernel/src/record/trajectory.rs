//! The trajectory: one append-only row a step, and what is read from it
//! (HARNESS-RUNTIME 6).

use crate::json::id::IssueId;

mod account;
mod agent;
mod batch;
mod chain_check;
mod control;
mod crossing;
mod glance;
mod holder;
mod kpi;
mod link;
mod outcome;
mod projection;
mod recovery;
mod red;
mod row;
mod series;
mod streak;
mod supervision;

pub use account::{Account, CloseCounts, IssueAccount, ProviderAccount};
pub use agent::{AgentRecord, TokenCounts};
pub(crate) use batch::TAKE_OVER_BOUND;
pub use batch::{
    BatchHistory, BatchRecord, IssueRecord, OpenBatch, batch_end_row, batch_id, batch_refused_row,
    batch_resume_row, batch_start_row, salvage_row, take_over_row,
};
pub use chain_check::{BreakKind, ChainBreak, ChainReport, check_chain};
pub use control::{ControlRecord, control_row};
pub use crossing::{CrossingResult, WorldRecord};
pub use glance::RowGlance;
pub use holder::BatchHolder;
pub use kpi::{KPI_WINDOW, KpiDecision, Throughput, throughput};
pub use link::{Chain, ChainHead, NoChainHead};
pub use outcome::RowOutcome;
pub use projection::{
    Projection, ProjectionMode, TrajectoryCounts, UnknownProjectionMode, project,
};
pub use recovery::{BlockedBy, ClosedIssue, RecoverAt, is_settled, panicked_row};
pub use red::known_red;
pub use row::{RetryRecord, SharedVerification, StepRow, TrajectoryError, Verification};
pub use series::{CommandSeries, NextAct, gate_attempt_row, gate_begin_row, gate_take_over_row};
pub use streak::FailureStreaks;
pub use supervision::{
    SupervisionRecord, breaker_row, budget_row, provider_row, revoked_row, room_row,
};

/// What a row refers to, by its `action`.
pub mod action {
    /// One step of a worker.
    pub const WORKER_LOOP: &str = "worker.loop";
    /// A coordinator opened a batch.
    pub const BATCH_START: &str = "coordinator.batch_start";
    /// A coordinator took up a batch whose coordinator was gone.
    pub const BATCH_RESUME: &str = "coordinator.batch_resume";
    /// A batch is over.
    pub const BATCH_END: &str = "coordinator.batch_end";
    /// A step was interrupted by the death of its harness, and recovered.
    pub(crate) const TAKE_OVER: &str = "coordinator.take_over";
    /// What a cut step, or a person, left in a lane was put aside.
    pub(crate) const SALVAGE: &str = "worker.salvage";
    /// A coordinator refused to dispatch.
    pub const DISPATCH_REFUSED: &str = "coordinator.dispatch_refused";
    /// An escalation outside a lane was carried out, or could not be.
    pub const ESCALATION: &str = "harness.escalation";
    /// A gated command begins.
    pub(crate) const GATE_BEGIN: &str = "gate.begin";
    /// A gated command ended.
    pub(crate) const GATE_ATTEMPT: &str = "gate.attempt";
    /// A gated command was interrupted by the death of its harness, and
    /// recovered.
    pub(crate) const GATE_TAKE_OVER: &str = "gate.take_over";
    /// A step's turn was handed to another world.
    pub const WORLD_SUBMIT: &str = "world.submit";
    /// Issue memory was changed by no transaction while a batch ran.
    pub const MEMORY_CHANGED: &str = "coordinator.memory_changed";
    /// The operator accepted a row of issue memory that changed outside a
    /// transaction.
    pub const CHANGES_ACCEPTED: &str = "operator.changes_accepted";
    /// An operator reviewed the work of a step; the row's lineage names the step.
    pub const REVIEWED: &str = "operator.reviewed";
    /// An operator asked something of a batch while it ran.
    pub(crate) const CONTROL: &str = "operator.control";
    /// The last commit that landed was verified without build state.
    pub const TIP_VERIFIED: &str = "coordinator.tip_verified";
    /// A lane was disabled.
    pub const LANE_GIVEN_UP: &str = "coordinator.lane_given_up";
    /// A provider refused more work, and no lane works with it for a while.
    pub(crate) const PROVIDER_PARKED: &str = "coordinator.provider_parked";
    /// A provider that was parked answers again.
    pub(crate) const PROVIDER_RESUMED: &str = "coordinator.provider_resumed";
    /// Issues failed alike in a row, and dispatch pauses.
    pub(crate) const BREAKER_OPEN: &str = "coordinator.breaker_open";
    /// Dispatch continues.
    pub(crate) const BREAKER_CLOSED: &str = "coordinator.breaker_closed";
    /// The batch used up what it may.
    pub(crate) const BUDGET_EXCEEDED: &str = "coordinator.budget_exceeded";
    /// The batch waited without success for free disk or memory.
    pub(crate) const ROOM_SHORT: &str = "coordinator.room_short";
    /// What the batch's changes rest on was changed or removed.
    pub(crate) const AUTHORITY_REVOKED: &str = "coordinator.authority_revoked";
}

/// Returns whether a result class counts as success (`contracts.md` 6).
///
/// Everything else is failed.
pub(crate) fn is_success(result_class: &str) -> bool {
    const SUCCESS: [&str; 6] = [
        "accepted",
        "verified_accept",
        "completed",
        "success",
        "ok",
        "passed",
    ];
    SUCCESS.contains(&normal(result_class).as_str())
}

/// Returns whether a result class asks for a retry (`contracts.md` 6).
pub(crate) fn is_retry_needed(result_class: &str) -> bool {
    const MARKS: [&str; 5] = ["retry", "transient", "timeout", "network", "rate_limit"];
    let class = normal(result_class);
    MARKS.iter().any(|mark| class.contains(mark))
}

/// Returns the highest generation that rows know about an issue; 0 without one.
///
/// Issue memory may have been taken back to an older version, and a step id
/// must not come again.
pub fn generation_floor<'a>(
    rows: impl IntoIterator<Item = &'a StepRow>,
    issue_id: &IssueId,
) -> u64 {
    rows.into_iter()
        .filter(|row| row.issue_id.as_deref() == Some(issue_id))
        .filter_map(|row| row.generation)
        .max()
        .unwrap_or(0)
}

/// Returns a result class trimmed, lower-cased, `-` read as `_`.
fn normal(result_class: &str) -> String {
    result_class.trim().to_ascii_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_classes_read_as_the_contract_says() {
        for (class, success, retry) in [
            ("completed", true, false),
            ("Verified-Accept", true, false),
            (" OK ", true, false),
            ("passed", true, false),
            ("okay", false, false),
            ("failed", false, false),
            ("retry_needed_lease_active", false, true),
            ("Gate-Timeout", false, true),
            ("rate-limit", false, true),
            ("failed_lease_lost", false, false),
            ("", false, false),
        ] {
            assert_eq!(
                (is_success(class), is_retry_needed(class)),
                (success, retry),
                "{class}"
            );
        }
    }
}
