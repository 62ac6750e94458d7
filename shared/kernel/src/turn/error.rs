//! Evidence that cannot be read.

use crate::failure::FailureClass;
use crate::json::path::Path;
use crate::json::read::ReadFault;

/// Evidence that cannot be read, and so cannot be judged (`contracts.md` 2).
///
/// This is an error of the input, never a verdict: a command ends with exit
/// code 2 on it.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The bytes are not one JSON document, nest too deep, or name a field twice.
    #[error("the input is not one readable JSON document")]
    NotJson(#[source] serde_json::Error),
    /// A field is missing, has the wrong type, or holds a value that is not admitted.
    #[error("{path}: {expected}")]
    Field {
        /// The path, as in `evidence.toolRequests[3].toolName`.
        path: String,
        /// What would be right there.
        expected: String,
    },
}

impl EvidenceError {
    /// Returns the failure class for a turn whose own evidence is unreadable.
    pub const fn class(&self) -> FailureClass {
        match self {
            Self::NotJson(_) | Self::Field { .. } => FailureClass::ToolSchemaInvalid,
        }
    }

    /// Returns the place of the fault, where the bytes could be read at all.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::NotJson(_) => None,
            Self::Field { path, .. } => Some(path),
        }
    }
}

impl From<ReadFault> for EvidenceError {
    fn from(fault: ReadFault) -> Self {
        let (path, expected) = fault.into_parts();
        Self::Field {
            path: if path.is_empty() {
                "input".to_owned()
            } else {
                path
            },
            expected,
        }
    }
}

impl Path<'_> {
    /// Describes what would be right at this place of a turn.
    pub(super) fn error(&self, expected: impl Into<String>) -> EvidenceError {
        EvidenceError::Field {
            path: self.to_string(),
            expected: expected.into(),
        }
    }
}
