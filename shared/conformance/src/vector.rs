//! A vector, read strictly: an unknown field is an error.

use super::document::VectorDocument;
use super::fault::FaultKind;
use super::files;
use super::slice::SLICES;
use super::suite::Suite;
use premath_kernel::failure::{FailureClass, Family};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// A vector.
#[derive(Debug)]
pub(super) struct Vector {
    pub(super) says: String,
    pub(super) slices: BTreeSet<u8>,
    pub(super) case: Case,
}

/// What a vector asks of its documents.
#[derive(Debug)]
pub(super) enum Case {
    Golden {
        document: VectorDocument,
        near_miss_of: Option<String>,
        digests: Option<BTreeMap<String, String>>,
    },
    Adversarial {
        document: VectorDocument,
        root: FailureClass,
        join: BTreeSet<FailureClass>,
        mutation: BTreeSet<FailureClass>,
    },
    Invariance {
        left: VectorDocument,
        right: VectorDocument,
    },
    Refusal {
        document: VectorDocument,
        error: String,
    },
}

/// Why a vector cannot be judged.
pub(super) type Unfit = (FaultKind, String);

impl Vector {
    /// Reads a vector of a suite.
    pub(super) fn read(suite: Suite, bytes: &[u8]) -> Result<Self, Unfit> {
        let unreadable = |detail| (FaultKind::Unreadable, detail);
        match suite {
            Suite::Golden => files::read(bytes).map_err(unreadable).map(Golden::vector),
            Suite::Adversarial => files::read(bytes)
                .map_err(unreadable)
                .and_then(Adversarial::vector),
            Suite::Invariance => files::read(bytes)
                .map_err(unreadable)
                .map(Invariance::vector),
            Suite::Refusal => files::read(bytes).map_err(unreadable).map(Refusal::vector),
        }
    }

    /// Returns its documents: one, or the left and the right one.
    pub(super) fn documents(&self) -> impl Iterator<Item = &VectorDocument> {
        let documents = match &self.case {
            Case::Golden { document, .. }
            | Case::Adversarial { document, .. }
            | Case::Refusal { document, .. } => [Some(document), None],
            Case::Invariance { left, right } => [Some(left), Some(right)],
        };
        documents.into_iter().flatten()
    }

    /// Returns the bases that it starts from.
    pub(super) fn bases(&self) -> impl Iterator<Item = &str> {
        self.documents().filter_map(VectorDocument::base)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Golden {
    #[serde(rename = "schema")]
    _schema: SchemaOne,
    says: Sentence,
    document: VectorDocument,
    near_miss_of: Option<String>,
    #[serde(default)]
    slices: BTreeSet<SliceNumber>,
    #[serde(default)]
    expect: Accepted,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Accepted {
    digests: Option<BTreeMap<String, String>>,
}

impl Golden {
    fn vector(self) -> Vector {
        Vector {
            says: self.says.0,
            slices: numbers(&self.slices),
            case: Case::Golden {
                document: self.document,
                near_miss_of: self.near_miss_of,
                digests: self.expect.digests,
            },
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Adversarial {
    #[serde(rename = "schema")]
    _schema: SchemaOne,
    says: Sentence,
    document: VectorDocument,
    root: Option<String>,
    slices: BTreeSet<SliceNumber>,
    expect: Rejected,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rejected {
    failure_classes: Vec<String>,
    mutation_failure_classes: Vec<String>,
}

impl Adversarial {
    fn vector(self) -> Result<Vector, Unfit> {
        let unreadable = |detail: &str| Err((FaultKind::Unreadable, detail.to_owned()));
        let Some(root) = self.root.filter(|root| !root.is_empty()) else {
            return Err((FaultKind::NoClass, "root names no class".to_owned()));
        };
        let lists = [
            &self.expect.failure_classes,
            &self.expect.mutation_failure_classes,
        ];
        if lists.iter().all(|list| list.is_empty()) {
            let detail = "expect names no class in either list";
            return Err((FaultKind::NoClass, detail.to_owned()));
        }
        if !lists.iter().all(|list| list.is_sorted_by(|a, b| a < b)) {
            return unreadable("the lists of expect are sorted, and each class appears once");
        }
        if self.slices.is_empty() {
            return unreadable("slices names none");
        }
        let [join, mutation] = lists.map(|list| {
            let classes = list.iter().map(|text| class("expect", text));
            classes.collect::<Result<BTreeSet<_>, _>>()
        });
        Ok(Vector {
            says: self.says.0,
            slices: numbers(&self.slices),
            case: Case::Adversarial {
                document: self.document,
                root: class("root", &root)?,
                join: join?,
                mutation: mutation?,
            },
        })
    }
}

fn class(field: &str, text: &str) -> Result<FailureClass, Unfit> {
    match text.parse::<FailureClass>() {
        Ok(class) if class.family() == Family::Typestate => Ok(class),
        _ => {
            let detail = format!("{field} names {text:?}, which is not a class of the typestate");
            Err((FaultKind::UnknownClass, detail))
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Invariance {
    #[serde(rename = "schema")]
    _schema: SchemaOne,
    says: Sentence,
    left: VectorDocument,
    right: VectorDocument,
}

impl Invariance {
    fn vector(self) -> Vector {
        Vector {
            says: self.says.0,
            slices: BTreeSet::new(),
            case: Case::Invariance {
                left: self.left,
                right: self.right,
            },
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    #[serde(rename = "schema")]
    _schema: SchemaOne,
    says: Sentence,
    document: VectorDocument,
    expect: Refused,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refused {
    error: Sentence,
}

impl Refusal {
    fn vector(self) -> Vector {
        Vector {
            says: self.says.0,
            slices: BTreeSet::new(),
            case: Case::Refusal {
                document: self.document,
                error: self.expect.error.0,
            },
        }
    }
}

/// The version of a file's form: 1.
#[derive(Debug, Deserialize)]
#[serde(try_from = "u64")]
pub(super) struct SchemaOne;

impl TryFrom<u64> for SchemaOne {
    type Error = String;

    fn try_from(schema: u64) -> Result<Self, String> {
        match schema {
            1 => Ok(Self),
            _ => Err(format!("schema must be 1, not {schema}")),
        }
    }
}

/// A text of one line that is not empty.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Sentence(pub(super) String);

impl TryFrom<String> for Sentence {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.trim().is_empty() || text.contains('\n') {
            Err(format!("{text:?} must be a text of one line"))
        } else {
            Ok(Self(text))
        }
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "u64")]
struct SliceNumber(u8);

impl TryFrom<u64> for SliceNumber {
    type Error = String;

    fn try_from(number: u64) -> Result<Self, String> {
        let known = SLICES
            .iter()
            .find(|slice| u64::from(slice.number) == number);
        known
            .map(|slice| Self(slice.number))
            .ok_or_else(|| format!("slices are 1 to {}, not {number}", SLICES.len()))
    }
}

fn numbers(slices: &BTreeSet<SliceNumber>) -> BTreeSet<u8> {
    slices.iter().map(|slice| slice.0).collect()
}
