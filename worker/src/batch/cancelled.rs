//! The attempts that an operator cancels, and the issues that are held until
//! they are deferred.

use super::Batch;
use premath_kernel::issue::Status;
use premath_kernel::issue::lease::Claim;
use premath_kernel::json::id::IssueId;
use premath_memory::StoreError;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is cancelled in a batch.
#[derive(Debug, Default)]
pub(super) struct Cancellations {
    inner: Mutex<Cancelled>,
}

#[derive(Debug, Default)]
struct Cancelled {
    /// The leases whose attempts are to end.
    attempts: BTreeSet<(IssueId, u64)>,
    /// The issues that this batch does not take while they are open.
    held: BTreeSet<IssueId>,
}

impl Cancellations {
    fn lock(&self) -> MutexGuard<'_, Cancelled> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batch {
    /// Ends the attempt under a claim now. With `hold` this batch does not take
    /// the issue again while it is open, so that it can be deferred.
    pub fn cancel(&self, claim: &Claim, hold: bool) {
        let mut cancelled = self.cancellations.lock();
        let issue_id = claim.issue_id.clone();
        cancelled
            .attempts
            .insert((issue_id.clone(), claim.generation));
        if hold {
            cancelled.held.insert(issue_id);
        }
        drop(cancelled);
        self.interrupt.wake();
    }

    /// Takes an issue again that was held.
    pub fn unhold(&self, issue_id: &IssueId) {
        self.cancellations.lock().held.remove(issue_id);
    }

    /// Returns whether the attempt under a claim is to end.
    pub(crate) fn is_cancelled(&self, claim: &Claim) -> bool {
        let cancelled = self.cancellations.lock();
        let attempt = (claim.issue_id.clone(), claim.generation);
        !cancelled.attempts.is_empty() && cancelled.attempts.contains(&attempt)
    }

    /// Returns the issues that are held.
    pub(super) fn held(&self) -> BTreeSet<IssueId> {
        self.cancellations.lock().held.clone()
    }

    /// Holds no issue any more that is not open: reopened, it is taken.
    pub(super) fn look_at_held(&self) -> Result<(), StoreError> {
        let held = self.held();
        if held.is_empty() {
            return Ok(());
        }
        let is_over = |status: &Status| !matches!(status, Status::Open | Status::InProgress);
        let over: Vec<IssueId> = self.memory.view(|view| {
            let over = held.iter().filter(|id| {
                let issue = view.issue(id);
                issue.is_none_or(|issue| is_over(&issue.status))
            });
            over.cloned().collect()
        })?;
        let mut cancelled = self.cancellations.lock();
        for id in over {
            cancelled.held.remove(&id);
        }
        Ok(())
    }
}
