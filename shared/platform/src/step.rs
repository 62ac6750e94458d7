//! Distinguishes the processes of steps from all others, by the processes above
//! them, which a command cannot choose.

use crate::process::{Process, environment, program};
use rustix::process::{Pid, getpid, getppid};
use std::path::Path;

/// The variable that names the step of a command.
pub const STEP: &str = "PREMATH_STEP_ID";
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

/// Returns whether a process is below a step, where `parent` is its parent.
///
/// Where the ancestors cannot be followed to the first process, the answer is
/// yes. In a process namespace of its own a step does not see the supervisor.
pub fn is_below_any(parent: Option<Pid>) -> bool {
    let found = (0..LOOKS_MAX).find_map(|_| is_below_step(parent, Process::at));
    found.unwrap_or(true)
}

/// Returns whether another process belongs to a step, itself included; yes
/// where it has ended, for then its ancestors are unknown.
///
/// The program that asks may ask about itself: it belongs to a step where a process
/// above it does.
pub fn holds(process: Pid) -> bool {
    if process == getpid() {
        return is_below_any(getppid());
    }
    let Some(seen) = Process::at(process).filter(|seen| !seen.zombie) else {
        return true;
    };
    is_of_step(process) || is_below_any(Pid::from_raw(seen.parent))
}

/// Returns whether a process is a harness that an operator started: no supervisor, and
/// not below a step. `false` where it has ended.
pub fn is_harness_of_operator(process: Pid) -> bool {
    let Some(seen) = Process::at(process).filter(|seen| !seen.zombie) else {
        return false;
    };
    program(process).is_some_and(|program| is_harness(&program))
        && environment(process).is_some_and(|environment| !names_step(&environment))
        && !is_below_any(Pid::from_raw(seen.parent))
}

/// Returns whether one of a process's ancestors belongs to a step; `None` where
/// one ended while they were looked at, because the next one above it is then
/// unknown.
fn is_below_step(parent: Option<Pid>, look: impl Fn(Pid) -> Option<Process>) -> Option<bool> {
    let mut next = parent;
    for _ in 0..ANCESTORS_MAX {
        match next {
            // One outside of this namespace.
            None => return Some(false),
            Some(process) if is_of_step(process) => return Some(true),
            // The first process, which in a container the harness may be.
            Some(Pid::INIT) => return Some(false),
            Some(process) => next = Pid::from_raw(look(process)?.parent),
        }
    }
    Some(true)
}

/// Returns whether a process is a command of a step, a lane's supervisor, or
/// the harness.
fn is_of_step(process: Pid) -> bool {
    environment(process).is_none_or(|environment| names_step(&environment))
        || program(process).is_some_and(|program| is_harness(&program))
}

/// Returns whether a program, as the system shows it, is a binary of the
/// harness. The name of a file that was replaced ends in ` (deleted)`.
fn is_harness(program: &Path) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    HARNESS.contains(&name.trim_end_matches(" (deleted)"))
}

/// Returns whether an environment, as the system shows it, is that of a step.
fn names_step(environment: &[u8]) -> bool {
    let mut entries = environment.split(|byte| *byte == 0);
    entries.any(|entry| {
        let value = entry.strip_prefix(STEP.as_bytes());
        let is_named = value.is_some_and(|value| value.len() > 1 && value.starts_with(b"="));
        is_named || entry == SUPERVISOR
    })
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
            assert_eq!(names_step(environment), expected, "{environment:?}");
        }
    }

    #[test]
    fn a_process_that_has_ended_is_taken_for_one_of_a_step() {
        assert!(holds(Pid::from_raw(1 << 30).unwrap()));
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
