//! The verifications of a step, as its row and its turn report them.

use crate::lane::command::Phase;
use premath_kernel::json::reference::RefSet;
use premath_kernel::record::trajectory::{SharedVerification, Verification};
use std::collections::{BTreeMap, BTreeSet};

/// A tree, and what judged it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JudgedTree {
    pub(super) tree: String,
    /// Whether it is the check after a landing.
    pub(super) is_check: bool,
}

/// The verifications of a step so far.
#[derive(Debug)]
pub(super) struct Verifications {
    /// The latest verification.
    pub(super) latest: Option<Verification>,
    /// The verification of other work that the step rests on.
    pub(super) shared: Option<SharedVerification>,
    /// The witnesses of those that failed.
    red: BTreeMap<JudgedTree, RefSet>,
    passed: BTreeSet<JudgedTree>,
    /// The witnesses of those that failed on a tree that passed too.
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

    /// Records that a tree passed.
    pub(super) fn passed(&mut self, judged: JudgedTree) {
        let failed = self.red.remove(&judged);
        self.flaky.extend(&failed.unwrap_or_default());
        self.passed.insert(judged);
    }

    /// Records that a tree failed, and may pass.
    pub(super) fn failed(&mut self, judged: JudgedTree, witness: String) {
        match self.passed.contains(&judged) {
            true => self.flaky.insert(witness),
            false => self.red.entry(judged).or_default().insert(witness),
        };
    }

    /// Returns the witness of the latest verification.
    pub(super) fn latest_witness(&self) -> Option<String> {
        let latest = self.latest.as_ref();
        latest.and_then(|verification| verification.witness_ref.clone())
    }
}
