//! Distinguishes a person at the keyboard from a step.

use crate::error::CliError;
use crate::paths::variable;
use clap::Args;
use premath_kernel::authority::OperatorOverride;
use premath_platform::process::Process;
use rustix::process::{Pid, getppid};
use std::path::Path;

/// Why a person changes an issue without the gate.
#[derive(Debug, Default, Args)]
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
        let name = ["USER", "LOGNAME"].into_iter().find_map(variable);
        let name = name.map_or_else(
            || "operator".to_owned(),
            |name| name.to_string_lossy().into_owned(),
        );
        #[expect(
            clippy::disallowed_methods,
            reason = "only the premath command acts for an operator"
        )]
        let authority = OperatorOverride::new(name, self.reason);
        Ok(authority)
    }
}

/// The variable that names the step of a command.
const STEP: &str = "PREMATH_STEP_ID";
/// The entry in the environment of a lane's supervisor, below which every
/// command of a step runs, daemons too.
const SUPERVISOR: &[u8] = b"PREMATH_SUPERVISOR=itself";
/// A command with more ancestors than this is taken for one of a step: it could
/// have made them to hide its supervisor.
const ANCESTORS_MAX: usize = 256;
/// How often the ancestors are looked at again where one of them ended
/// meanwhile.
const LOOKS_MAX: usize = 16;
/// The programs whose descendants are commands of steps: a supervisor is one of
/// them, and the harness itself inherits what a killed supervisor leaves.
const HARNESS: [&str; 2] = ["harness-coordinator", "harness-worker"];

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
    let found = (0..LOOKS_MAX).find_map(|_| is_below_step(getppid(), Process::at));
    found.unwrap_or(true)
}

/// Returns whether one of a process's ancestors belongs to a step; `None` where
/// one ended while they were looked at, because the next one above it is then
/// unknown.
fn is_below_step(parent: Option<Pid>, look: impl Fn(Pid) -> Option<Process>) -> Option<bool> {
    let mut next = parent;
    for _ in 0..ANCESTORS_MAX {
        match next {
            // The first process, or one outside of this namespace.
            None | Some(Pid::INIT) => return Some(false),
            Some(process) if is_of_step(process) => return Some(true),
            Some(process) => next = Pid::from_raw(look(process)?.parent),
        }
    }
    Some(true)
}

/// Returns whether a process is a command of a step, a lane's supervisor, or
/// the harness.
fn is_of_step(process: Pid) -> bool {
    holds_step(&premath_platform::process::environment(process))
        || premath_platform::process::program(process).is_some_and(|program| is_harness(&program))
}

/// Returns whether a program, as the system shows it, is a binary of the
/// harness. The name of a file that was replaced ends in ` (deleted)`.
fn is_harness(program: &Path) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    HARNESS.contains(&name.trim_end_matches(" (deleted)"))
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

/// Returns the step that this command runs in.
pub(crate) fn step_id() -> Option<String> {
    variable(STEP).map(|id| id.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpid;

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

    /// Processes that each have the next number as their parent.
    fn chain(process: Pid) -> Option<Process> {
        let parent = process.as_raw_nonzero().get() + 1;
        let here = Process::at(getpid())?;
        Some(Process { parent, ..here })
    }

    #[test]
    fn a_chain_of_ancestors_that_is_not_followed_to_its_end_is_that_of_a_step() {
        // Numbers that no process of this machine has.
        let first = Pid::from_raw(1 << 30);
        assert_eq!(is_below_step(first, chain), Some(true));
        assert_eq!(is_below_step(first, |_| None), None);
        let last = |process: Pid| {
            Some(Process {
                parent: 1,
                ..chain(process)?
            })
        };
        assert_eq!(is_below_step(first, last), Some(false));
        assert_eq!(is_below_step(None, chain), Some(false));
    }

    #[test]
    fn a_binary_of_the_harness_is_known_by_its_name() {
        for (program, expected) in [
            ("/opt/bin/harness-worker", true),
            ("/opt/bin/harness-coordinator (deleted)", true),
            ("/opt/harness-worker/bash", false),
            ("", false),
        ] {
            assert_eq!(is_harness(Path::new(program)), expected, "{program}");
        }
    }
}
