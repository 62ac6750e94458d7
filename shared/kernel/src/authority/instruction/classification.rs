//! What kind of instruction it is, as far as the active policy knows it.

use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// Whether the active policy knows an instruction's type. An unknown one is
/// first-class: it is reported and recorded, and executed only where its
/// envelope allows that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Classification {
    /// The policy knows the type.
    Typed {
        /// The type.
        kind: String,
    },
    /// The policy does not know the type.
    Unknown {
        /// The reason of the classification.
        reason: UnknownReason,
    },
}

/// Why an instruction's type is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnknownReason {
    /// The envelope names no type.
    TypeMissing,
    /// The policy does not name it.
    TypeNotRecognized,
}

impl UnknownReason {
    /// Returns the text used in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TypeMissing => "type_missing",
            Self::TypeNotRecognized => "type_not_recognized",
        }
    }
}

impl fmt::Display for Classification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Typed { kind } => write!(f, "typed({kind})"),
            Self::Unknown { reason } => write!(f, "unknown({})", reason.as_str()),
        }
    }
}
