//! What a stop makes of the state that it finds (`contracts.md` 4,
//! HARNESS-RUNTIME 3.3).
//!
//! Issue memory decides, and nothing else: not what the worker assumes. The state
//! that is found is classified first; then the policy's decision is carried out,
//! and the row says what was done ([`Handoff::after`]).

use crate::issue::Issue;
use crate::issue::lease::{self, Claim, LeaseState, Observation};

/// The outcome of a step, as far as the handoff asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepEnd {
    /// The step closed its issue.
    Succeeded,
    /// The step did not close its issue.
    Failed,
}

/// The action that follows a stop (`contracts.md` 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextAction {
    /// The issue is closed and its lease released.
    ReleaseClosed,
    /// The lane claims another issue.
    ClaimNext,
    /// The lease is still the step's: it may continue.
    RenewLease,
    /// The lease expired: the issue is claimed again.
    ReclaimStale,
    /// The row and its lease disagree: the lease is released.
    ReleaseLease,
    /// The lease is gone although the issue is not closed.
    Reconcile,
    /// Nothing: the issue is not the step's.
    Stop,
}

impl NextAction {
    /// Returns the action as rows and lease references name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReleaseClosed => "release_closed",
            Self::ClaimNext => "claim_next",
            Self::RenewLease => "issue_lease_renew",
            Self::ReclaimStale => "issue_claim_next_reclaim",
            Self::ReleaseLease => "issue_lease_release",
            Self::Reconcile => "reconcile",
            Self::Stop => "stop",
        }
    }
}

/// The result class that a stop gives the row of its step (`contracts.md` 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandoffResult {
    /// The step closed its issue.
    Completed,
    /// Another step closed the issue.
    IssueClosed,
    /// The lease is still the step's.
    LeaseActive,
    /// The lease is another step's.
    LeaseLost,
    /// The lease expired.
    LeaseStale,
    /// The row and its lease disagree.
    LeaseContended,
    /// The issue has no lease.
    LeaseMissing,
    /// The issue does not exist.
    IssueMissing,
    /// The row breaks a rule of leases.
    LeaseInvariant,
    /// The step's issue was blocked.
    IssueBlocked,
    /// The step's issue is open without a lease, and is not retried.
    LeaseReleased,
    /// The step did not end by itself; its issue is open without a lease.
    Interrupted,
}

impl HandoffResult {
    /// Returns the class as rows name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::IssueClosed => "failed_issue_closed",
            Self::LeaseActive => "retry_needed_lease_active",
            Self::LeaseLost => "failed_lease_lost",
            Self::LeaseStale => "retry_needed_lease_stale",
            Self::LeaseContended => "retry_needed_lease_contended",
            Self::LeaseMissing => "failed_lease_missing",
            Self::IssueMissing => "failed_issue_missing",
            Self::LeaseInvariant => "failed_lease_invariant",
            Self::IssueBlocked => "failed_issue_blocked",
            Self::LeaseReleased => "failed_lease_released",
            Self::Interrupted => "lease_released_interrupted",
        }
    }
}

/// What a stop did with an issue that its step did not close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// Nothing: the state is as it was found.
    AsFound,
    /// The lease is released, and the issue is retried.
    Retried,
    /// The issue is blocked.
    Blocked,
    /// The lease is released, and this batch leaves the issue alone.
    Released,
    /// The lease is released, because the step was interrupted.
    Interrupted,
}

/// What a stop does next, and how its row is classed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handoff {
    /// The state of the lease that was found.
    pub state: LeaseState,
    /// The action that follows.
    pub action: NextAction,
    /// The result class of the trajectory row.
    pub result: HandoffResult,
}

impl Handoff {
    /// What is reported where issue memory cannot be read.
    pub const UNKNOWN: Self = Self {
        state: LeaseState::InvalidExpiresAt,
        action: NextAction::Stop,
        result: HandoffResult::LeaseInvariant,
    };

    /// Returns the handoff after what was done with the issue. The state stays
    /// the one that was found. A retry keeps the class of the state that it was
    /// decided on (`contracts.md` 4), for that class asks for a retry; the lease
    /// is gone in any case, so that nothing is left to renew.
    pub const fn after(self, done: Settlement) -> Self {
        let (action, result) = match done {
            Settlement::AsFound => return self,
            Settlement::Retried => (NextAction::ClaimNext, self.result),
            Settlement::Blocked => (NextAction::Stop, HandoffResult::IssueBlocked),
            Settlement::Released => (NextAction::ClaimNext, HandoffResult::LeaseReleased),
            Settlement::Interrupted => (NextAction::ClaimNext, HandoffResult::Interrupted),
        };
        Self {
            state: self.state,
            action,
            result,
        }
    }
}

/// Returns whether the lease in the row is the claimed one.
pub(crate) fn is_ours(issue: &Issue, claim: &Claim) -> bool {
    issue.lease.as_ref().is_some_and(|lease| {
        *lease.lease_id == *claim.lease_id
            && *lease.owner == *claim.owner
            && lease.generation == claim.generation
            && issue.lease_generation == claim.generation
    })
}

/// Classifies the state found at a stop.
pub fn classify(
    issue: Option<&Issue>,
    claim: &Claim,
    end: StepEnd,
    seen: &Observation<'_>,
) -> Handoff {
    let state = lease::state(issue, seen);
    let ours = issue.is_some_and(|issue| is_ours(issue, claim));
    let (action, result) = match (state, end) {
        (LeaseState::Released, StepEnd::Succeeded) => {
            (NextAction::ReleaseClosed, HandoffResult::Completed)
        }
        (LeaseState::Released, StepEnd::Failed) => {
            (NextAction::ClaimNext, HandoffResult::IssueClosed)
        }
        (LeaseState::Active, _) if ours => (NextAction::RenewLease, HandoffResult::LeaseActive),
        (LeaseState::Active, _) => (NextAction::Stop, HandoffResult::LeaseLost),
        (LeaseState::Stale, _) => (NextAction::ReclaimStale, HandoffResult::LeaseStale),
        (LeaseState::Contended, _) => (NextAction::ReleaseLease, HandoffResult::LeaseContended),
        (LeaseState::Unleased, _) => (NextAction::Reconcile, HandoffResult::LeaseMissing),
        (LeaseState::MissingIssue, _) => (NextAction::Stop, HandoffResult::IssueMissing),
        (LeaseState::ClosedWithLease | LeaseState::InvalidExpiresAt, _) => {
            (NextAction::Stop, HandoffResult::LeaseInvariant)
        }
    };
    Handoff {
        state,
        action,
        result,
    }
}

/// The lease id and owner that the lease reference names (`contracts.md` 5).
pub fn lease_named<'a>(
    issue: Option<&'a Issue>,
    claim: &'a Claim,
    handoff: &Handoff,
    end: StepEnd,
) -> (&'a str, &'a str) {
    let claimed = (claim.lease_id.as_str(), claim.owner.as_str());
    let of_row = issue
        .and_then(|issue| issue.lease.as_ref())
        .map(|lease| (&*lease.lease_id, &*lease.owner));
    match (handoff.state, end) {
        (LeaseState::Released, StepEnd::Succeeded) => claimed,
        (LeaseState::Active, _) => of_row.unwrap_or(claimed),
        (LeaseState::Unleased | LeaseState::MissingIssue | LeaseState::Released, _) => ("", ""),
        _ => of_row.unwrap_or(("", "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::issue::lease::Life;
    use crate::json::time::Moment;

    #[test]
    #[expect(clippy::too_many_lines, reason = "tests: a table is read as a whole")]
    fn the_table_of_the_contract() {
        let claim = Claim {
            issue_id: "x".into(),
            owner: "w".into(),
            lease_id: "l".into(),
            generation: 2,
            taken_over: None,
        };
        let lease = |owner: &str, expires: &str| {
            format!(
                r#""lease_generation":2,"lease":{{"lease_id":"l","owner":"{owner}","acquired_at":"","expires_at":"{expires}","generation":2}}"#
            )
        };
        let row = |status: &str, assignee: &str, rest: &str| {
            let sep = if rest.is_empty() { "" } else { "," };
            format!(r#"{{"id":"x","status":"{status}","assignee":"{assignee}"{sep}{rest}}}"#)
        };
        const LATER: &str = "2026-01-02T00:00:00Z";
        const BEFORE: &str = "2025-12-31T00:00:00Z";
        use StepEnd::{Failed, Succeeded};
        let cases = [
            (
                Some(row("closed", "w", "")),
                Succeeded,
                "release_closed",
                "completed",
            ),
            (
                Some(row("in_progress", "w", &lease("w", LATER))),
                Failed,
                "issue_lease_renew",
                "retry_needed_lease_active",
            ),
            (
                Some(row("in_progress", "v", &lease("v", LATER))),
                Failed,
                "stop",
                "failed_lease_lost",
            ),
            (
                Some(row("in_progress", "w", &lease("w", BEFORE))),
                Failed,
                "issue_claim_next_reclaim",
                "retry_needed_lease_stale",
            ),
            (
                Some(row("open", "w", &lease("w", LATER))),
                Failed,
                "issue_lease_release",
                "retry_needed_lease_contended",
            ),
            (
                Some(row("closed", "w", "")),
                Failed,
                "claim_next",
                "failed_issue_closed",
            ),
            (
                Some(row("open", "", "")),
                Failed,
                "reconcile",
                "failed_lease_missing",
            ),
            (None, Failed, "stop", "failed_issue_missing"),
            (
                Some(row("closed", "w", &lease("w", LATER))),
                Failed,
                "stop",
                "failed_lease_invariant",
            ),
            (
                Some(row("in_progress", "w", &lease("w", "never"))),
                Failed,
                "stop",
                "failed_lease_invariant",
            ),
        ];
        let seen = Observation {
            moment: Moment {
                wall: "2026-01-01T00:00:00Z".parse().unwrap(),
                boot_ms: 0,
            },
            boot_id: "b",
            life: &|_| Life::Unknown,
        };
        for (row, end, action, class) in cases {
            let issue: Option<Issue> = row.as_deref().map(|r| serde_json::from_str(r).unwrap());
            let handoff = classify(issue.as_ref(), &claim, end, &seen);
            assert_eq!(
                (handoff.action.as_str(), handoff.result.as_str()),
                (action, class),
                "{row:?}"
            );
        }
    }

    #[test]
    fn what_was_done_with_the_issue_decides_the_class_of_the_row() {
        let found = Handoff {
            state: LeaseState::Active,
            action: NextAction::RenewLease,
            result: HandoffResult::LeaseActive,
        };
        for (done, action, result) in [
            (
                Settlement::AsFound,
                "issue_lease_renew",
                "retry_needed_lease_active",
            ),
            (
                Settlement::Retried,
                "claim_next",
                "retry_needed_lease_active",
            ),
            (Settlement::Blocked, "stop", "failed_issue_blocked"),
            (Settlement::Released, "claim_next", "failed_lease_released"),
            (
                Settlement::Interrupted,
                "claim_next",
                "lease_released_interrupted",
            ),
        ] {
            let after = found.after(done);
            let said = (after.action.as_str(), after.result.as_str());
            assert_eq!(said, (action, result), "{done:?}");
            assert_eq!(after.state, LeaseState::Active, "{done:?}");
        }
    }
}
