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
fn is_of_step(process: u32) -> bool {
    let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    holds_step(&environment)
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
fn ancestors() -> impl Iterator<Item = u32> {
    let first = Some(std::os::unix::process::parent_id());
    let above = |process: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        parent_in(&stat)
    };
    std::iter::successors(first.filter(|process| *process > 0), above)
        .take_while(|process| *process > 1)
        .take(ANCESTORS_MAX)
}

/// Reads the parent in a process's `stat`; its name may hold anything.
fn parent_in(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
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
    fn a_parent_is_read_behind_a_name_of_any_kind() {
        assert_eq!(parent_in("7 (a) 9 (b) S 42 7 7 0"), Some(42));
        assert_eq!(parent_in("7"), None);
        assert_eq!(
            ancestors().next(),
            Some(std::os::unix::process::parent_id())
        );
    }
}
