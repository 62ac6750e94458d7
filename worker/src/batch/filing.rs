//! How a batch files an issue, so that no lane claims it before the batch knows
//! that it is its own.

use super::Batch;
use premath_kernel::issue::dispatch::{Discovery, is_follow_up};
use premath_kernel::json::id::{IssueId, StepId};
use premath_kernel::record::boundary::Boundary;
use premath_kernel::turn::{Discover, MutationReady};
use premath_memory::read_back::WrittenChange;
use premath_memory::{ChangeError, IssueRow, NewIssue};
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

/// How a step files an issue.
pub(crate) struct Filer<'a> {
    /// The step.
    pub step_id: &'a StepId,
    /// The issue that it works on.
    pub parent: &'a IssueId,
    /// The phase of the witness.
    pub phase: &'a str,
    /// What is reached once it is filed.
    pub boundary: Boundary,
}

impl Batch {
    /// Files what the work on an issue found, records it, and reads it back; returns its
    /// id and the reference of the witness.
    ///
    /// # Errors
    ///
    /// As `IssueMemory::discover` and [`read_back`](Self::read_back).
    pub(crate) fn file(
        &self,
        ready: MutationReady<Discover>,
        new: NewIssue,
        filer: &Filer<'_>,
    ) -> Result<(IssueId, String), ChangeError> {
        let mutation = ready.witness().clone();
        let id = {
            let alone = self.filing.0.write();
            let _alone = alone.unwrap_or_else(PoisonError::into_inner);
            let filed = self.memory.discover(ready, new)?;
            let id = IssueId::from(&*filed.issue.id);
            self.note_filed(&filed, &id, filer.parent);
            id
        };
        self.reached(filer.boundary);
        let change = WrittenChange {
            witnesses: &self.settings.roots.witnesses,
            step_id: filer.step_id,
            phase: filer.phase,
            mutation: &mutation,
            issue_id: &id,
        };
        let reference = self
            .memory
            .read_back(&change, |found| found.is_from(filer.parent))?;
        Ok((id, reference))
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
