//! What a step's end changes for the steps after it: providers, breaker,
//! budget; each change has a row.

use super::Batch;
use premath_kernel::json::id::{IssueId, WorkerName};
use premath_kernel::policy::admission::StepResult;
use premath_kernel::policy::breaker::{Blame, BreakerChange, blame};
use premath_kernel::policy::budget::{Budget, Spent};
use premath_kernel::policy::provider::{ProviderAnswer, ProviderChange, UsageLimit};
use premath_kernel::policy::room::Shortage;
use premath_kernel::record::live::PauseKind;
use premath_kernel::record::trajectory::{
    Account, IssueAccount, breaker_row, budget_row, provider_row, room_row,
};
use premath_memory::{TrajectoryFileError, clock};
use std::fmt;
use std::time::Duration;

/// What changed for the steps to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SupervisionChange {
    /// A provider is parked, or answers again.
    Provider(ProviderChange),
    /// Dispatch pauses, or continues.
    Breaker(BreakerChange),
    /// The batch used up what it may: what it used, and what it may.
    BudgetExceeded(Spent, Budget),
}

/// What a batch needs to know about a step that ended.
#[derive(Clone, Copy, Debug)]
pub struct SupervisedStep<'a> {
    /// The issue.
    pub issue_id: &'a IssueId,
    /// The end of the step.
    pub end: SupervisedEnd,
    /// The failure classes of the step.
    pub failure_classes: &'a [String],
    /// The limit by which the provider refused more work.
    pub limit: Option<UsageLimit>,
}

/// How a step ended, as far as the steps after it depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupervisedEnd {
    /// The issue is closed.
    Closed,
    /// The work failed, or was refused.
    Failed,
    /// The step was cut off, and shows nothing about the work.
    Cut,
}

impl SupervisionChange {
    /// Returns until when it holds, which its text has in UTC.
    pub fn until(&self) -> Option<jiff::Timestamp> {
        match self {
            Self::Provider(ProviderChange::Parked { until, .. })
            | Self::Breaker(BreakerChange::Opened { until, .. }) => Some(*until),
            _ => None,
        }
    }
}

impl fmt::Display for SupervisionChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider(change) => change.fmt(f),
            Self::Breaker(change) => change.fmt(f),
            Self::BudgetExceeded(spent, budget) => {
                write!(
                    f,
                    "BUDGET USED UP: {}",
                    budget.describe(*spent, Duration::ZERO)
                )
            }
        }
    }
}

impl Batch {
    /// Takes a step's end in, once, and records what it changes.
    ///
    /// # Errors
    ///
    /// [`TrajectoryFileError`].
    pub fn step_ended(
        &self,
        worker: &WorkerName,
        step: &SupervisedStep<'_>,
    ) -> Result<Vec<SupervisionChange>, TrajectoryFileError> {
        let now = clock::now().wall;
        let answer = match (step.limit, step.end) {
            (Some(limit), _) => ProviderAnswer::Refused(limit),
            (None, SupervisedEnd::Cut) => ProviderAnswer::Unknown,
            (None, SupervisedEnd::Closed | SupervisedEnd::Failed) => ProviderAnswer::Answered,
        };
        let blamed = match (step.end, step.limit) {
            (SupervisedEnd::Closed, _) => Blame::Issue,
            (SupervisedEnd::Cut, _) | (SupervisedEnd::Failed, Some(_)) => Blame::NotCounted,
            (SupervisedEnd::Failed, None) => blame(&self.settings.retry, step.failure_classes),
        };
        let result = StepResult {
            worker,
            issue_id: step.issue_id,
            answer,
            blame: blamed,
        };
        let (provider, breaker) = self.admission().step_ended(result, now);
        let mut changes = Vec::new();
        if let Some(change) = provider {
            self.record(&provider_row(&self.id, &change, now))?;
            changes.push(SupervisionChange::Provider(change));
        }
        if let Some(change) = breaker {
            self.note_breaker(&change);
            self.record(&breaker_row(&self.id, &change, now))?;
            changes.push(SupervisionChange::Breaker(change));
        }
        changes.extend(self.budget_exceeded()?);
        Ok(changes)
    }

    /// Takes in whether the verification passes without any work.
    ///
    /// # Errors
    ///
    /// [`TrajectoryFileError`].
    pub fn baseline_answered(
        &self,
        passes: bool,
    ) -> Result<Option<SupervisionChange>, TrajectoryFileError> {
        let now = clock::now().wall;
        let change = self.admission().baseline_answered(passes, now);
        if let Some(change) = &change {
            self.note_breaker(change);
            self.record(&breaker_row(&self.id, change, now))?;
        }
        Ok(change.map(SupervisionChange::Breaker))
    }

    fn note_breaker(&self, change: &BreakerChange) {
        let paused = match change {
            BreakerChange::Opened { class, until, .. } => Some((class.as_str(), Some(*until))),
            BreakerChange::Closed => None,
        };
        self.note_pause(PauseKind::Breaker, paused);
    }

    /// Records that a worker's step will not say how it ended.
    pub fn step_lost(&self, worker: &WorkerName) {
        self.admission().step_lost(worker, clock::now().wall);
    }

    /// Looks whether the batch used up what it may; records it the first time.
    ///
    /// # Errors
    ///
    /// [`TrajectoryFileError`].
    pub fn budget_exceeded(&self) -> Result<Option<SupervisionChange>, TrajectoryFileError> {
        let spent = self.knowledge().account.spent();
        let Some(budget) = self.admission().spend(spent) else {
            return Ok(None);
        };
        self.record(&budget_row(&self.id, &budget, spent, clock::now().wall))?;
        Ok(Some(SupervisionChange::BudgetExceeded(spent, budget)))
    }

    /// Records that the batch waited for room without success.
    ///
    /// # Errors
    ///
    /// [`TrajectoryFileError`].
    pub(super) fn room_short(&self, short: &Shortage) -> Result<(), TrajectoryFileError> {
        self.record(&room_row(&self.id, short, clock::now().wall))
    }

    /// Returns what the batch used and waited for so far.
    pub fn account(&self) -> Account {
        self.knowledge().account.clone()
    }

    /// Returns what is left of what an issue may use in this batch.
    pub(crate) fn left_of(&self, issue_id: &IssueId) -> Budget {
        let used = self.used_by(issue_id);
        self.settings.bounds.issue.left(used.spent, used.time)
    }

    /// Returns what an issue used in this batch, its running step left out.
    pub(crate) fn used_by(&self, issue_id: &IssueId) -> IssueAccount {
        self.knowledge().account.of_issue(issue_id)
    }
}
