//! How a command ended, and which classes that has (`contracts.md` 7, "Where classes
//! come from").

use crate::failure::FailureClass;
use schemars::JsonSchema;
use serde::Serialize;

/// The exit code by which a command says that trying again may help
/// (`EX_TEMPFAIL`).
const TEMPFAIL: i32 = 75;
/// The exit codes of a shell that could not start a command.
const NOT_STARTED: [i32; 2] = [126, 127];

/// Why a command is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndCause {
    /// Its main process ended by itself.
    Exited,
    /// It ran over its limit.
    Limit,
    /// The lane asked for its end.
    Stopped,
    /// It used more of the machine than it may.
    Exceeded,
    /// The command could not be started.
    SpawnFailed,
}

/// The end of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandEnd {
    /// The cause of the end.
    pub cause: EndCause,
    /// The exit code, where the main process ended by itself.
    pub code: Option<i32>,
    /// The number of the signal that ended the main process.
    pub signal: Option<i32>,
}

impl CommandEnd {
    /// Returns the signal that it was killed by and that was not ours. A shell
    /// reports that of its own command by an exit code: 128 and the signal's
    /// number, of which only those of SIGKILL and SIGTERM are nothing else.
    pub const fn killed_by(&self) -> Option<i32> {
        match (&self.cause, self.signal, self.code) {
            (EndCause::Exited, Some(signal), _) => Some(signal),
            (EndCause::Exited, None, Some(code @ (137 | 143))) => Some(code - 128),
            _ => None,
        }
    }

    /// Returns how the command ended, in a few words; `None` if it ended well or was
    /// ended by its supervisor, which alone has the cause.
    pub fn message(&self) -> Option<String> {
        match (&self.cause, self.killed_by(), self.code) {
            (EndCause::Exited, Some(signal), _) => Some(format!("killed by signal {signal}")),
            (EndCause::Exited, None, Some(code)) if code != 0 => Some(format!("exit code {code}")),
            _ => None,
        }
    }
}

/// Names the classes of a command's end; none where it passed.
///
/// What the harness knows by itself comes first, then `words`, which the
/// command said; `rest` is what a failure is if neither is given. Only where the command
/// ran over its time limit do its words come first: what it found before that decides.
pub fn classes_of(end: &CommandEnd, words: Vec<String>, rest: FailureClass) -> Vec<String> {
    let own = match end.cause {
        EndCause::Exited if end.code == Some(0) => return Vec::new(),
        EndCause::Exited => None,
        EndCause::SpawnFailed => Some(FailureClass::ExecutorUnavailable),
        EndCause::Limit => Some(FailureClass::GateTimeout),
        EndCause::Stopped => Some(FailureClass::StepInterrupted),
        EndCause::Exceeded => Some(FailureClass::ResourceExceeded),
    };
    let own = own.map(|class| class.as_str().to_owned());
    let (first, last) = match end.cause {
        EndCause::Limit => (None, own),
        _ => (own, None),
    };
    let mut classes: Vec<String> = Vec::new();
    for class in first.into_iter().chain(words).chain(last) {
        if !classes.contains(&class) {
            classes.push(class);
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

/// Returns whether a verification that ended so is repeated on the same tree: it
/// failed by itself, or it said that trying again may help, or its setup failed. One
/// that used up its time or its resources would most likely do so again.
pub fn may_pass_again(classes: &[impl AsRef<str>]) -> bool {
    const REPEATED: [FailureClass; 6] = [
        FailureClass::CheckFailed,
        FailureClass::LandingCheckFailed,
        FailureClass::FlakyExecution,
        FailureClass::FlakyIo,
        FailureClass::NetworkTimeout,
        FailureClass::HookFailed,
    ];
    let is_repeated = |class: &str| REPEATED.iter().any(|repeated| repeated.as_str() == class);
    classes.iter().all(|class| is_repeated(class.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verification_is_repeated_that_was_not_cut_off() {
        let repeated = |classes: &[FailureClass]| {
            let classes: Vec<&str> = classes.iter().map(|class| class.as_str()).collect();
            may_pass_again(&classes)
        };
        for class in [
            FailureClass::CheckFailed,
            FailureClass::LandingCheckFailed,
            FailureClass::FlakyExecution,
            FailureClass::HookFailed,
        ] {
            assert!(repeated(&[class]), "{class:?}");
            assert!(!repeated(&[class, FailureClass::ResourceExceeded]));
        }
        for class in [
            FailureClass::GateTimeout,
            FailureClass::ResourceExceeded,
            FailureClass::ExecutorUnavailable,
            FailureClass::StepInterrupted,
        ] {
            assert!(!repeated(&[class]), "{class:?}");
        }
    }

    #[test]
    fn an_end_has_the_classes_of_the_contract() {
        use EndCause::{Exited, Limit, SpawnFailed, Stopped};
        for (cause, code, signal, words, expected) in [
            (Exited, Some(0), None, &["flaky_io"][..], &[][..]),
            (Exited, Some(1), None, &[], &["check_failed"]),
            (Exited, Some(75), None, &[], &["flaky_execution"]),
            (Exited, Some(127), None, &[], &["executor_unavailable"]),
            (Exited, None, Some(11), &[], &["flaky_execution"]),
            // As a shell reports it for its command.
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
                &["flaky_io", "gate_timeout"],
            ),
            (Limit, None, Some(15), &[], &["gate_timeout"]),
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
