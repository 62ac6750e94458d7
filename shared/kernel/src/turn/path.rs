//! A place in the input, and what is wrong there.

use crate::failure::FailureClass;
use std::fmt;

/// A place in the input document, built on the stack while it is read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Row(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(super) fn field(&'a self, name: &'a str) -> Self {
        Self::Field(self, name)
    }

    pub(super) fn row(&'a self, index: usize) -> Self {
        Self::Row(self, index)
    }

    pub(super) fn error(&self, expected: impl Into<String>) -> EvidenceError {
        EvidenceError::Field {
            path: self.to_string(),
            expected: expected.into(),
        }
    }

    /// Returns the path without row numbers: one text for all rows of a list,
    /// so that a field unknown in each of many rows is named once.
    pub(super) fn any_row(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Field(Self::Root, name) => field_name(name),
            Self::Field(parent, name) => format!("{}.{}", parent.any_row(), field_name(name)),
            Self::Row(parent, _) => format!("{}[]", parent.any_row()),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("input"),
            Self::Field(Self::Root, name) => f.write_str(&field_name(name)),
            Self::Field(parent, name) => write!(f, "{parent}.{}", field_name(name)),
            Self::Row(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// Returns a name as it is where it is plain, and quoted with its control
/// characters escaped where it is not: names come from outside.
fn field_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("{name:?}")
    }
}

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
        /// Where, as in `evidence.toolRequests[3].toolName`.
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
