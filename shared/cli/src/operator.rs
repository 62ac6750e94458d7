//! A person at the keyboard, and the steps that are none.

use crate::error::CliError;
use crate::paths::variable;
use clap::Args;
use premath_kernel::authority::OperatorOverride;

/// Why a person changes an issue without the gate.
#[derive(Debug, Default, Args)]
pub(crate) struct Reason {
    /// Why the change is made; recorded in the row
    #[arg(long, value_name = "TEXT")]
    override_reason: Option<String>,
}

impl Reason {
    /// Takes the person's authority over issues.
    ///
    /// # Errors
    ///
    /// [`CliError::InsideStep`]: no command of a step is a person
    /// (`contracts.md` 8).
    pub(crate) fn authority(self) -> Result<OperatorOverride, CliError> {
        if step_id().is_some() {
            return Err(CliError::InsideStep);
        }
        let name = ["USER", "LOGNAME"].into_iter().find_map(variable);
        let name = name.map_or_else(
            || "operator".to_owned(),
            |name| name.to_string_lossy().into_owned(),
        );
        #[expect(
            clippy::disallowed_methods,
            reason = "the premath command is the operator's way in"
        )]
        let authority = OperatorOverride::new(name, self.override_reason);
        Ok(authority)
    }
}

/// Returns the step that this command runs in.
pub(crate) fn step_id() -> Option<String> {
    variable("PREMATH_STEP_ID").map(|id| id.to_string_lossy().into_owned())
}
