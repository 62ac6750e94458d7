//! What the lanes of a process know about the commits that they begin at:
//! whether the verify command passes there without any work.

use premath_kernel::failure::FailureClass;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How the verify command ended on a base.
#[derive(Clone, Debug)]
pub(crate) enum BaseVerdict {
    Passed,
    Failed(Box<FailedCommand>),
}

/// A command of a boot, or a verification without any work, that did not pass.
#[derive(Clone, Debug)]
pub struct FailedCommand {
    /// Which command ran, as a message names it: `boot`, `startup`, `verify`.
    pub(crate) name: &'static str,
    /// The class of the lane's failure.
    pub(crate) class: FailureClass,
    /// The failure classes of the command.
    pub(crate) classes: Vec<String>,
    /// The last line that it printed, or how it ended; one line, of a bounded length.
    pub(crate) reason: String,
    /// The stream file that has text; none where the command printed nothing.
    pub(crate) output: Option<PathBuf>,
    /// Ignored files of the main checkout that a verification does not have, at most
    /// eight.
    pub(crate) absent: Vec<String>,
}

impl FailedCommand {
    /// Returns whether an interrupt ended it, which shows nothing about the base.
    pub(crate) fn is_interrupted(&self) -> bool {
        let cut = FailureClass::StepInterrupted.as_str();
        self.classes.iter().any(|class| class == cut)
    }
}

impl fmt::Display for FailedCommand {
    /// Writes what failed and why. Messages begin with the class of the lane's
    /// failure, so that only the other classes are named.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} command failed", self.name)?;
        let own = self.class.as_str();
        let classes = self.classes.iter().map(String::as_str);
        let others: Vec<&str> = classes.filter(|class| *class != own).collect();
        if !others.is_empty() {
            write!(f, " ({})", others.join(", "))?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// The verdicts by commit.
#[derive(Debug, Default)]
pub(crate) struct KnownBases(BTreeMap<String, BaseVerdict>);

impl KnownBases {
    /// Returns the verdict on a commit. On a landing target each commit above
    /// one that passed was verified when it landed.
    pub(crate) fn of(&self, commit: &str, lands: bool) -> Option<&BaseVerdict> {
        let has_passed = |verdict: &&BaseVerdict| lands && matches!(verdict, BaseVerdict::Passed);
        let known = self.0.get(commit);
        known.or_else(|| self.0.values().find(has_passed))
    }

    /// Takes a verdict in; one that is none is asked for again.
    pub(crate) fn note(&mut self, commit: String, verdict: Option<BaseVerdict>) {
        if let Some(verdict) = verdict {
            self.0.insert(commit, verdict);
        }
    }
}

/// What the lanes know; one of them finds it out, and the others wait for it.
#[derive(Debug, Default)]
pub(crate) struct Bases(Mutex<KnownBases>);

impl Bases {
    pub(crate) fn lock(&self) -> MutexGuard<'_, KnownBases> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_known_by_its_commit_or_by_the_target_that_it_is_above() {
        let mut known = KnownBases::default();
        assert!(known.of("a", true).is_none());
        known.note("a".to_owned(), None);
        assert!(known.of("a", true).is_none());
        known.note("a".to_owned(), Some(BaseVerdict::Passed));
        let has = |commit, lands| known.of(commit, lands).is_some();
        assert_eq!((has("a", false), has("b", false)), (true, false));
        assert_eq!((has("a", true), has("b", true)), (true, true));
    }

    #[test]
    fn a_failed_command_is_named_with_its_reason_and_no_class_twice() {
        let message = |classes: &[&str]| {
            let failed = FailedCommand {
                name: "verify",
                class: FailureClass::StartupCheckFailed,
                classes: classes.iter().map(|&class| class.to_owned()).collect(),
                reason: "base-is-red".to_owned(),
                output: None,
                absent: Vec::new(),
            };
            failed.to_string()
        };
        assert_eq!(
            message(&["startup_check_failed"]),
            "the verify command failed: base-is-red"
        );
        assert_eq!(
            message(&["gate_timeout", "startup_check_failed"]),
            "the verify command failed (gate_timeout): base-is-red"
        );
    }
}
