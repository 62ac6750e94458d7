//! The key of a lease, and what is done to an issue with it: renewed,
//! released, closed, blocked.

use super::{LeaseRefusal, LeaseState, Observation, Term, refuse, state};
use crate::failure::FailureClass;
use crate::issue::{Holder, Issue, Lease, RowChange, Status};
use crate::json::id::{LeaseId, StepId};
use crate::json::time;

/// The lease that an operation names; a worker names every part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseKey {
    /// The lease's id.
    pub lease_id: Option<LeaseId>,
    /// The owner of the lease.
    pub owner: Option<String>,
    /// The generation of the lease.
    pub generation: Option<u64>,
}

/// Finds the lease that a key means.
fn held<'a>(issue: &'a Issue, key: &LeaseKey) -> Result<&'a Lease, LeaseRefusal> {
    if issue.status.is_terminal() {
        return refuse(
            FailureClass::LeaseIssueClosed,
            format!("issue {} is {}", issue.id, issue.status.as_str()),
        );
    }
    let Some(lease) = &issue.lease else {
        return refuse(
            FailureClass::LeaseMissing,
            format!("issue {} has no lease", issue.id),
        );
    };
    if key
        .owner
        .as_deref()
        .is_some_and(|owner| *owner != *lease.owner)
    {
        return refuse(
            FailureClass::LeaseOwnerMismatch,
            format!("issue {} is leased to {}", issue.id, lease.owner),
        );
    }
    if key
        .lease_id
        .as_deref()
        .is_some_and(|id| *id != *lease.lease_id)
    {
        return refuse(
            FailureClass::LeaseIdMismatch,
            format!("the lease of issue {} is {}", issue.id, lease.lease_id),
        );
    }
    if key.generation.is_some_and(|generation| {
        generation != issue.lease_generation || generation != lease.generation
    }) {
        return refuse(
            FailureClass::LeaseGenerationMismatch,
            format!(
                "issue {} is at generation {}",
                issue.id, issue.lease_generation
            ),
        );
    }
    Ok(lease)
}

/// Moves a lease's expiry; a contended row is healed.
///
/// # Errors
///
/// Refused where the lease is over, is not the one meant, or the term is invalid.
pub fn renew(
    issue: &Issue,
    key: &LeaseKey,
    term: Term,
    seen: &Observation<'_>,
) -> Result<RowChange, LeaseRefusal> {
    let lease = held(issue, key)?;
    match state(Some(issue), seen) {
        LeaseState::Active | LeaseState::Contended => {}
        LeaseState::InvalidExpiresAt => {
            return refuse(
                FailureClass::LeaseInvalidExpiresAt,
                format!("the lease of issue {} has an invalid expiry", issue.id),
            );
        }
        _ => {
            return refuse(
                FailureClass::LeaseStale,
                format!("the lease of issue {} expired", issue.id),
            );
        }
    }
    let (expires_at, deadline_ms) = term.resolve(seen.moment)?;
    let renewed = Lease {
        expires_at: time::micros(expires_at).into(),
        renewed_at: Some(time::micros(seen.moment.wall).into()),
        holder: lease.holder.clone().map(|holder| Holder {
            deadline_ms,
            ..holder
        }),
        ..lease.clone()
    };
    let mut change = RowChange::new();
    change
        .set("status", Status::InProgress.as_str())
        .set("assignee", &lease.owner)
        .set("lease", &renewed)
        .touch(seen.moment.wall);
    Ok(change)
}

/// Releases a lease: status open, assignee as before the claim.
///
/// `retry_at` is when the issue may be claimed again, where that is later.
///
/// # Errors
///
/// Refused where there is no lease or it is not the one meant.
pub fn release(
    issue: &Issue,
    key: &LeaseKey,
    retry_at: Option<jiff::Timestamp>,
    now: jiff::Timestamp,
) -> Result<RowChange, LeaseRefusal> {
    let lease = held(issue, key)?;
    let mut change = RowChange::new();
    change.set_status(issue, &Status::Open, now);
    restore_assignee(&mut change, lease);
    match retry_at {
        Some(at) => change.set("retry_at", time::micros(at)),
        None => change.remove("retry_at"),
    };
    Ok(change)
}

fn restore_assignee(change: &mut RowChange, lease: &Lease) {
    if lease.assignee_before.is_empty() {
        change.remove("assignee");
    } else {
        change.set("assignee", &lease.assignee_before);
    }
}

/// Gives an issue the assignee that it had before its claim, where its status is changed
/// by another than the claimant; none after the step that closed it. No other worker takes
/// what is assigned to one.
pub fn without_claim(issue: &Issue, change: &mut RowChange) {
    let own = || StepId::of(&issue.assignee, &issue.id, issue.lease_generation);
    match &issue.lease {
        Some(lease) if issue.assignee == lease.owner => restore_assignee(change, lease),
        None if issue.closed_by_step.as_deref() == Some(&*own()) => {
            change.remove("assignee");
        }
        _ => {}
    }
}

/// Checks that a worker's lease is in force: active, and id, owner and
/// generation match.
///
/// # Errors
///
/// Refused with the class that says why it is not.
pub fn fence(issue: &Issue, key: &LeaseKey, seen: &Observation<'_>) -> Result<(), LeaseRefusal> {
    held(issue, key)?;
    match state(Some(issue), seen) {
        LeaseState::Active => Ok(()),
        LeaseState::Contended => refuse(
            FailureClass::LeaseContentionActive,
            format!("the row of issue {} contradicts its lease", issue.id),
        ),
        LeaseState::InvalidExpiresAt => refuse(
            FailureClass::LeaseInvalidExpiresAt,
            format!("the lease of issue {} has an invalid expiry", issue.id),
        ),
        _ => refuse(
            FailureClass::LeaseStale,
            format!("the lease of issue {} expired", issue.id),
        ),
    }
}

/// Closes an issue for the step that holds its lease; the assignee stays.
///
/// # Errors
///
/// As [`fence`].
pub fn close(
    issue: &Issue,
    key: &LeaseKey,
    step_id: &str,
    seen: &Observation<'_>,
) -> Result<RowChange, LeaseRefusal> {
    fence(issue, key, seen)?;
    let mut change = RowChange::new();
    change
        .set_status(issue, &Status::Closed, seen.moment.wall)
        .set("closed_by_step", step_id);
    Ok(change)
}

/// Blocks an issue for the escalation of the step that holds its lease.
///
/// # Errors
///
/// As [`fence`].
pub fn block(
    issue: &Issue,
    key: &LeaseKey,
    notes: &str,
    seen: &Observation<'_>,
) -> Result<RowChange, LeaseRefusal> {
    fence(issue, key, seen)?;
    let mut change = RowChange::new();
    change
        .set_status(issue, &Status::Blocked, seen.moment.wall)
        .set("notes", notes);
    if let Some(lease) = &issue.lease {
        restore_assignee(&mut change, lease);
    }
    Ok(change)
}
