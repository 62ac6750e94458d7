//! What a suite as a whole must hold.

use super::fault::{FaultKind, SuiteFault};
use super::report::VectorOutcome;
use super::slice::SLICES;
use premath_kernel::failure::{FailureClass, Family};
use premath_kernel::turn::{Stage, notes};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the classes that are the only root class of a turn in which some
/// adversarial vector expects them.
pub(super) fn covered(outcomes: &[VectorOutcome]) -> BTreeSet<FailureClass> {
    outcomes
        .iter()
        .filter_map(|outcome| outcome.root.filter(|root| outcome.roots == [*root].into()))
        .collect()
}

/// Returns what no vector refers to.
pub(super) fn faults(outcomes: &[VectorOutcome]) -> Vec<SuiteFault> {
    let mut faults = classes(outcomes);
    let broken: BTreeSet<&str> = outcomes
        .iter()
        .flat_map(|outcome| outcome.rules.iter().map(String::as_str))
        .collect();
    for note in notes() {
        if note.stage != Stage::ThisStep && !broken.contains(note.rule.as_str()) {
            let detail = format!("no vector breaks this rule of {}", note.class);
            faults.push(SuiteFault::new(FaultKind::RuleUnbroken, note.rule, detail));
        }
    }
    for slice in SLICES {
        if !outcomes.iter().any(|o| o.slices.contains(&slice.number)) {
            let at = format!("slice {}", slice.number);
            let detail = format!("no vector belongs to `{}`", slice.title);
            faults.push(SuiteFault::new(FaultKind::SliceEmpty, at, detail));
        }
    }
    faults
}

fn classes(outcomes: &[VectorOutcome]) -> Vec<SuiteFault> {
    let covered = covered(outcomes);
    let roots: BTreeMap<&str, FailureClass> = outcomes
        .iter()
        .filter_map(|outcome| Some((outcome.id.as_str(), outcome.root?)))
        .collect();
    let missed: BTreeSet<FailureClass> = outcomes
        .iter()
        .filter_map(|outcome| roots.get(outcome.near_miss_of.as_deref()?).copied())
        .collect();
    let mut faults = Vec::new();
    for class in Family::Typestate.classes() {
        if !covered.contains(&class) {
            let detail = "is the only root class of no adversarial vector";
            faults.push(SuiteFault::new(
                FaultKind::Uncovered,
                class.as_str(),
                detail,
            ));
        }
        if !missed.contains(&class) {
            let detail = "no golden vector is a near miss of it";
            let kind = FaultKind::WithoutNearMiss;
            faults.push(SuiteFault::new(kind, class.as_str(), detail));
        }
    }
    faults
}
