//! The documents that vectors refer to.

use super::files::{Files, base_path};
use json_patch::PatchOperation;
use premath_kernel::turn::{EvidenceError, ParsedInput};
use serde::Deserialize;
use serde_json::Value;

/// How a vector gives an input of the join check.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Wire")]
pub(super) enum VectorDocument {
    /// By a base and what is done to it.
    Patched {
        base: String,
        patch: Vec<PatchOperation>,
    },
    /// The bytes of a document, as text.
    Text(String),
}

/// An input of the join check.
#[derive(Debug, PartialEq)]
pub(super) enum Input {
    Value(Value),
    Text(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    base: Option<String>,
    patch: Option<Vec<Value>>,
    text: Option<String>,
}

impl TryFrom<Wire> for VectorDocument {
    type Error = String;

    fn try_from(wire: Wire) -> Result<Self, String> {
        match wire {
            Wire {
                base: None,
                patch: None,
                text: Some(text),
            } => Ok(Self::Text(text)),
            Wire {
                base: Some(base),
                patch,
                text: None,
            } => {
                let rows = patch.unwrap_or_default().into_iter().enumerate();
                let patch = rows.map(|(index, row)| operation(index, row));
                Ok(Self::Patched {
                    base,
                    patch: patch.collect::<Result<_, _>>()?,
                })
            }
            _ => Err("a document has base and patch, or text alone".to_owned()),
        }
    }
}

/// Reads an operation, and refuses the fields that RFC 6902 would ignore.
fn operation(index: usize, row: Value) -> Result<PatchOperation, String> {
    let failed = |detail: &dyn std::fmt::Display| format!("patch[{index}]: {detail}");
    let operation = PatchOperation::deserialize(&row).map_err(|error| failed(&error))?;
    let known = premath_kernel::json::canonical::value_of(&operation);
    let unknown = row
        .as_object()
        .and_then(|fields| fields.keys().find(|key| known.get(key).is_none()));
    match unknown {
        Some(key) => Err(failed(&format_args!(
            "unknown field `{key}` of an operation"
        ))),
        None => Ok(operation),
    }
}

impl VectorDocument {
    /// Returns the base that it starts from, where it starts from one.
    pub(super) fn base(&self) -> Option<&str> {
        match self {
            Self::Patched { base, .. } => Some(base),
            Self::Text(_) => None,
        }
    }

    /// Makes the input.
    ///
    /// # Errors
    ///
    /// A base that is not there or is not JSON, and a patch that does not
    /// apply.
    pub(super) fn input(&self, files: &Files) -> Result<Input, String> {
        match self {
            Self::Text(text) => Ok(Input::Text(text.clone())),
            Self::Patched { base, patch } => {
                let path = base_path(base);
                let bytes = files
                    .get(&path)
                    .ok_or_else(|| format!("there is no {path}"))?;
                let mut value = serde_json::from_slice(bytes)
                    .map_err(|error| format!("{path} is not JSON: {error}"))?;
                json_patch::patch(&mut value, patch)
                    .map_err(|error| format!("the patch of {path} does not apply: {error}"))?;
                Ok(Input::Value(value))
            }
        }
    }
}

impl Input {
    /// Returns the bytes that a command would read.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Value(value) => {
                premath_kernel::json::canonical::canonical_value(&value).into_bytes()
            }
            Self::Text(text) => text.into_bytes(),
        }
    }

    /// Reads the input as the join check does.
    pub(super) fn parse(&self) -> Result<ParsedInput, EvidenceError> {
        match self {
            Self::Value(value) => ParsedInput::from_value(value.clone()),
            Self::Text(text) => ParsedInput::from_slice(text.as_bytes()),
        }
    }
}
