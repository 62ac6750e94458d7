//! Distinguishes a person at the keyboard from a step.

use crate::error::CliError;
use crate::paths::variable;
use clap::Args;
use premath_kernel::authority::OperatorOverride;
use premath_platform::step;
use rustix::process::getppid;

/// Why a person changes an issue without the gate.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Reason {
    /// Give the reason for the change; recorded in the row
    #[arg(
        long = "reason",
        visible_alias = "override-reason",
        value_name = "TEXT"
    )]
    reason: Option<String>,
}

impl Reason {
    /// Returns the reason.
    pub(crate) fn text(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Returns the reason, or this one where none is given.
    pub(crate) fn or(self, reason: &str) -> Self {
        Self {
            reason: self.reason.or_else(|| Some(reason.to_owned())),
        }
    }

    /// Takes the person's authority for a change that otherwise requires a
    /// turn.
    ///
    /// # Errors
    ///
    /// [`CliError::InsideStep`], and [`CliError::Usage`] where no reason is
    /// given: the record would not say why there is no turn.
    pub(crate) fn authority_without_turn(self, change: &str) -> Result<OperatorOverride, CliError> {
        let authority = self.authority()?;
        match authority.reason() {
            Some(_) => Ok(authority),
            None => Err(CliError::Usage(format!(
                "{change} without a turn requires a reason; give it with --reason TEXT"
            ))),
        }
    }

    /// Takes the person's authority over issues.
    ///
    /// # Errors
    ///
    /// [`CliError::InsideStep`]: no command of a step is a person
    /// (`contracts.md` 8).
    pub(crate) fn authority(self) -> Result<OperatorOverride, CliError> {
        if is_inside_step() {
            return Err(CliError::InsideStep);
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "only the premath command acts for an operator"
        )]
        let authority = OperatorOverride::new(name(), self.reason);
        Ok(authority)
    }
}

/// Returns the name of the person, as the system says it.
pub(crate) fn name() -> String {
    let name = ["USER", "LOGNAME"].into_iter().find_map(variable);
    name.map_or_else(
        || "operator".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Returns whether this command runs in a step: by its own environment, or by
/// the processes above it, which a command cannot choose.
///
/// Where the ancestors cannot be followed to the first process, the answer is
/// yes. In a process namespace of its own a step does not see the supervisor;
/// issue memory cannot be written there.
pub(crate) fn is_inside_step() -> bool {
    if step_id().is_some() {
        return true;
    }
    step::is_below_any(getppid())
}

/// Returns the step that this command runs in.
pub(crate) fn step_id() -> Option<String> {
    variable(step::STEP).map(|id| id.to_string_lossy().into_owned())
}
