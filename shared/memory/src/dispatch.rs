//! Lease actions that were dispatched, carried out on issue memory
//! (`contracts.md` 9).

use crate::error::ChangeError;
use crate::issues::{ClaimScope, IssueMemory};
use crate::row::IssueRow;
use premath_kernel::authority::LeaseAuthority;
use premath_kernel::authority::transport::DispatchRequest;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::lease::LeaseRefusal;
use premath_kernel::json::id::IssueId;

/// Carries an action out; returns the row that it changed or that it asked for,
/// `None` where there was nothing to claim, or no issue was named.
///
/// # Errors
///
/// [`ChangeError`]; issue memory is as it was.
pub fn dispatch(
    memory: &IssueMemory,
    authority: &LeaseAuthority,
    request: DispatchRequest,
) -> Result<Option<IssueRow>, ChangeError> {
    match request {
        DispatchRequest::Claim { issue_id, request } => {
            let claimed = memory.claim(authority, &issue_id, request)?;
            Ok(Some(claimed.row))
        }
        DispatchRequest::ClaimNext { request } => {
            let scope = ClaimScope::default();
            let claimed = memory.claim_next(authority, vec![request], &scope)?;
            Ok(claimed.into_iter().next().flatten().map(|c| c.row))
        }
        DispatchRequest::Renew {
            issue_id,
            key,
            term,
        } => memory.renew(authority, &issue_id, key, term).map(Some),
        DispatchRequest::Release {
            issue_id,
            key,
            retry_at,
        } => memory
            .release(authority, &issue_id, key, retry_at)
            .map(Some),
        DispatchRequest::State { issue_id: None } => Ok(None),
        DispatchRequest::State {
            issue_id: Some(issue_id),
        } => row_of(memory, &issue_id).map(Some),
    }
}

/// Returns the row of an issue as it is.
///
/// # Errors
///
/// [`ChangeError`] where there is no such issue.
pub fn row_of(memory: &IssueMemory, issue_id: &IssueId) -> Result<IssueRow, ChangeError> {
    let row = memory.view(|view| view.row(issue_id).cloned())?;
    row.ok_or_else(|| {
        ChangeError::Refused(LeaseRefusal {
            class: FailureClass::LeaseNotFound,
            detail: format!("no issue {issue_id}"),
        })
    })
}
