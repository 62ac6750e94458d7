//! Programs of commands that are in the main worktree and not in lanes.

use crate::settings::Settings;
use premath_kernel::policy::program::{self, ProgramVerdict};
use premath_worktree::provision::{Provision, ProvisionError};

/// A program that lanes begin without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsentProgram {
    /// What is amiss, for a person.
    pub text: String,
    /// What it means for the batch.
    pub verdict: ProgramVerdict,
}

/// Looks for programs that the lanes begin without.
///
/// # Errors
///
/// [`ProvisionError`] where the commit that they begin at cannot be read.
pub fn absent(
    provision: &Provision,
    settings: &Settings,
) -> Result<Vec<AbsentProgram>, ProvisionError> {
    let has_setup = settings.setup.is_some() || settings.hooks.boot.is_some();
    let mut found = Vec::new();
    for (program, path) in settings.programs_by_path() {
        if let Some(absence) = provision.absence_of(&path)? {
            found.push(AbsentProgram {
                text: format!("`{program}` is not in the commit that lanes begin at"),
                verdict: program::verdict(absence, has_setup),
            });
        }
    }
    Ok(found)
}
