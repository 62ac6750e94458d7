//! Which classes the end of a command has (`contracts.md` 7, "Where classes
//! come from").

use crate::failure::FailureClass;
use crate::witness::{CommandEnd, EndCause};

/// The exit code by which a command says that trying again may help
/// (`EX_TEMPFAIL`).
const TEMPFAIL: i32 = 75;
/// The exit codes of a shell that could not start a command.
const NOT_STARTED: [i32; 2] = [126, 127];

/// Names the classes of a command's end; none where it passed.
///
/// What the harness knows by itself comes first, then `words`, which the
/// command said; `rest` is what a failure is where neither says anything.
pub fn classes_of(end: &CommandEnd, words: Vec<String>, rest: FailureClass) -> Vec<String> {
    let own = match end.cause {
        EndCause::Exited if end.code == Some(0) => return Vec::new(),
        EndCause::Exited => None,
        EndCause::SpawnFailed => Some(FailureClass::ExecutorUnavailable),
        EndCause::Limit => Some(FailureClass::GateTimeout),
        EndCause::Stopped => Some(FailureClass::StepInterrupted),
        EndCause::Exceeded => Some(FailureClass::ResourceExceeded),
    };
    let mut classes: Vec<String> = own.iter().map(|class| class.as_str().to_owned()).collect();
    for word in words {
        if !classes.contains(&word) {
            classes.push(word);
        }
    }
    if classes.is_empty() {
        let class = match (end.code, end.killed_by()) {
            (Some(TEMPFAIL), _) | (_, Some(_)) => FailureClass::FlakyExecution,
            (Some(code), _) if NOT_STARTED.contains(&code) => FailureClass::ExecutorUnavailable,
            _ => rest,
        };
        classes.push(class.as_str().to_owned());
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_has_the_classes_of_the_contract() {
        use EndCause::{Exited, Limit, SpawnFailed, Stopped};
        for (cause, code, signal, words, expected) in [
            (Exited, Some(0), None, &["flaky_io"][..], &[][..]),
            (Exited, Some(1), None, &[], &["check_failed"]),
            (Exited, Some(75), None, &[], &["flaky_execution"]),
            (Exited, Some(127), None, &[], &["executor_unavailable"]),
            (Exited, None, Some(11), &[], &["flaky_execution"]),
            // As a shell tells it of its command.
            (Exited, Some(137), None, &[], &["flaky_execution"]),
            (Exited, Some(143), None, &[], &["flaky_execution"]),
            (Exited, Some(128), None, &[], &["check_failed"]),
            (Exited, Some(139), None, &[], &["check_failed"]),
            (Exited, Some(75), None, &["flaky_io"], &["flaky_io"]),
            (SpawnFailed, None, None, &[], &["executor_unavailable"]),
            (
                Limit,
                None,
                Some(15),
                &["flaky_io"],
                &["gate_timeout", "flaky_io"],
            ),
            (Stopped, None, Some(15), &[], &["step_interrupted"]),
        ] {
            let end = CommandEnd {
                cause,
                code,
                signal,
            };
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            let found = classes_of(&end, words, FailureClass::CheckFailed);
            assert_eq!(found, expected, "{end:?}");
        }
    }
}
