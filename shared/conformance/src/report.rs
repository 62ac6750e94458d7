//! The outcome of a suite and of its vectors.

use super::difference::Difference;
use super::fault::SuiteFault;
use super::suite::Suite;
use premath_kernel::failure::FailureClass;
use serde::Serialize;
use std::collections::BTreeSet;

/// The outcome of a suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteReport {
    /// Every vector that could be read, in the order of the manifest.
    pub outcomes: Vec<VectorOutcome>,
    /// What is wrong with the suite itself.
    pub faults: Vec<SuiteFault>,
    /// The classes of the typestate that a vector covers.
    pub covered: BTreeSet<FailureClass>,
    /// The classes of the typestate that none covers.
    pub uncovered: BTreeSet<FailureClass>,
}

/// The outcome of a vector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VectorOutcome {
    /// The vector's id, as in `adversarial/tool-result-missing`.
    pub id: String,
    /// The suite of the vector.
    pub suite: Suite,
    /// What it says, in one sentence.
    pub says: String,
    /// The slices of `TOOL-CALLING-HARNESS-TYPESTATE 8` that it belongs to.
    pub slices: BTreeSet<u8>,
    /// The only root class that an adversarial vector expects.
    pub root: Option<FailureClass>,
    /// The root classes that an adversarial vector's turn has.
    pub roots: BTreeSet<FailureClass>,
    /// The rules of the gate that an adversarial vector's turn breaks.
    pub rules: BTreeSet<String>,
    /// The adversarial vector that a golden one nearly is.
    pub near_miss_of: Option<String>,
    /// What differs from what it expects.
    pub differences: Vec<Difference>,
}

impl VectorOutcome {
    /// Returns whether everything is as the vector expects.
    pub fn passed(&self) -> bool {
        self.differences.is_empty()
    }
}

impl SuiteReport {
    /// Returns whether every vector passed and nothing is wrong with the suite.
    pub fn passed(&self) -> bool {
        self.faults.is_empty() && self.outcomes.iter().all(VectorOutcome::passed)
    }

    /// Keeps the vectors of one suite, and of the faults those that are not
    /// about the suites as a whole.
    pub fn only(mut self, suite: Suite) -> Self {
        self.outcomes.retain(|outcome| outcome.suite == suite);
        self.faults.retain(|fault| !fault.kind.is_coverage());
        self
    }
}
