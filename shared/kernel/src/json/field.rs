//! What is wrong with a document: the field's name and what would be right.

use serde_json::Value;

/// How much of a wrong value an error shows.
const SHOWN_CHARS: usize = 80;

/// A document that does not have the shape that its kind demands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The bytes are not JSON.
    #[error("invalid JSON at line {line}, column {column}: {message}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The message of the parser.
        message: String,
    },
    /// A required field is absent, null or blank.
    #[error("`{field}` is missing: it must be {expected}")]
    Missing {
        /// The field's path.
        field: String,
        /// The value that was expected.
        expected: String,
    },
    /// A field that the document does not have.
    #[error("unknown field `{field}`")]
    Unknown {
        /// The field's path.
        field: String,
    },
    /// A field has a value that it must not have.
    #[error("`{field}` must be {expected}, found {found}")]
    Wrong {
        /// The field's path.
        field: String,
        /// The value that was expected.
        expected: String,
        /// The beginning of what is there.
        found: String,
    },
}

impl FieldError {
    pub(crate) fn syntax(error: serde_json::Error) -> Self {
        Self::Syntax {
            line: error.line(),
            column: error.column(),
            message: error.to_string(),
        }
    }

    pub(crate) fn missing(field: &str, expected: &str) -> Self {
        Self::Missing {
            field: field.to_owned(),
            expected: expected.to_owned(),
        }
    }

    pub(crate) fn wrong(field: &str, expected: &str, found: &Value) -> Self {
        Self::Wrong {
            field: field.to_owned(),
            expected: expected.to_owned(),
            found: shown(found),
        }
    }

    /// Returns the path of the field at fault, `None` where the text is not
    /// JSON.
    pub(crate) fn field(&self) -> Option<&str> {
        match self {
            Self::Syntax { .. } => None,
            Self::Missing { field, .. } | Self::Unknown { field } | Self::Wrong { field, .. } => {
                Some(field)
            }
        }
    }
}

/// Returns trimmed text, `None` where nothing is left.
pub(crate) fn some_text(text: &str) -> Option<String> {
    let trimmed = text.trim();
    (!trimmed.is_empty()).then(|| trimmed.to_owned())
}

/// Returns the beginning of a value, fit for a terminal.
pub(crate) fn shown(value: &Value) -> String {
    let text = value.to_string();
    let mut shown: String = text
        .chars()
        .take(SHOWN_CHARS)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('\u{2026}');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_long_or_hostile_value_is_shown_short_and_plain() {
        let found = shown(&json!(format!("\u{9b}31m{}", "x".repeat(500))));
        assert!(found.chars().count() <= SHOWN_CHARS + 1);
        assert!(!found.chars().any(char::is_control));
    }
}
