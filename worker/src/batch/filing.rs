//! How a batch files an issue, so that no lane claims it before the batch knows
//! that it is its own.

use super::Batch;
use crate::witness;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::dispatch::{Discovery, is_follow_up};
use premath_kernel::issue::lease::LeaseRefusal;
use premath_kernel::json::id::{IssueId, StepId};
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::change_witness::{ChangeFacts, ChangeWitness, FoundChange};
use premath_kernel::turn::{Discover, MutationReady, MutationWitness};
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

/// A change whose issue is read back.
pub(crate) struct WrittenChange<'a> {
    /// The step that made it.
    pub step_id: &'a StepId,
    /// The phase of its witness.
    pub phase: &'a str,
    /// What the right to it rests on.
    pub mutation: &'a MutationWitness,
    /// The issue.
    pub issue_id: &'a IssueId,
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
            step_id: filer.step_id,
            phase: filer.phase,
            mutation: &mutation,
            issue_id: &id,
        };
        let reference = self.read_back(&change, |found| found.is_from(filer.parent))?;
        Ok((id, reference))
    }

    /// Reads the issue of a change back, and writes a witness of what it shows; returns
    /// the witness's reference.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Store`]; `mutation_read_back_mismatch` where issue memory does not
    /// show what was written.
    pub(crate) fn read_back(
        &self,
        change: &WrittenChange<'_>,
        is_shown: impl Fn(&FoundChange) -> bool,
    ) -> Result<String, ChangeError> {
        let found = self
            .memory
            .view(|view| view.issue(change.issue_id).map(FoundChange::of))?;
        let holds = found.as_ref().is_some_and(is_shown);
        let document = ChangeWitness::from(ChangeFacts {
            step_id: change.step_id,
            mutation: change.mutation,
            issue_id: change.issue_id,
            found,
            holds,
        });
        let folder = &self.settings.roots.witnesses;
        let witness = witness::write(folder, change.step_id, change.phase, &document)?;
        if holds {
            return Ok(witness.reference);
        }
        let issue_id = change.issue_id;
        Err(LeaseRefusal {
            class: FailureClass::MutationReadBackMismatch,
            detail: format!(
                "issue {issue_id} is not {}, although it was just written so",
                change.phase
            ),
        }
        .into())
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
