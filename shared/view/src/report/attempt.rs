//! One attempt at an issue, as reports and the history of an issue show it.

use jiff::Timestamp;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::{BatchId, StepId, WorkerName};
use premath_kernel::json::stamp::Stamp;
use premath_kernel::policy::governing::SensitiveChange;
use premath_kernel::policy::retry::EscalationAction;
use premath_kernel::record::salvage;
use premath_kernel::record::trajectory::{RowOutcome, StepRow, TokenCounts};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// How an attempt, and with its last one an issue, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// The issue is closed.
    Closed,
    /// The issue is blocked.
    Blocked,
    /// A follow-up was filed.
    FollowUp,
    /// Nothing was changed, and the policy gives no further attempt.
    Stopped,
    /// The policy gives another attempt.
    Retry,
    /// The lease was lost, or the row of another program says no more.
    Failed,
    /// A person or a bound of the batch cut it short; no attempt is used up.
    Interrupted,
    /// The provider refused more work; no attempt is used up.
    UsageLimit,
}

impl AttemptOutcome {
    /// Reads it from the row of a step.
    pub fn of(row: &StepRow) -> Self {
        let has = |class: FailureClass| row.failure_classes.iter().any(|one| one == class.as_str());
        if row.succeeded() {
            return Self::Closed;
        }
        if row.is_limited() {
            return Self::UsageLimit;
        }
        if has(FailureClass::StepInterrupted) || has(FailureClass::HarnessDied) {
            return Self::Interrupted;
        }
        match row.retry.as_ref().map(|retry| retry.action) {
            Some(Some(EscalationAction::MarkBlocked)) => Self::Blocked,
            Some(Some(EscalationAction::IssueDiscover)) => Self::FollowUp,
            Some(Some(EscalationAction::Stop)) => Self::Stopped,
            Some(None) => Self::Retry,
            None => match RowOutcome::of(&row.result_class) {
                RowOutcome::Blocked => Self::Blocked,
                RowOutcome::Retry => Self::Retry,
                RowOutcome::Released => Self::Interrupted,
                RowOutcome::Completed => Self::Closed,
                RowOutcome::Failed => Self::Failed,
            },
        }
    }

    /// Returns its words for a person.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Stopped => "attempts used up",
            other => other.word(),
        }
    }

    /// Returns the words that it is counted under.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Blocked => "blocked",
            Self::FollowUp => "follow-up filed",
            Self::Stopped => "stopped",
            Self::Retry => "to retry",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::UsageLimit => "usage limit",
        }
    }
}

/// How large a change is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeSize {
    /// Files that were changed.
    pub files: u64,
    /// Lines that were added.
    pub added: u64,
    /// Lines that were deleted.
    pub deleted: u64,
}

impl ChangeSize {
    /// Returns how many lines were added or deleted.
    pub(super) const fn lines(self) -> u64 {
        self.added.saturating_add(self.deleted)
    }
}

/// What is known about an attempt beside its row: from its witnesses, its output and
/// git.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepFacts {
    /// What failed, in a line.
    pub said: Option<String>,
    /// The output with content of the command that decided.
    pub output: Option<String>,
    /// The witnesses of the step.
    pub witnesses: Vec<String>,
    /// The commit that holds the work.
    pub commit: Option<String>,
    /// How large the change of that commit, or of the salvage branch, is.
    pub change: Option<ChangeSize>,
}

/// One attempt at an issue.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptView {
    /// The step.
    pub step_id: StepId,
    /// The line of the run log that proves it.
    pub row: u64,
    /// The batch; null where the lane ran by itself.
    pub batch_id: Option<BatchId>,
    /// The lane's worker; null where the row does not say.
    pub worker_id: Option<WorkerName>,
    /// When it began; null where the row does not say.
    pub started_at: Option<Stamp>,
    /// When it ended.
    pub finished_at: Stamp,
    /// From claim to row, in milliseconds; null where the begin is not known.
    pub duration_ms: Option<u64>,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// Whether it counts as an attempt: one that was cut short does not.
    pub counts: bool,
    /// Its failure classes; the first one is the cause.
    pub failure_classes: Vec<String>,
    /// What failed, in a line; null where it did not fail.
    pub said: Option<String>,
    /// The file with the output of the command that decided; null where there is none
    /// with content.
    pub output: Option<String>,
    /// The agent; null where none is recorded.
    pub agent: Option<String>,
    /// Its model; null where it is not reported.
    pub model: Option<String>,
    /// Its own session; null where it is not reported.
    pub session_id: Option<String>,
    /// How many calls of tools it made; null where no agent is recorded.
    pub calls: Option<u64>,
    /// The tokens that it used; null where they are not reported.
    pub tokens: Option<TokenCounts>,
    /// What it cost, in billionths of a dollar; null where it is not reported.
    pub cost_nano_usd: Option<u64>,
    /// How often the agent was run again in its session.
    pub repair_rounds: u64,
    /// How many of its calls were denied, by the rule or the limit.
    pub denials: BTreeMap<String, u64>,
    /// How many verifications failed and passed when they were repeated.
    pub flaky_verifications: u64,
    /// Whether it rests on the verification of other work.
    pub shared_verification: bool,
    /// The commit that holds the work; null where there is none.
    pub commit: Option<String>,
    /// The branch that it landed on; null where it did not land.
    pub landed_on: Option<String>,
    /// Where what it left is kept; null where it left nothing.
    pub salvage: Option<String>,
    /// How large its change is; null where that is not known.
    pub change: Option<ChangeSize>,
    /// The sensitive files that it changed, the first by path.
    pub sensitive_changes: Vec<SensitiveChange>,
    /// How many sensitive files it changed.
    pub sensitive_count: u64,
    /// The files of its witnesses.
    pub witnesses: Vec<String>,
}

impl AttemptView {
    /// Returns the attempt that a row of the run log is about.
    pub fn of(number: u64, row: &StepRow, facts: StepFacts) -> Self {
        let agent = row.agent.as_ref();
        let landed = row.landing.as_ref().filter(|_| facts.commit.is_some());
        let listed = u64::try_from(row.sensitive_changes.len()).unwrap_or(u64::MAX);
        Self {
            step_id: row.step_id.clone(),
            row: number,
            batch_id: row.batch_id.clone(),
            worker_id: row.worker_id.clone(),
            started_at: row.started_at.clone(),
            finished_at: row.finished_at.clone(),
            duration_ms: row
                .started_at
                .as_ref()
                .map(|start| between_ms(start.time(), row.finished_at.time())),
            outcome: AttemptOutcome::of(row),
            counts: row.is_attempt(),
            failure_classes: row.failure_classes.clone(),
            said: facts.said,
            output: facts.output,
            agent: agent.map(|agent| agent.adapter.clone()),
            model: agent.and_then(|agent| agent.model.clone()),
            session_id: agent.and_then(|agent| agent.session_id.clone()),
            calls: agent.map(|agent| agent.calls),
            tokens: agent.and_then(|agent| agent.tokens),
            cost_nano_usd: agent.and_then(|agent| agent.cost_nano_usd),
            repair_rounds: agent.and_then(|agent| agent.repair_rounds).unwrap_or(0),
            denials: agent.map(|agent| agent.denials.clone()).unwrap_or_default(),
            flaky_verifications: row.flaky_refs.len().try_into().unwrap_or(u64::MAX),
            shared_verification: row.shared_verification.is_some(),
            landed_on: landed.map(|landing| landing.target.clone()),
            commit: facts.commit,
            salvage: row.salvage.clone(),
            change: facts.change,
            sensitive_changes: row.sensitive_changes.clone(),
            sensitive_count: row.sensitive_count.unwrap_or(listed),
            witnesses: facts.witnesses,
        }
    }

    /// Returns how many of its calls were denied.
    pub(super) fn denied(&self) -> u64 {
        self.denials
            .values()
            .fold(0, |sum, one| sum.saturating_add(*one))
    }

    /// Returns the salvage branches of this repository that it left.
    pub(super) fn salvage_branches(&self) -> Vec<&str> {
        let salvage = self.salvage.as_deref().into_iter();
        salvage.flat_map(salvage::branches).collect()
    }
}

/// Returns the milliseconds from one time to another, 0 where it is earlier.
pub(super) fn between_ms(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)
}
