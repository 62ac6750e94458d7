//! The instruction policy artifact, bound by its digest.

use super::BATCH_KIND;
use super::classification::{Classification, UnknownReason};
use crate::failure::FailureClass;
use crate::json::canonical;
use crate::json::document::Document;
use crate::json::field::FieldError;
use crate::json::read::{some_words, text, words};
use schemars::{JsonSchema, Schema, json_schema};
use serde::Deserialize;
use std::collections::BTreeSet;

/// The kind of an instruction policy artifact.
pub(crate) const INSTRUCTION_POLICY_KIND: &str = "ci.instruction.policy.v1";

/// Where a repository's own policy lies, below its root.
pub const INSTRUCTION_POLICY_FILE: &str = "policies/control/harness-instruction-policy-v1.json";

/// The policy of a repository that has none of its own.
const EMBEDDED: &str = include_str!("../instruction_policy_default.json");

/// The types that are known where a policy does not say which.
const USUAL_TYPES: [&str; 4] = [
    "ci.gate.check",
    "ci.gate.pre_commit",
    "ci.gate.pre_push",
    BATCH_KIND,
];

/// A valid instruction policy whose digest is that of its content.
///
/// Its artifact may have more fields; they are skipped, but are part of the
/// digest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = add_head)]
pub struct InstructionPolicy {
    /// The policy's id.
    #[serde(deserialize_with = "text")]
    #[schemars(regex(pattern = r"\S"))]
    policy_id: String,
    /// `pol1_` and the digest of the canonical policy without this field.
    #[serde(deserialize_with = "text")]
    #[schemars(regex(pattern = r"^pol1_[0-9a-f]{64}$"))]
    policy_digest: String,
    /// The checks that an instruction may request.
    #[serde(deserialize_with = "some_words")]
    #[schemars(inner(regex(pattern = r"\S")))]
    allowed_checks: BTreeSet<String>,
    /// The normalisers that evidence may be bound to.
    #[serde(deserialize_with = "some_words")]
    #[schemars(inner(regex(pattern = r"\S")))]
    allowed_normalizers: BTreeSet<String>,
    /// The types that are known; the usual ones where there is no list.
    #[serde(deserialize_with = "words")]
    #[schemars(default, inner(regex(pattern = r"\S")))]
    instruction_types: BTreeSet<String>,
}

/// An instruction policy that stops the run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstructionPolicyError {
    /// It does not have the shape of a policy; the source names the field.
    #[error("cannot read the instruction policy")]
    Shape(#[from] FieldError),
    /// The digest is not that of the content.
    #[error("wrong policyDigest of the instruction policy: expected `{expected}`, found `{found}`")]
    DigestMismatch {
        /// The digest of the content.
        expected: String,
        /// The digest that was found.
        found: String,
    },
}

impl InstructionPolicyError {
    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        match self {
            Self::Shape(_) => FailureClass::InstructionPolicyInvalidShape,
            Self::DigestMismatch { .. } => FailureClass::InstructionPolicyDigestMismatch,
        }
    }
}

impl InstructionPolicy {
    /// Reads a policy artifact.
    ///
    /// # Errors
    ///
    /// The first field that does not fit, and last the digest.
    pub fn parse(bytes: &[u8]) -> Result<Self, InstructionPolicyError> {
        let document = Document::parse_strict(bytes)?;
        let expected = canonical::policy_digest(document.fields());
        let document = document.of_kind("policyKind", INSTRUCTION_POLICY_KIND)?;
        let (mut policy, _) = document.read::<Self>()?;
        if policy.instruction_types.is_empty() {
            policy.instruction_types = USUAL_TYPES.iter().map(ToString::to_string).collect();
        }
        if policy.policy_digest != expected {
            return Err(InstructionPolicyError::DigestMismatch {
                expected,
                found: policy.policy_digest,
            });
        }
        Ok(policy)
    }

    /// Returns the policy of a repository that has none of its own.
    ///
    /// # Errors
    ///
    /// None in a build that passed its tests.
    pub fn embedded() -> Result<Self, InstructionPolicyError> {
        Self::parse(EMBEDDED.as_bytes())
    }

    /// Returns the embedded policy's artifact, for a user to start from.
    pub const fn embedded_text() -> &'static str {
        EMBEDDED
    }

    /// Returns the digest that envelopes and turns are bound to.
    pub fn policy_digest(&self) -> &str {
        &self.policy_digest
    }

    /// Returns the checks that an instruction may request.
    pub(crate) const fn allowed_checks(&self) -> &BTreeSet<String> {
        &self.allowed_checks
    }

    /// Returns the normalisers that evidence may be bound to.
    pub const fn allowed_normalizers(&self) -> &BTreeSet<String> {
        &self.allowed_normalizers
    }

    /// Classifies an instruction by its type.
    pub fn classify(&self, instruction_type: Option<&str>) -> Classification {
        match instruction_type {
            None => Classification::Unknown {
                reason: UnknownReason::TypeMissing,
            },
            Some(kind) if self.instruction_types.contains(kind) => Classification::Typed {
                kind: kind.to_owned(),
            },
            Some(_) => Classification::Unknown {
                reason: UnknownReason::TypeNotRecognized,
            },
        }
    }
}

/// Adds what an artifact has and a policy that was read has no field for.
fn add_head(schema: &mut Schema) {
    crate::json::schema::require(schema, "schema", crate::json::schema::version());
    crate::json::schema::require(
        schema,
        "policyKind",
        json_schema!({"type": "string", "const": INSTRUCTION_POLICY_KIND}),
    );
}
