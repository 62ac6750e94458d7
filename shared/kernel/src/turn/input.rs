//! The wire input of `premath harness-join-check` (`contracts.md` 2).

use super::block::field;
use super::constraints::Constraints;
use super::error::EvidenceError;
use super::evidence::Evidence;
use crate::json::path::Path;
use crate::json::read::{Unknown, read};
use crate::json::strict;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// A turn's evidence and what it is held to.
///
/// Serialises to the very document that `premath harness-join-check --input`
/// reads, so that a worker's turn can be checked again by anybody.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinCheckInput {
    /// What the turn left behind.
    pub evidence: Evidence,
    /// What it is held to.
    #[serde(flatten)]
    pub constraints: Constraints,
}

impl JoinCheckInput {
    /// Holds evidence to nothing but the contract.
    pub fn new(evidence: Evidence) -> Self {
        Self {
            evidence,
            constraints: Constraints::default(),
        }
    }
}

/// The most values in an input that a step wrote. With the fields of usual calls they
/// are about 29,000 calls.
const VALUES_MAX: usize = 1 << 19;

/// An input that was read, and its unknown fields.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedInput {
    /// The input.
    pub input: JoinCheckInput,
    /// Paths of ignored fields, rows without their number, as in
    /// `evidence.toolRequests[].colour`.
    pub unknown_fields: BTreeSet<String>,
}

impl ParsedInput {
    /// Reads an input from the bytes of a JSON document.
    ///
    /// # Errors
    ///
    /// Bytes that are not a JSON document, nesting deeper than `serde_json`
    /// follows, a key that appears twice, and whatever
    /// [`from_value`](Self::from_value) refuses.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, EvidenceError> {
        Self::from_value(Self::document(bytes)?)
    }

    /// Reads an input that a step wrote: what it takes of memory is bounded.
    ///
    /// # Errors
    ///
    /// Those of [`from_slice`](Self::from_slice), and more than 524,288 values.
    pub fn from_step(bytes: &[u8]) -> Result<Self, EvidenceError> {
        let document = strict::parse_at_most(bytes, VALUES_MAX);
        Self::from_value(document.map_err(EvidenceError::NotJson)?)
    }

    /// Parses the bytes of a JSON document, and reads no further.
    ///
    /// # Errors
    ///
    /// Bytes that are not a JSON document, nesting deeper than `serde_json`
    /// follows, and a key that appears twice.
    pub fn document(bytes: &[u8]) -> Result<Value, EvidenceError> {
        strict::parse(bytes).map_err(EvidenceError::NotJson)
    }

    /// Reads an input from JSON.
    ///
    /// # Errors
    ///
    /// A missing field, a wrong type, null where the contract does not admit
    /// it, or a word outside its set; with the path of the field.
    pub fn from_value(mut value: Value) -> Result<Self, EvidenceError> {
        let unknown = Unknown::default();
        let root = Path::Root;
        let fields = value.as_object_mut();
        let evidence = fields.and_then(|fields| fields.remove("evidence"));
        // The constraint blocks are next to the evidence.
        let constraints: Constraints = read(Some(value), &root, &unknown)?;
        let evidence = read(evidence, &root.field("evidence"), &unknown)?;
        Ok(Self {
            input: JoinCheckInput {
                evidence,
                constraints: field(constraints, &root)?,
            },
            unknown_fields: unknown.into_paths(),
        })
    }
}
