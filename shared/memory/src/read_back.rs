//! The look at an issue after a step changed it, with the witness of what it shows
//! (`contracts.md` 6).

use crate::error::ChangeError;
use crate::issues::IssueMemory;
use crate::witness;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::lease::LeaseRefusal;
use premath_kernel::json::canonical;
use premath_kernel::json::id::{IssueId, StepId};
use premath_kernel::record::change_witness::{ChangeFacts, ChangeWitness, FoundChange};
use premath_kernel::turn::MutationWitness;
use std::path::Path;

/// A change whose issue is read back.
#[derive(Debug)]
pub struct WrittenChange<'a> {
    /// The folder of witnesses.
    pub witnesses: &'a Path,
    /// The step that made it.
    pub step_id: &'a StepId,
    /// The phase of its witness.
    pub phase: &'a str,
    /// What the right to it rests on.
    pub mutation: &'a MutationWitness,
    /// The issue.
    pub issue_id: &'a IssueId,
}

impl IssueMemory {
    /// Reads the issue of a change back, and writes a witness of what it shows; returns
    /// the witness's reference.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Store`]; `mutation_read_back_mismatch` where issue memory does not
    /// show what was written.
    pub fn read_back(
        &self,
        change: &WrittenChange<'_>,
        is_shown: impl Fn(&FoundChange) -> bool,
    ) -> Result<String, ChangeError> {
        let found = self.view(|view| view.issue(change.issue_id).map(FoundChange::of))?;
        let holds = found.as_ref().is_some_and(is_shown);
        let document = canonical::value_of(&ChangeWitness::from(ChangeFacts {
            step_id: change.step_id,
            mutation: change.mutation,
            issue_id: change.issue_id,
            found,
            holds,
        }));
        let (folder, phase) = (change.witnesses, change.phase);
        let reference = witness::write_another(folder, change.step_id, phase, &document)?;
        if holds {
            return Ok(reference);
        }
        let issue_id = change.issue_id;
        Err(LeaseRefusal {
            class: FailureClass::MutationReadBackMismatch,
            detail: format!("issue {issue_id} is not {phase}, although it was just written so"),
        }
        .into())
    }
}
