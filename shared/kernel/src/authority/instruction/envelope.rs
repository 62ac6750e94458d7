//! The envelope: intent, scope and policy of an instruction.

use crate::authority::claim::ClaimSet;
use crate::failure::FailureClass;
use crate::issue::IssueScope;
use crate::json::canonical;
use crate::json::document::Document;
use crate::json::field::{FieldError, shown, some_text};
use crate::json::read::{missing, or_default, some_words, text, unless_blank, words};
use crate::json::reference;
use crate::json::stamp::compact;
use crate::json::token::encode_branch;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeSet;

/// An instruction envelope, `instructions/<timestamp>-<id>.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstructionEnvelope {
    #[serde(skip_deserializing)]
    #[schemars(!skip_deserializing, schema_with = "crate::json::schema::one")]
    schema: u8,
    /// What it is for, in a person's words.
    #[serde(deserialize_with = "text")]
    #[schemars(regex(pattern = r"\S"))]
    pub intent: String,
    /// What it is about, and what it covers.
    #[serde(deserialize_with = "scope")]
    pub scope: InstructionScope,
    /// Its type, as the active policy knows it; unknown where absent.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub instruction_type: Option<String>,
    /// What is done about an unknown type.
    #[serde(deserialize_with = "or_default")]
    #[schemars(default)]
    pub typing_policy: TypingPolicy,
    /// The normaliser that evidence must be bound to.
    #[serde(deserialize_with = "text")]
    #[schemars(regex(pattern = r"\S"))]
    pub normalizer_id: String,
    /// The instruction policy that it was written under.
    #[serde(deserialize_with = "text")]
    #[schemars(regex(pattern = r"\S"))]
    pub policy_digest: String,
    /// The changes that it claims.
    #[serde(deserialize_with = "words")]
    #[schemars(default, inner(regex(pattern = r"\S")))]
    pub capability_claims: BTreeSet<String>,
    /// The checks that it asks for, each one that the policy allows; the harness
    /// acts on `verify` and `startup`, and under no envelope that asks for another.
    #[serde(deserialize_with = "some_words")]
    #[schemars(length(min = 1), inner(regex(pattern = r"\S")))]
    pub requested_checks: BTreeSet<String>,
}

/// What an instruction is about, for people and for who reads the record, and
/// what it covers: an issue or a file that a list which is given does not name
/// is out of scope. A field that is not known is refused, because it may be
/// meant to restrict something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstructionScope {
    /// The kind of thing, as in `repo`.
    #[serde(deserialize_with = "text")]
    #[schemars(regex(pattern = r"\S"))]
    pub kind: String,
    /// The name of the thing that the scope covers.
    #[serde(deserialize_with = "text")]
    #[schemars(regex(pattern = r"\S"))]
    pub target: String,
    /// The ids of the issues that it covers; all where absent.
    #[serde(
        deserialize_with = "words_if_given",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(default, length(min = 1), inner(regex(pattern = r"\S")))]
    pub issues: Option<BTreeSet<String>>,
    /// Labels, of which an issue must have one; all issues where absent.
    #[serde(
        deserialize_with = "words_if_given",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(default, length(min = 1), inner(regex(pattern = r"\S")))]
    pub labels: Option<BTreeSet<String>>,
    /// The types of the issues that it covers; all where absent.
    #[serde(
        deserialize_with = "words_if_given",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(default, length(min = 1), inner(regex(pattern = r"\S")))]
    pub types: Option<BTreeSet<String>>,
    /// Patterns of the files that work may change, from the root of the
    /// repository; all files where absent.
    #[serde(
        deserialize_with = "words_if_given",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(default, length(min = 1), inner(regex(pattern = r"\S")))]
    pub paths: Option<BTreeSet<String>>,
}

impl InstructionScope {
    /// Returns which issues it covers.
    pub(crate) fn of_issues(&self) -> IssueScope {
        IssueScope {
            issues: self.issues.clone(),
            labels: self.labels.clone(),
            types: self.types.clone(),
        }
    }
}

/// Reads a list of at least one text, where it is given.
fn words_if_given<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeSet<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Given {
        #[serde(deserialize_with = "some_words")]
        words: BTreeSet<String>,
    }
    let given: Option<Given> = Option::deserialize(deserializer)?;
    Ok(given.map(|given| given.words))
}

/// What is done about an instruction of unknown type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TypingPolicy {
    /// Whether it is executed all the same.
    #[serde(deserialize_with = "or_default")]
    #[schemars(default)]
    pub allow_unknown: bool,
}

/// An envelope with its identity: the name of its file and its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    id: String,
    digest: String,
    envelope: InstructionEnvelope,
}

/// A file that is not an instruction envelope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Its name is not one.
    #[error(
        "invalid file name `{found}` of an instruction: expected <timestamp>-<id>.json, for \
        example 20260305T100000Z-night.json"
    )]
    Name {
        /// The name.
        found: String,
    },
    /// It does not have the shape of an envelope; the source names the field.
    #[error("cannot read the instruction")]
    Shape(#[from] FieldError),
}

impl EnvelopeError {
    /// Returns the failure class, one for each field.
    pub fn class(&self) -> FailureClass {
        let error = match self {
            Self::Name { .. } => return FailureClass::InstructionFilenameInvalid,
            Self::Shape(error) => error,
        };
        let Some(field) = error.field() else {
            return FailureClass::InstructionEnvelopeInvalidJson;
        };
        match field.split(['.', '[']).next().unwrap_or(field) {
            "schema" => FailureClass::InstructionInvalidSchema,
            "intent" => FailureClass::InstructionInvalidIntent,
            "scope" if field == "scope" && matches!(error, FieldError::Missing { .. }) => {
                FailureClass::InstructionScopeMissing
            }
            "scope" => FailureClass::InstructionScopeInvalid,
            "instructionType" => FailureClass::InstructionTypeInvalid,
            "typingPolicy" => FailureClass::InstructionTypingPolicyInvalid,
            "normalizerId" => FailureClass::InstructionInvalidNormalizer,
            "policyDigest" => FailureClass::InstructionInvalidPolicyDigest,
            "capabilityClaims" => FailureClass::InstructionCapabilityClaimsInvalid,
            "requestedChecks" => FailureClass::InstructionRequestedChecksInvalid,
            _ => FailureClass::InstructionEnvelopeInvalidShape,
        }
    }
}

impl Instruction {
    /// Reads an envelope from its file's name, without folders, and its bytes.
    ///
    /// Fields that this build does not know are skipped, but are part of the
    /// digest; those of the scope are refused. A name that appears twice in an object is refused: two readers
    /// would see two instructions.
    ///
    /// # Errors
    ///
    /// The first thing that does not fit, and what would be right.
    pub fn parse(file_name: &str, bytes: &[u8]) -> Result<Self, EnvelopeError> {
        let id = id_of(file_name)?;
        let document = Document::parse_strict(bytes)?;
        let digest = format!("instr1_{}", canonical::ref_digest(document.fields()));
        let (envelope, unknown) = document.versioned()?.read()?;
        let mut unknown = unknown.into_paths().into_iter();
        if let Some(field) = unknown.find(|field| field.starts_with("scope.")) {
            return Err(FieldError::Unknown { field }.into());
        }
        let envelope = InstructionEnvelope {
            schema: 1,
            ..envelope
        };
        Ok(Self {
            id,
            digest,
            envelope,
        })
    }

    /// Returns the id: the file's name without `.json`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns `instr1_<H of the whole document>`.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns `instruction://<id>/<digest>`: what sessions, rows and witnesses
    /// name it by.
    pub fn reference(&self) -> String {
        reference::instruction(&self.id, &self.digest)
    }

    /// Returns the parts of the envelope.
    pub const fn envelope(&self) -> &InstructionEnvelope {
        &self.envelope
    }

    /// Returns the claims that it makes.
    pub fn claims(&self) -> ClaimSet {
        ClaimSet::named(&self.envelope.capability_claims)
    }
}

impl InstructionEnvelope {
    /// Makes an envelope of a known type that claims nothing yet.
    pub fn new(
        intent: impl Into<String>,
        scope: InstructionScope,
        instruction_type: impl Into<String>,
        normalizer_id: impl Into<String>,
        policy_digest: impl Into<String>,
    ) -> Self {
        Self {
            schema: 1,
            intent: intent.into(),
            scope,
            instruction_type: Some(instruction_type.into()),
            typing_policy: TypingPolicy::default(),
            normalizer_id: normalizer_id.into(),
            policy_digest: policy_digest.into(),
            capability_claims: BTreeSet::new(),
            requested_checks: BTreeSet::new(),
        }
    }
}

/// Returns `<timestamp>-<id>.json`, the id's odd characters encoded.
pub fn file_name(id: &str, now: jiff::Timestamp) -> String {
    format!("{}-{}.json", compact(now), encode_branch(id.trim()))
}

fn id_of(file_name: &str) -> Result<String, EnvelopeError> {
    let parts = file_name
        .strip_suffix(".json")
        .and_then(|stem| Some((stem, stem.split_once('-')?)));
    match parts {
        Some((stem, (time, id)))
            if time.starts_with(|c: char| c.is_ascii_digit())
                && time
                    .bytes()
                    .all(|b| b.is_ascii_digit() || matches!(b, b'T' | b'Z'))
                && some_text(id).is_some() =>
        {
            Ok(stem.to_owned())
        }
        _ => Err(EnvelopeError::Name {
            found: shown(&file_name.into()).trim_matches('"').to_owned(),
        }),
    }
}

/// Reads the scope, which has a class of its own where it is missing.
fn scope<'de, D: Deserializer<'de>>(deserializer: D) -> Result<InstructionScope, D::Error> {
    let scope: Option<InstructionScope> = Option::deserialize(deserializer)?;
    scope.ok_or_else(|| missing("an object with kind and target"))
}
