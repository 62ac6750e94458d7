//! What a stop makes of the state that it finds (`contracts.md` 4,
//! HARNESS-RUNTIME 3.3).
//!
//! Issue memory decides, and nothing else: not what the worker assumes.

use crate::issue::Issue;
use crate::issue::lease::{self, Claim, LeaseState, Observation};

/// The outcome of a step, as far as the handoff asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepEnd {
    /// The step closed its issue.
    Succeeded,
    /// Anything else.
    Failed,
}

/// What a stop does next, and how its row is classed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handoff {
    /// The state of the lease that was found.
    pub state: LeaseState,
    /// The action, as in `issue_lease_renew`.
    pub action: &'static str,
    /// The result class of the trajectory row.
    pub result_class: &'static str,
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
    let (action, result_class) = match (state, end) {
        (LeaseState::Released, StepEnd::Succeeded) => ("release_closed", "completed"),
        (LeaseState::Released, StepEnd::Failed) => ("claim_next", "failed_issue_closed"),
        (LeaseState::Active, _) if ours => ("issue_lease_renew", "retry_needed_lease_active"),
        (LeaseState::Active, _) => ("stop", "failed_lease_lost"),
        (LeaseState::Stale, _) => ("issue_claim_next_reclaim", "retry_needed_lease_stale"),
        (LeaseState::Contended, _) => ("issue_lease_release", "retry_needed_lease_contended"),
        (LeaseState::Unleased, _) => ("reconcile", "failed_lease_missing"),
        (LeaseState::MissingIssue, _) => ("stop", "failed_issue_missing"),
        (LeaseState::ClosedWithLease | LeaseState::InvalidExpiresAt, _) => {
            ("stop", "failed_lease_invariant")
        }
    };
    Handoff {
        state,
        action,
        result_class,
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
                (handoff.action, handoff.result_class),
                (action, class),
                "{row:?}"
            );
        }
    }
}
