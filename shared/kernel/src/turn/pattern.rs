//! How a turn is arranged: a word that the documents list, or another one.

use super::block::always_normal;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// How the turn is arranged (`HARNESS-TYPESTATE 3.1`,
/// `TOOL-CALLING-HARNESS-TYPESTATE 4.1`).
///
/// The first document lists no words, so a word that the second one does not list
/// is read and enters the digest as it is; it changes nothing but where a policy
/// expects it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ExecutionPattern {
    /// One call of the model.
    #[default]
    Single,
    /// Calls one after another.
    Chain,
    /// One call that picks the next.
    Route,
    /// Branches side by side.
    Parallel,
    /// An orchestrator that hands work to workers.
    OrchestratorWorkers,
    /// One that does and one that judges, in a loop.
    EvaluatorOptimizer,
    /// A word that is not listed, trimmed and lower-cased.
    Other(Box<str>),
}

/// The words that are listed, in the order of the specification.
const LISTED: [(&str, ExecutionPattern); 6] = [
    ("single", ExecutionPattern::Single),
    ("chain", ExecutionPattern::Chain),
    ("route", ExecutionPattern::Route),
    ("parallel", ExecutionPattern::Parallel),
    (
        "orchestrator_workers",
        ExecutionPattern::OrchestratorWorkers,
    ),
    ("evaluator_optimizer", ExecutionPattern::EvaluatorOptimizer),
];

impl ExecutionPattern {
    /// Returns the word as it is stored in the normal form.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Other(word) => word,
            listed => {
                let mut words = LISTED.iter();
                words
                    .find(|(_, pattern)| pattern == listed)
                    .map_or("", |(word, _)| word)
            }
        }
    }

    /// Returns whether the pattern splits the turn up (`HARNESS-TYPESTATE 5`).
    pub(crate) const fn decomposes(&self) -> bool {
        matches!(self, Self::Parallel | Self::OrchestratorWorkers)
    }

    /// Returns whether a document lists the word.
    pub(crate) const fn is_listed(&self) -> bool {
        !matches!(self, Self::Other(_))
    }
}

struct Read;

impl Visitor<'_> for Read {
    type Value = ExecutionPattern;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = LISTED.map(|(word, _)| word);
        write!(f, "one of {}", words.join(", "))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ExecutionPattern, E> {
        let word = text.trim().to_ascii_lowercase();
        if word.is_empty() {
            return Err(E::invalid_value(Unexpected::Str(text), &self));
        }
        let listed = LISTED.into_iter().find(|(name, _)| *name == word);
        Ok(listed.map_or_else(
            || ExecutionPattern::Other(word.into()),
            |(_, pattern)| pattern,
        ))
    }
}

impl<'de> Deserialize<'de> for ExecutionPattern {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(Read)
    }
}

impl Serialize for ExecutionPattern {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

always_normal!(ExecutionPattern);

impl JsonSchema for ExecutionPattern {
    fn schema_name() -> Cow<'static, str> {
        "ExecutionPattern".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words = LISTED.map(|(word, _)| word);
        json_schema!({"type": "string", "examples": words})
    }
}
