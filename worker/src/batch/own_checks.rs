//! Verifications of issues' own: which of them the batch may run is settled and
//! recorded when it is authorised (`contracts.md` 11). What an issue's row has
//! later changes nothing.

use super::Batch;
use crate::settings::Settings;
use crate::witness;
use premath_kernel::issue::own_check::both;
use premath_kernel::json::id::IssueId;
use premath_kernel::json::plain::listed;
use premath_kernel::record::own_checks::OwnChecksWitness;
use premath_kernel::record::trajectory::StepRow;
use premath_memory::{IssueMemory, OwnChecks, StoreError};

/// The phase that the witness of the record is named by.
const PHASE: &str = "checks";

/// Takes the verifications that operators wrote into the settings of a batch, and
/// records them with the row that opens it. Returns the issues whose row has one
/// that no operator wrote.
pub(super) fn authorise(
    settings: &mut Settings,
    memory: &IssueMemory,
    row: &mut StepRow,
) -> Result<Vec<IssueId>, StoreError> {
    if !settings.issue_checks {
        return Ok(Vec::new());
    }
    let OwnChecks { written, unknown } = memory.own_checks()?;
    settings.own_checks = written;
    if let (false, Some(batch_id)) = (settings.own_checks.is_empty(), &row.batch_id) {
        let document = OwnChecksWitness::new(batch_id, &settings.own_checks);
        let folder = &settings.roots.witnesses;
        let witness = witness::write(folder, &row.step_id, PHASE, &document)?;
        row.witness_refs.insert(witness.reference);
    }
    Ok(unknown)
}

impl Batch {
    /// Returns the verification of an issue's own that is run.
    pub(crate) fn own_check(&self, issue_id: &IssueId) -> Option<&str> {
        let check = self.settings.own_checks.get(issue_id)?;
        Some(&check.command)
    }

    /// Returns the command that verifies the work on an issue: a verification,
    /// and then the issue's own, where it has one.
    pub(crate) fn with_own_check(&self, verify: String, issue_id: &IssueId) -> String {
        match self.own_check(issue_id) {
            Some(own) => both(&verify, own),
            None => verify,
        }
    }

    /// Returns the warning about verifications in rows that are not run; `None`
    /// where there are none.
    pub fn own_checks_warning(&self) -> Option<String> {
        if self.unknown_checks.is_empty() {
            return None;
        }
        Some(format!(
            "no operator wrote the verification command in the row of {}; it is not run (one that \
             an operator wrote before it is): adopt it with `premath issue update ID \
             --verification COMMAND`",
            listed(&self.unknown_checks)
        ))
    }
}
