//! How a batch files an issue, so that no lane claims it before the batch knows
//! that it is its own.

use super::Batch;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::dispatch::{Discovery, is_follow_up};
use premath_kernel::issue::lease::LeaseRefusal;
use premath_kernel::json::id::IssueId;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::turn::{Discover, MutationReady};
use premath_memory::{ChangeError, IssueRow, NewIssue, StoreError};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// Shared by claims, exclusive for what is filed: a claim sees both the filed issue and
/// whether it is left for later, or neither.
#[derive(Debug, Default)]
pub(super) struct Filing(RwLock<()>);

impl Filing {
    /// Keeps issues from being filed until the guard is dropped.
    pub(super) fn paused(&self) -> RwLockReadGuard<'_, ()> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses a change that issue memory does not show.
pub(crate) fn read_back(is_shown: bool, issue_id: &str, what: &str) -> Result<(), LeaseRefusal> {
    match is_shown {
        true => Ok(()),
        false => Err(LeaseRefusal {
            class: FailureClass::MutationReadBackMismatch,
            detail: format!("issue {issue_id} is not {what}, although it was just written so"),
        }),
    }
}

impl Batch {
    /// Files what the work on `parent` found, records it, and looks whether it is there.
    ///
    /// # Errors
    ///
    /// As `IssueMemory::discover`; `mutation_read_back_mismatch` where issue memory does
    /// not show it.
    pub(crate) fn file(
        &self,
        ready: MutationReady<Discover>,
        new: NewIssue,
        parent: &IssueId,
        boundary: Boundary,
    ) -> Result<IssueId, ChangeError> {
        let alone = self.filing.0.write();
        let _alone = alone.unwrap_or_else(PoisonError::into_inner);
        let filed = self.memory.discover(ready, new)?;
        let id = IssueId::from(&*filed.issue.id);
        self.note_filed(&filed, &id, parent);
        self.reached(boundary);
        read_back(self.shows_discovered(&id, parent)?, &id, "filed")?;
        Ok(id)
    }

    /// Returns whether issue memory shows an issue as discovered from another.
    fn shows_discovered(&self, filed: &str, parent: &IssueId) -> Result<bool, StoreError> {
        self.memory.view(|view| {
            let edges = view.issue(filed).map(|issue| issue.dependencies.iter());
            let mut edges = edges.into_iter().flatten();
            edges
                .any(|edge| *edge.depends_on == **parent && edge.kind.as_str() == "discovered-from")
        })
    }

    fn note_filed(&self, filed: &IssueRow, id: &IssueId, parent: &IssueId) {
        // One that was there before is as it was.
        if filed.issue.lease_generation > 0 || self.attempts(id) > 0 {
            return;
        }
        self.knowledge().discoveries.note(Discovery {
            issue_id: id.clone(),
            parent: parent.clone(),
            follow_up: is_follow_up(&filed.issue),
        });
    }
}
