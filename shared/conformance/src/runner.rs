//! Runs a suite, and gives out its documents.

use super::coverage;
use super::document::Input;
use super::fault::{FaultKind, SuiteFault};
use super::files::{self, Files, base_path, vector_path};
use super::judge::{JudgedVector, judge};
use super::manifest::{SuiteManifest, VectorEntry};
use super::report::{SuiteReport, VectorOutcome};
use super::suite::Suite;
use super::vector::{Case, Vector};
use super::verdict::RuleVerdict;
use premath_kernel::failure::Family;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the documents of every vector that can be read, as inputs of
/// `premath harness-join-check`: by the vector's id, of a pair with `.left`
/// or `.right` behind it.
///
/// For other programs to be judged by, and for a campaign to begin from.
pub fn documents(files: &Files) -> BTreeMap<String, Vec<u8>> {
    let Ok(manifest) = SuiteManifest::read(files) else {
        return BTreeMap::new();
    };
    let mut documents = BTreeMap::new();
    for (entry, suite, bytes) in manifest.vectors(files) {
        let Ok(vector) = Vector::read(suite, bytes) else {
            continue;
        };
        let pair = vector.documents().count() > 1;
        for (document, side) in vector.documents().zip([".left", ".right"]) {
            if let Ok(input) = document.input(files) {
                let side = if pair { side } else { "" };
                documents.insert(format!("{}{side}", entry.id), input.into_bytes());
            }
        }
    }
    documents
}

/// Judges every vector of a suite, and the suite itself.
pub fn run(files: &Files) -> SuiteReport {
    let (outcomes, mut faults) = match SuiteManifest::read(files) {
        Ok(manifest) => {
            let mut faults = manifest.faults(files);
            faults.extend(refused_bases(files));
            let vectors = read(&manifest, files, &mut faults);
            faults.extend(unused_bases(&vectors, files));
            let outcomes: Vec<VectorOutcome> = vectors
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
    SuiteReport {
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
    fn outcome(self, files: &Files) -> VectorOutcome {
        let JudgedVector {
            differences,
            roots,
            rules,
        } = judge(&self.vector, files);
        let (root, near_miss_of) = match self.vector.case {
            Case::Adversarial { root, .. } => (Some(root), None),
            Case::Golden { near_miss_of, .. } => (None, near_miss_of),
            Case::Invariance { .. } | Case::Refusal { .. } => (None, None),
        };
        VectorOutcome {
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

fn read(manifest: &SuiteManifest, files: &Files, faults: &mut Vec<SuiteFault>) -> Vec<Named> {
    let mut vectors = Vec::new();
    for (VectorEntry { id, says }, suite, bytes) in manifest.vectors(files) {
        match Vector::read(suite, bytes) {
            Ok(vector) => {
                if says.0 != vector.says {
                    let detail = "the manifest's text differs from the vector's";
                    faults.push(SuiteFault::new(FaultKind::Manifest, id, detail));
                }
                vectors.push(Named {
                    id: id.clone(),
                    suite,
                    vector,
                });
            }
            Err((kind, detail)) => faults.push(SuiteFault::new(kind, vector_path(id), detail)),
        }
    }
    vectors
}

fn refused_bases(files: &Files) -> impl Iterator<Item = SuiteFault> {
    files::bases(files).filter_map(|(name, bytes)| {
        let input = Input::Text(String::from_utf8_lossy(bytes).into_owned());
        let detail = match RuleVerdict::of(&input) {
            Ok(verdict) if verdict.check.mutation_ready => return None,
            Ok(verdict) => format!("is not ready for a change: {}", verdict.describe()),
            Err(error) => error,
        };
        Some(SuiteFault::new(
            FaultKind::BaseRefused,
            base_path(name),
            detail,
        ))
    })
}

fn unused_bases(vectors: &[Named], files: &Files) -> Vec<SuiteFault> {
    let used: BTreeSet<&str> = vectors
        .iter()
        .flat_map(|named| named.vector.bases())
        .collect();
    files::bases(files)
        .filter(|(name, _)| !used.contains(name))
        .map(|(name, _)| {
            let detail = "no vector starts from it";
            SuiteFault::new(FaultKind::BaseUnused, base_path(name), detail)
        })
        .collect()
}

fn stray_near_misses(outcomes: &[VectorOutcome], manifest: &SuiteManifest) -> Vec<SuiteFault> {
    outcomes
        .iter()
        .filter_map(|outcome| Some((outcome, outcome.near_miss_of.as_deref()?)))
        .filter(|(_, target)| {
            Suite::of_id(target) != Some(Suite::Adversarial) || !manifest.names(target)
        })
        .map(|(outcome, target)| {
            let detail =
                format!("is a near miss of {target:?}, which is not an adversarial vector");
            SuiteFault::new(
                FaultKind::NearMissOfNothing,
                vector_path(&outcome.id),
                detail,
            )
        })
        .collect()
}
