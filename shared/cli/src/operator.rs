//! Distinguishes a person at the keyboard from a step.

use crate::error::CliError;
use crate::paths::variable;
use clap::Args;
use premath_kernel::authority::OperatorOverride;
use premath_platform::process::Process;
use rustix::process::{Pid, getppid};

/// Why a person changes an issue without the gate.
#[derive(Debug, Default, Args)]
pub(crate) struct Reason {
    /// Give the reason for the change; recorded in the row
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
        if is_inside_step() {
            return Err(CliError::InsideStep);
        }
        let name = ["USER", "LOGNAME"].into_iter().find_map(variable);
        let name = name.map_or_else(
            || "operator".to_owned(),
            |name| name.to_string_lossy().into_owned(),
        );
        #[expect(
            clippy::disallowed_methods,
            reason = "only the premath command acts for an operator"
        )]
        let authority = OperatorOverride::new(name, self.override_reason);
        Ok(authority)
    }
}

/// The variable that names the step of a command.
const STEP: &str = "PREMATH_STEP_ID";
/// The entry in the environment of a lane's supervisor, below which every
/// command of a step runs, daemons too.
const SUPERVISOR: &[u8] = b"PREMATH_SUPERVISOR=itself";
/// More ancestors than this are not looked at.
const ANCESTORS_MAX: usize = 256;

/// Returns whether this command runs in a step: by its own environment, or by
/// that of the processes above it, which a command cannot change.
///
/// In a process namespace of its own a step does not see these processes; issue
/// memory cannot be written there.
pub(crate) fn is_inside_step() -> bool {
    step_id().is_some() || ancestors().any(is_of_step)
}

/// Returns whether a process is a command of a step, or a lane's supervisor.
fn is_of_step(process: Pid) -> bool {
    holds_step(&premath_platform::process::environment(process))
}

/// Returns whether an environment, as the system shows it, is that of a step.
fn holds_step(environment: &[u8]) -> bool {
    let mut entries = environment.split(|byte| *byte == 0);
    entries.any(|entry| {
        let value = entry.strip_prefix(STEP.as_bytes());
        let is_named = value.is_some_and(|value| value.len() > 1 && value.starts_with(b"="));
        is_named || entry == SUPERVISOR
    })
}

/// Returns the processes above this one, the nearest first.
fn ancestors() -> impl Iterator<Item = Pid> {
    let above = |process: &Pid| Pid::from_raw(Process::at(*process)?.parent);
    std::iter::successors(getppid(), above)
        .take_while(|process| *process != Pid::INIT)
        .take(ANCESTORS_MAX)
}

/// Returns the step that this command runs in.
pub(crate) fn step_id() -> Option<String> {
    variable(STEP).map(|id| id.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_of_a_step_or_its_supervisor_is_known() {
        for (environment, expected) in [
            (&b"HOME=/x\0PREMATH_STEP_ID=w.a.1\0"[..], true),
            (b"PREMATH_SUPERVISOR=itself\0", true),
            (b"PREMATH_SUPERVISOR=12.3\0", false),
            (b"PREMATH_STEP_ID=\0", false),
            (b"PREMATH_STEP_IDS=x\0", false),
            (b"", false),
        ] {
            assert_eq!(holds_step(environment), expected, "{environment:?}");
        }
    }

    #[test]
    fn the_parent_is_the_first_ancestor() {
        assert_eq!(ancestors().next(), getppid());
    }
}
