//! The outcome of a step, for the loop that had it taken.

use crate::batch::{SupervisedEnd, SupervisedStep};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::{IssueId, StepId};
use premath_kernel::policy::budget::Spent;
use premath_kernel::policy::governing::{SensitiveChange, SensitiveChanges};
use premath_kernel::policy::provider::UsageLimit;
use premath_kernel::record::event::StepOutcome;
use premath_kernel::record::trajectory::{RowOutcome, SharedVerification, StepRow, WorldRecord};
use std::fmt;
use std::path::PathBuf;

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepEnding {
    /// The issue is closed.
    Closed,
    /// It may be claimed again, from a time where the policy waits.
    Retry {
        /// From when.
        at: Option<jiff::Timestamp>,
    },
    /// It is blocked, with notes.
    Blocked,
    /// It is open, a follow-up was filed, and this batch leaves it alone.
    Discovered {
        /// The follow-up.
        follow_up: IssueId,
    },
    /// It is open, and this batch leaves it alone.
    Stopped,
    /// The lease was not ours any more; nothing was changed.
    LeaseLost,
    /// The batch was interrupted; the issue is open.
    Interrupted,
    /// An operator cancelled the attempt; the issue is open, and no attempt is
    /// used up.
    Cancelled,
    /// The provider refused more work; the issue is open, and no attempt is
    /// used up.
    UsageLimit,
    /// The step did not begin; the issue is open.
    NotBegun,
}

impl fmt::Display for StepEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed"),
            Self::Retry { at: None } => f.write_str("to retry"),
            Self::Retry { at: Some(at) } => write!(f, "to retry at {at:.0}"),
            Self::Blocked => f.write_str("blocked"),
            Self::Discovered { follow_up } => write!(f, "open, follow-up {follow_up}"),
            Self::Stopped => f.write_str("open, attempts used up"),
            Self::LeaseLost => f.write_str("lease lost"),
            Self::Interrupted => f.write_str("open, interrupted"),
            Self::Cancelled => f.write_str("open, cancelled"),
            Self::UsageLimit => f.write_str("open, usage limit"),
            Self::NotBegun => f.write_str("open, not started"),
        }
    }
}

/// The report of a step.
#[derive(Clone, Debug)]
pub struct StepReport {
    /// The issue.
    pub issue_id: IssueId,
    /// The title of the issue.
    pub title: String,
    /// The step.
    pub step_id: StepId,
    /// The lease's generation.
    pub generation: u64,
    /// The outcome of the step.
    pub ending: StepEnding,
    /// The trajectory row's result class.
    pub result_class: String,
    /// The failure classes of the step.
    pub failure_classes: Vec<String>,
    /// Which attempt of the issue in this batch it was, from 1.
    pub attempt: u32,
    /// The commit that holds the work, where there is one.
    pub commit: Option<String>,
    /// The branch on which what the step left is kept.
    pub salvage: Option<String>,
    /// The other world that it worked in, where it did.
    pub world: Option<WorldRecord>,
    /// Issues that were filed.
    pub discovered: Vec<IssueId>,
    /// The commit that the step began at, where it began.
    pub base: Option<String>,
    /// The sensitive files that the work changed.
    pub sensitive: SensitiveChanges,
    /// How many of its verifications failed and passed when they were repeated.
    pub flaky: usize,
    /// How often its agent was run again in its session.
    pub repairs: u64,
    /// The verification of other work that the close rests on.
    pub shared: Option<SharedVerification>,
    /// What the command that failed said last, and where all of it is.
    pub said: Option<(String, PathBuf)>,
    /// Whose agent worked, where one did.
    pub provider: Option<String>,
    /// The limit by which the provider refused more work.
    pub limit: Option<UsageLimit>,
    /// The usage of the agent.
    pub spent: Spent,
    /// From claim to row, in milliseconds.
    pub duration_ms: u64,
    /// Why the lane cannot continue, where it cannot.
    pub lane_lost: Option<(FailureClass, String)>,
    /// Why memory or trajectory cannot be used any more, where they cannot.
    pub store_lost: Option<String>,
}

impl StepReport {
    /// Returns the report of a step of an earlier process of the batch, by its row:
    /// without what the row does not have.
    pub(crate) fn of_row(
        issue_id: IssueId,
        title: String,
        row: StepRow,
        commit: Option<String>,
    ) -> Self {
        let ending = match RowOutcome::of(&row.result_class) {
            RowOutcome::Completed => StepEnding::Closed,
            RowOutcome::Retry => StepEnding::Retry { at: None },
            RowOutcome::Blocked => StepEnding::Blocked,
            RowOutcome::Released => StepEnding::Interrupted,
            RowOutcome::Failed => StepEnding::Stopped,
        };
        let (finished, started) = (row.finished_at.time(), row.started_at.as_ref());
        let took = started.map(|started| finished.duration_since(started.time()));
        let agent = row.agent.as_ref();
        Self {
            issue_id,
            title,
            generation: row.generation.unwrap_or_default(),
            ending,
            attempt: row.retry.as_ref().map_or(1, |retry| retry.attempt),
            commit,
            discovered: Vec::new(),
            base: None,
            flaky: row.flaky_refs.iter().count(),
            repairs: agent
                .and_then(|agent| agent.repair_rounds)
                .unwrap_or_default(),
            said: None,
            provider: agent.map(|agent| agent.adapter.clone()),
            limit: None,
            spent: Spent {
                tokens: agent.and_then(|agent| Some(agent.tokens.as_ref()?.total())),
                cost_nano_usd: agent.and_then(|agent| agent.cost_nano_usd),
            },
            duration_ms: took.map_or(0, |took| {
                u64::try_from(took.as_millis()).unwrap_or_default()
            }),
            lane_lost: None,
            store_lost: None,
            sensitive: SensitiveChanges {
                count: row
                    .sensitive_count
                    .unwrap_or(row.sensitive_changes.len() as u64),
                changes: row.sensitive_changes,
            },
            step_id: row.step_id,
            result_class: row.result_class,
            failure_classes: row.failure_classes,
            salvage: row.salvage,
            world: row.world,
            shared: row.shared_verification,
        }
    }

    /// Returns whether the issue ended well.
    pub fn succeeded(&self) -> bool {
        self.ending == StepEnding::Closed
    }

    /// Returns the sensitive files that a closed step changed.
    pub fn sensitive_changes(&self) -> &[SensitiveChange] {
        match self.succeeded() {
            true => &self.sensitive.changes,
            false => &[],
        }
    }

    /// Returns what the batch needs to know about it.
    pub fn for_batch(&self) -> SupervisedStep<'_> {
        let end = match self.ending {
            StepEnding::Closed => SupervisedEnd::Closed,
            StepEnding::Interrupted
            | StepEnding::Cancelled
            | StepEnding::NotBegun
            | StepEnding::LeaseLost => SupervisedEnd::Cut,
            StepEnding::Retry { .. }
            | StepEnding::Blocked
            | StepEnding::Discovered { .. }
            | StepEnding::Stopped
            | StepEnding::UsageLimit => SupervisedEnd::Failed,
        };
        SupervisedStep {
            issue_id: &self.issue_id,
            end,
            failure_classes: &self.failure_classes,
            limit: self.limit,
        }
    }

    /// Returns its report for programs.
    pub fn outcome(&self) -> StepOutcome<'_> {
        StepOutcome {
            issue_id: &self.issue_id,
            step_id: &self.step_id,
            result_class: &self.result_class,
            failure_classes: &self.failure_classes,
            attempt: self.attempt,
            commit: self.commit.as_deref(),
            salvage: self.salvage.as_deref(),
            world: self.world.as_ref(),
            discovered: &self.discovered,
            sensitive_changes: self.sensitive_changes(),
            flaky_verifications: self.flaky,
            repair_rounds: self.repairs,
            shared_verification: self.shared.as_ref(),
            duration_ms: self.duration_ms,
        }
    }
}
