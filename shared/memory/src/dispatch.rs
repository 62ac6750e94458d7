//! Lease actions that were dispatched, carried out on issue memory
//! (`contracts.md` 9).

use crate::error::ChangeError;
use crate::issues::{ClaimScope, IssueMemory};
use crate::row::IssueRow;
use premath_kernel::authority::LeaseAuthority;
use premath_kernel::authority::transport::DispatchRequest;

/// Carries an action out; returns the row that it changed, `None` where there
/// was nothing to claim.
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
    }
}
