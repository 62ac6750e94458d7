//! What the lanes of a process know about the commits that they begin at:
//! whether the verify command passes there without any work.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How the verify command ended on a base.
#[derive(Clone, Debug)]
pub(crate) enum BaseVerdict {
    Passed,
    Failed {
        /// The name of the command.
        phase: &'static str,
        /// Its failure classes.
        classes: Vec<String>,
        /// The file with its output.
        output: PathBuf,
        /// Ignored files that the verification does not have.
        absent: Vec<String>,
    },
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
}
