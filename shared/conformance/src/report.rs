//! Runs a suite and reports on it.

use super::coverage;
use super::difference::Difference;
use super::document::Input;
use super::fault::{Fault, FaultKind};
use super::files::{self, Files, base_path, vector_path};
use super::judge::{Judged, judge};
use super::manifest::{Entry, Manifest};
use super::suite::Suite;
use super::vector::{Case, Vector};
use super::verdict::Verdict;
use premath_kernel::failure::{FailureClass, Family};
use serde::Serialize;
use std::collections::BTreeSet;

/// What came of a suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Every vector that could be read, in the order of the manifest.
    pub outcomes: Vec<Outcome>,
    /// What is wrong with the suite itself.
    pub faults: Vec<Fault>,
    /// The classes of the typestate that a vector covers.
    pub covered: BTreeSet<FailureClass>,
    /// The classes of the typestate that none covers.
    pub uncovered: BTreeSet<FailureClass>,
}

/// What came of a vector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// The vector's id, as in `adversarial/tool-result-missing`.
    pub id: String,
    /// What it asks.
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

impl Outcome {
    /// Tells whether everything is as the vector expects.
    pub fn passed(&self) -> bool {
        self.differences.is_empty()
    }
}

impl Report {
    /// Tells whether every vector passed and nothing is wrong with the suite.
    pub fn passed(&self) -> bool {
        self.faults.is_empty() && self.outcomes.iter().all(Outcome::passed)
    }

    /// Keeps the vectors of one suite, and of the faults those that are not
    /// about the suites as a whole.
    pub fn only(mut self, suite: Suite) -> Self {
        self.outcomes.retain(|outcome| outcome.suite == suite);
        self.faults.retain(|fault| !fault.kind.is_coverage());
        self
    }
}

/// Judges every vector of a suite, and the suite itself.
pub fn run(files: &Files) -> Report {
    let (outcomes, mut faults) = match Manifest::read(files) {
        Ok(manifest) => {
            let mut faults = manifest.faults(files);
            faults.extend(refused_bases(files));
            let vectors = read(&manifest, files, &mut faults);
            faults.extend(unused_bases(&vectors, files));
            let outcomes: Vec<Outcome> = vectors
                .into_iter()
                .map(|vector| vector.outcome(files))
                .collect();
            faults.extend(stray_near_misses(&outcomes, &manifest));
            (outcomes, faults)
        }
        Err(fault) => (Vec::new(), vec![fault]),
    };
    faults.extend(coverage::faults(&outcomes));
    let covered = coverage::covered(&outcomes);
    Report {
        uncovered: Family::Typestate
            .classes()
            .filter(|class| !covered.contains(class))
            .collect(),
        covered,
        outcomes,
        faults,
    }
}

/// A vector under its name.
struct Named {
    id: String,
    suite: Suite,
    vector: Vector,
}

impl Named {
    fn outcome(self, files: &Files) -> Outcome {
        let Judged {
            differences,
            roots,
            rules,
        } = judge(&self.vector, files);
        let (root, near_miss_of) = match self.vector.case {
            Case::Adversarial { root, .. } => (Some(root), None),
            Case::Golden { near_miss_of, .. } => (None, near_miss_of),
            Case::Invariance { .. } | Case::Refusal { .. } => (None, None),
        };
        Outcome {
            id: self.id,
            suite: self.suite,
            says: self.vector.says,
            slices: self.vector.slices,
            root,
            roots,
            rules,
            near_miss_of,
            differences,
        }
    }
}

fn read(manifest: &Manifest, files: &Files, faults: &mut Vec<Fault>) -> Vec<Named> {
    let mut vectors = Vec::new();
    for (Entry { id, says }, suite, bytes) in manifest.vectors(files) {
        match Vector::read(suite, bytes) {
            Ok(vector) => {
                if says.0 != vector.says {
                    let detail = "the manifest says something else of it than itself";
                    faults.push(Fault::new(FaultKind::Manifest, id, detail));
                }
                vectors.push(Named {
                    id: id.clone(),
                    suite,
                    vector,
                });
            }
            Err((kind, detail)) => faults.push(Fault::new(kind, vector_path(id), detail)),
        }
    }
    vectors
}

fn refused_bases(files: &Files) -> impl Iterator<Item = Fault> {
    files::bases(files).filter_map(|(name, bytes)| {
        let input = Input::Text(String::from_utf8_lossy(bytes).into_owned());
        let detail = match Verdict::of(&input) {
            Ok(verdict) if verdict.check.mutation_ready => return None,
            Ok(verdict) => format!("is not ready for a change: {}", verdict.told()),
            Err(error) => error,
        };
        Some(Fault::new(FaultKind::BaseRefused, base_path(name), detail))
    })
}

fn unused_bases(vectors: &[Named], files: &Files) -> Vec<Fault> {
    let used: BTreeSet<&str> = vectors
        .iter()
        .flat_map(|named| named.vector.bases())
        .collect();
    files::bases(files)
        .filter(|(name, _)| !used.contains(name))
        .map(|(name, _)| {
            let detail = "no vector starts from it";
            Fault::new(FaultKind::BaseUnused, base_path(name), detail)
        })
        .collect()
}

fn stray_near_misses(outcomes: &[Outcome], manifest: &Manifest) -> Vec<Fault> {
    outcomes
        .iter()
        .filter_map(|outcome| Some((outcome, outcome.near_miss_of.as_deref()?)))
        .filter(|(_, target)| {
            Suite::of_id(target) != Some(Suite::Adversarial) || !manifest.names(target)
        })
        .map(|(outcome, target)| {
            let detail = format!("is a near miss of {target:?}, which is no adversarial vector");
            Fault::new(
                FaultKind::NearMissOfNothing,
                vector_path(&outcome.id),
                detail,
            )
        })
        .collect()
}
