//! The verifications of a step, as its row and its turn report them.

use crate::lane::command::Phase;
use premath_kernel::json::reference::RefSet;
use premath_kernel::record::trajectory::{SharedVerification, Verification};
use std::collections::{BTreeMap, BTreeSet};

/// The verifications of a step so far.
#[derive(Debug)]
pub(super) struct Verifications {
    /// The latest verification.
    pub(super) latest: Option<Verification>,
    /// The verification of other work that the step rests on.
    pub(super) shared: Option<SharedVerification>,
    /// The witnesses of those that failed, by tree.
    red: BTreeMap<String, RefSet>,
    /// The trees that passed.
    passed: BTreeSet<String>,
    /// The witnesses of those that failed on a tree that passed.
    pub(super) flaky: RefSet,
    /// The phase of the one that passed last.
    pub(super) passed_in: &'static str,
    /// Whether one that passed began with build state.
    pub(super) is_warm: bool,
}

impl Verifications {
    pub(super) fn none() -> Self {
        Self {
            latest: None,
            shared: None,
            red: BTreeMap::new(),
            passed: BTreeSet::new(),
            flaky: RefSet::new(),
            passed_in: Phase::Verify(0).name(),
            is_warm: false,
        }
    }

    /// Records how the latest verification of a tree ended.
    pub(super) fn note(&mut self, tree: &str, passed: bool, is_red: bool) {
        if passed {
            let red = self.red.remove(tree);
            self.flaky.extend(&red.unwrap_or_default());
            self.passed.insert(tree.to_owned());
        } else if is_red && let Some(witness) = self.latest_witness() {
            match self.passed.contains(tree) {
                true => self.flaky.insert(witness),
                false => self.red.entry(tree.to_owned()).or_default().insert(witness),
            };
        }
    }

    /// Returns the witness of the latest verification.
    pub(super) fn latest_witness(&self) -> Option<String> {
        let latest = self.latest.as_ref();
        latest.and_then(|verification| verification.witness_ref.clone())
    }
}
