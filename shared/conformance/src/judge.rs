//! Judges one vector.

use super::difference::Difference;
use super::document::VectorDocument;
use super::files::Files;
use super::vector::{Case, Vector};
use super::verdict::RuleVerdict;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::canonical::value_of;
use std::collections::{BTreeMap, BTreeSet};

/// The outcome of a vector.
#[derive(Debug, Default)]
pub(super) struct JudgedVector {
    pub(super) differences: Vec<Difference>,
    /// The root classes of an adversarial vector's turn.
    pub(super) roots: BTreeSet<FailureClass>,
    /// The rules that an adversarial vector's turn breaks.
    pub(super) rules: BTreeSet<String>,
}

/// Judges a vector.
pub(super) fn judge(vector: &Vector, files: &Files) -> JudgedVector {
    match &vector.case {
        Case::Golden {
            document,
            digests,
            near_miss_of: _,
        } => golden(document, digests.as_ref(), files),
        Case::Adversarial {
            document,
            root,
            join,
            mutation,
        } => adversarial(document, *root, [join, mutation], files),
        Case::Invariance { left, right } => invariance(left, right, files),
        Case::Refusal { document, error } => refusal(document, error, files),
    }
    .unwrap_or_else(|difference| JudgedVector::differing(vec![difference]))
}

impl JudgedVector {
    fn differing(differences: Vec<Difference>) -> Self {
        Self {
            differences,
            ..Self::default()
        }
    }
}

fn golden(
    document: &VectorDocument,
    digests: Option<&BTreeMap<String, String>>,
    files: &Files,
) -> Result<JudgedVector, Difference> {
    let verdict = verdict("document", document, files)?;
    let mut differences = classes(&verdict, [&BTreeSet::new(), &BTreeSet::new()]);
    if let Some(digests) = digests {
        let found = value_of(&verdict.check.witness.digests);
        differences.extend(Difference::of_values("digests", &value_of(digests), &found));
    }
    Ok(JudgedVector::differing(differences))
}

fn adversarial(
    document: &VectorDocument,
    root: FailureClass,
    expected: [&BTreeSet<FailureClass>; 2],
    files: &Files,
) -> Result<JudgedVector, Difference> {
    let verdict = verdict("document", document, files)?;
    let roots = verdict.roots();
    let mut differences = classes(&verdict, expected);
    differences.extend(Difference::of_classes(
        "root classes",
        &BTreeSet::from([root]),
        &roots,
    ));
    Ok(JudgedVector {
        differences,
        roots,
        rules: verdict.rules(),
    })
}

fn invariance(
    left: &VectorDocument,
    right: &VectorDocument,
    files: &Files,
) -> Result<JudgedVector, Difference> {
    let made = |side, document: &VectorDocument| {
        let input = document.input(files);
        input.map_err(|error| unmade(side, error))
    };
    if made("left", left)? == made("right", right)? {
        let expected = "two spellings of one turn";
        let found = "the same document twice";
        return Err(Difference::new("left and right", expected, found));
    }
    let left = verdict("left", left, files)?.check;
    let right = verdict("right", right, files)?.check;
    let mut differences = Difference::of_values(
        "normalized",
        &value_of(&left.normalized),
        &value_of(&right.normalized),
    );
    let sets = [
        (
            "failureClasses",
            &left.failure_classes,
            &right.failure_classes,
        ),
        (
            "mutationFailureClasses",
            &left.mutation_failure_classes,
            &right.mutation_failure_classes,
        ),
    ];
    differences.extend(
        sets.into_iter()
            .filter_map(|(what, left, right)| Difference::of_classes(what, left, right)),
    );
    Ok(JudgedVector::differing(differences))
}

fn refusal(
    document: &VectorDocument,
    error: &str,
    files: &Files,
) -> Result<JudgedVector, Difference> {
    let input = document
        .input(files)
        .map_err(|error| unmade("document", error))?;
    let found = match RuleVerdict::of(&input) {
        Ok(verdict) => verdict.describe(),
        Err(found) if found.contains(error) => return Ok(JudgedVector::default()),
        Err(found) => found,
    };
    Err(Difference::new("error", error, found))
}

fn classes(
    verdict: &RuleVerdict,
    [join, mutation]: [&BTreeSet<FailureClass>; 2],
) -> Vec<Difference> {
    let check = &verdict.check;
    let sets = [
        ("failureClasses", join, &check.failure_classes),
        (
            "mutationFailureClasses",
            mutation,
            &check.mutation_failure_classes,
        ),
    ];
    sets.into_iter()
        .filter_map(|(what, expected, found)| Difference::of_classes(what, expected, found))
        .collect()
}

fn verdict(
    what: &str,
    document: &VectorDocument,
    files: &Files,
) -> Result<RuleVerdict, Difference> {
    let input = document.input(files).map_err(|error| unmade(what, error))?;
    RuleVerdict::of(&input).map_err(|error| Difference::new(what, "a turn that can be read", error))
}

fn unmade(what: &str, error: String) -> Difference {
    Difference::new(what, "a document that can be made", error)
}
