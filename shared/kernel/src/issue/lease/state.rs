//! The state of an issue's lease, as its row and an observation show it.

use super::{Life, Observation};
use crate::issue::{Issue, Lease, Status};
use crate::json::time;
use schemars::JsonSchema;

/// The state of an issue's lease (`contracts.md` 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum LeaseState {
    /// There is no such issue.
    MissingIssue,
    /// Closed, no lease.
    Released,
    /// Closed, and a lease still is in the row.
    ClosedWithLease,
    /// The issue is not closed and has no lease.
    Unleased,
    /// The expiry cannot be read.
    InvalidExpiresAt,
    /// Expired, or its holder is dead.
    Stale,
    /// Not expired, but the row's status or assignee does not fit it.
    Contended,
    /// The lease is in force.
    Active,
}

impl LeaseState {
    /// Returns the text used in references and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MissingIssue => "missing_issue",
            Self::Released => "released",
            Self::ClosedWithLease => "closed_with_lease",
            Self::Unleased => "unleased",
            Self::InvalidExpiresAt => "invalid_expires_at",
            Self::Stale => "stale",
            Self::Contended => "contended",
            Self::Active => "active",
        }
    }
}

/// Returns the state of an issue's lease.
pub fn state(issue: Option<&Issue>, seen: &Observation<'_>) -> LeaseState {
    let Some(issue) = issue else {
        return LeaseState::MissingIssue;
    };
    let Some(lease) = &issue.lease else {
        return if issue.status.is_terminal() {
            LeaseState::Released
        } else {
            LeaseState::Unleased
        };
    };
    if issue.status.is_terminal() {
        return LeaseState::ClosedWithLease;
    }
    match expired(lease, seen) {
        None => LeaseState::InvalidExpiresAt,
        Some(true) => LeaseState::Stale,
        Some(false) => {
            let fits = issue.status == Status::InProgress && issue.assignee == lease.owner;
            if fits {
                LeaseState::Active
            } else {
                LeaseState::Contended
            }
        }
    }
}

/// Returns whether a lease is over; `None` where its expiry cannot be read.
///
/// Under the same boot the holder's life and its deadline on CLOCK_BOOTTIME
/// decide, so that no jump of the wall clock ends or prolongs a lease on its
/// own host; elsewhere `expires_at` does.
fn expired(lease: &Lease, seen: &Observation<'_>) -> Option<bool> {
    let expires_at = time::parse(&lease.expires_at)?;
    if let Some(holder) = &lease.holder
        && *holder.boot_id == *seen.boot_id
        && !seen.boot_id.is_empty()
    {
        let dead = (seen.life)(holder) == Life::Dead;
        return Some(dead || seen.moment.boot_ms >= holder.deadline_ms);
    }
    Some(seen.moment.wall >= expires_at)
}
