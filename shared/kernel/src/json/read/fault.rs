//! What is wrong with a document, and where.

use super::{LIST, OBJECT, TEXT};
use crate::json::field::{FieldError, shown};
use crate::json::path::Path;
use crate::json::strict::excerpt;
use serde::de::{Error, Expected, Unexpected};
use serde_json::{Map, Value};
use std::fmt;

/// What is wrong, and where.
#[derive(Debug)]
pub(crate) struct ReadFault {
    path: Option<String>,
    expected: String,
    found: Found,
}

/// What there is in place of what was expected.
#[derive(Debug)]
pub(super) enum Found {
    /// The value is missing.
    Missing,
    /// A value of another type.
    Type(Value),
    /// A value of the right type that is not admitted.
    Value(Value),
    /// The expected text names what was found.
    Said,
}

impl ReadFault {
    pub(super) fn new(expected: impl fmt::Display, found: Found) -> Self {
        Self {
            path: None,
            expected: expected.to_string(),
            found,
        }
    }

    /// Sets the place, where none is set: the innermost sets it first.
    pub(super) fn at(mut self, path: &Path<'_>) -> Self {
        self.path.get_or_insert_with(|| path.to_string());
        self
    }

    /// Returns the path and what is wrong there.
    pub(crate) fn into_parts(self) -> (String, String) {
        let Self {
            path,
            expected,
            found,
        } = self;
        let text = match found {
            Found::Missing => format!("is missing: must be {expected}"),
            Found::Type(value) => format!("must be {expected}, not {}", kind(&value)),
            Found::Value(Value::String(text)) => {
                format!("must be {expected}, not {}", excerpt(&text))
            }
            Found::Value(value) => format!("must be {expected}, not {value}"),
            Found::Said => expected,
        };
        (path.unwrap_or_default(), text)
    }
}

impl From<ReadFault> for FieldError {
    fn from(fault: ReadFault) -> Self {
        let field = match fault.path {
            Some(path) if !path.is_empty() => path,
            _ => "document".to_owned(),
        };
        let expected = fault.expected;
        match fault.found {
            Found::Missing => Self::Missing { field, expected },
            Found::Type(found) | Found::Value(found) => Self::Wrong {
                field,
                expected,
                found: shown(&found),
            },
            Found::Said => Self::Wrong {
                field,
                expected,
                found: "another value".to_owned(),
            },
        }
    }
}

impl fmt::Display for ReadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expected)
    }
}

impl std::error::Error for ReadFault {}

impl Error for ReadFault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message, Found::Said)
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = value_of(found).map_or(Found::Missing, Found::Type);
        Self::new(expected_text(expected), found)
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = value_of(found).map_or(Found::Missing, Found::Value);
        Self::new(expected_text(expected), found)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(one_of(expected), Found::Value(variant.into()))
    }
}

/// Returns what serde found, without its content where it is a list or an
/// object; null is nothing.
fn value_of(found: Unexpected<'_>) -> Option<Value> {
    Some(match found {
        Unexpected::Bool(flag) => flag.into(),
        Unexpected::Unsigned(number) => number.into(),
        Unexpected::Signed(number) => number.into(),
        Unexpected::Float(number) => number.into(),
        Unexpected::Str(text) => text.into(),
        Unexpected::Seq => Value::Array(Vec::new()),
        Unexpected::Map => Value::Object(Map::new()),
        _ => return None,
    })
}

pub(super) fn one_of(words: &[&str]) -> String {
    format!("one of {}", words.join(", "))
}

/// `serde_json` calls its numbers JSON numbers, as if there were others here.
pub(super) fn expected_text(expected: &dyn Expected) -> String {
    expected.to_string().replace("a JSON number", "a number")
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => TEXT,
        Value::Array(_) => LIST,
        Value::Object(_) => OBJECT,
    }
}
