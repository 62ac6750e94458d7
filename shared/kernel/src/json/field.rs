//! Fields of a JSON document, read one by one.
//!
//! A reader takes what it knows and keeps the rest, so that a document
//! written again has every field that it had. What does not fit is refused
//! with the field's name and what would be right.

use crate::json::reference::RefSet;
use crate::json::stamp::Stamp;
use crate::json::strict;
use serde_json::{Map, Value};

/// How much of a wrong value an error shows.
const SHOWN_CHARS: usize = 80;

/// A document that does not have the shape that its kind demands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The bytes are not JSON.
    #[error("no JSON at line {line}, column {column}: {message}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What the parser says.
        message: String,
    },
    /// The value is JSON, but no object.
    #[error("`{field}` must be an object, found {found}")]
    NotAnObject {
        /// The path of the value, `document` for the whole.
        field: String,
        /// The beginning of what is there.
        found: String,
    },
    /// A required field is absent, null or blank.
    #[error("`{field}` is missing: it must be {expected}")]
    Missing {
        /// The field's path.
        field: String,
        /// What would be right.
        expected: String,
    },
    /// A field has a value that it must not have.
    #[error("`{field}` must be {expected}, found {found}")]
    Wrong {
        /// The field's path.
        field: String,
        /// What would be right.
        expected: String,
        /// The beginning of what is there.
        found: String,
    },
}

impl FieldError {
    fn syntax(error: serde_json::Error) -> Self {
        Self::Syntax {
            line: error.line(),
            column: error.column(),
            message: error.to_string(),
        }
    }

    /// Returns the path of the field at fault, `None` where the text is not
    /// JSON.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Syntax { .. } => None,
            Self::NotAnObject { field, .. }
            | Self::Missing { field, .. }
            | Self::Wrong { field, .. } => Some(field),
        }
    }
}

/// The fields of one object that are not read yet.
#[derive(Debug)]
pub(crate) struct ObjectFields {
    map: Map<String, Value>,
    path: String,
}

impl ObjectFields {
    /// Reads bytes as one JSON object.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, FieldError> {
        let value: Value = serde_json::from_slice(bytes).map_err(FieldError::syntax)?;
        Self::of(value, String::new())
    }

    /// Reads bytes as one JSON object in which no name appears twice.
    pub(crate) fn parse_strict(bytes: &[u8]) -> Result<Self, FieldError> {
        let value = strict::parse(bytes).map_err(FieldError::syntax)?;
        Self::of(value, String::new())
    }

    /// Takes a value that must be an object; `path` leads to it.
    pub(crate) fn of(value: Value, path: String) -> Result<Self, FieldError> {
        match value {
            Value::Object(map) => Ok(Self { map, path }),
            other => Err(FieldError::NotAnObject {
                field: if path.is_empty() {
                    "document".to_owned()
                } else {
                    path
                },
                found: shown(&other),
            }),
        }
    }

    /// Returns the path of a field.
    pub(crate) fn path(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// Takes a field's value; null reads as absent.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name).filter(|value| !value.is_null())
    }

    /// Takes a field where it has the expected shape and leaves it otherwise,
    /// to be kept with the unknown fields.
    pub(crate) fn take_if<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let found = self.map.get(name).and_then(read)?;
        self.map.remove(name);
        Some(found)
    }

    /// Returns what is left.
    pub(crate) fn rest(self) -> Map<String, Value> {
        self.map
    }

    pub(crate) fn missing(&self, name: &str, expected: &str) -> FieldError {
        FieldError::Missing {
            field: self.path(name),
            expected: expected.to_owned(),
        }
    }

    pub(crate) fn wrong(&self, name: &str, expected: &str, found: &Value) -> FieldError {
        FieldError::Wrong {
            field: self.path(name),
            expected: expected.to_owned(),
            found: shown(found),
        }
    }

    /// Takes `schema`, which must be the number 1.
    pub(crate) fn schema(&mut self) -> Result<(), FieldError> {
        match self.take("schema") {
            Some(value) if value.as_u64() == Some(1) => Ok(()),
            Some(value) => Err(self.wrong("schema", "1", &value)),
            None => Err(self.missing("schema", "1")),
        }
    }

    /// Takes a field that must have exactly this text.
    pub(crate) fn literal(&mut self, name: &str, text: &str) -> Result<(), FieldError> {
        match self.take(name) {
            Some(value) if value.as_str() == Some(text) => Ok(()),
            Some(value) => Err(self.wrong(name, &format!("\"{text}\""), &value)),
            None => Err(self.missing(name, &format!("\"{text}\""))),
        }
    }

    /// Takes an optional text, trimmed; blank reads as absent.
    pub(crate) fn text_opt(&mut self, name: &str) -> Result<Option<String>, FieldError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(some_text(&text)),
            Some(value) => Err(self.wrong(name, "text", &value)),
        }
    }

    /// Takes a required text, trimmed.
    pub(crate) fn text(&mut self, name: &str) -> Result<String, FieldError> {
        self.text_opt(name)?
            .ok_or_else(|| self.missing(name, "text that is not blank"))
    }

    /// Takes a text as it is; absent reads as empty.
    pub(crate) fn raw_text(&mut self, name: &str) -> Result<String, FieldError> {
        match self.take(name) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text),
            Some(value) => Err(self.wrong(name, "text", &value)),
        }
    }

    /// Takes an optional RFC 3339 time; blank reads as absent.
    pub(crate) fn time_opt(&mut self, name: &str) -> Result<Option<Stamp>, FieldError> {
        const EXPECTED: &str = "an RFC 3339 time such as 2026-03-05T10:00:00Z";
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let Some(text) = value.as_str() else {
            return Err(self.wrong(name, EXPECTED, &value));
        };
        if text.trim().is_empty() {
            return Ok(None);
        }
        match Stamp::parse(text) {
            Some(stamp) => Ok(Some(stamp)),
            None => Err(self.wrong(name, EXPECTED, &value)),
        }
    }

    /// Takes a required RFC 3339 time.
    pub(crate) fn time(&mut self, name: &str) -> Result<Stamp, FieldError> {
        self.time_opt(name)?
            .ok_or_else(|| self.missing(name, "an RFC 3339 time such as 2026-03-05T10:00:00Z"))
    }

    /// Takes a list; absent reads as empty.
    pub(crate) fn list(&mut self, name: &str) -> Result<Vec<Value>, FieldError> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items),
            Some(value) => Err(self.wrong(name, "a list", &value)),
        }
    }

    /// Takes a list of texts as they are; absent reads as empty.
    pub(crate) fn texts(&mut self, name: &str) -> Result<Vec<String>, FieldError> {
        let items = self.list(name)?;
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text),
                other => return Err(self.wrong(&format!("{name}[{index}]"), "text", &other)),
            }
        }
        Ok(texts)
    }

    /// Takes a list of refs as a set; absent reads as empty.
    pub(crate) fn refs(&mut self, name: &str) -> Result<RefSet, FieldError> {
        Ok(self.texts(name)?.into_iter().collect())
    }

    /// Takes an optional object.
    pub(crate) fn object_opt(&mut self, name: &str) -> Result<Option<Self>, FieldError> {
        let path = self.path(name);
        self.take(name)
            .map(|value| Self::of(value, path))
            .transpose()
    }

    /// Takes a required whole number that is not negative.
    pub(crate) fn number(&mut self, name: &str, expected: &str) -> Result<u64, FieldError> {
        match self.take(name) {
            None => Err(self.missing(name, expected)),
            Some(value) => value
                .as_u64()
                .ok_or_else(|| self.wrong(name, expected, &value)),
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
    fn errors_name_the_path_and_what_would_be_right() {
        let mut fields =
            ObjectFields::of(json!({"a": {"b": 7}, "c": ["x", 1]}), String::new()).unwrap();
        let mut inner = fields.object_opt("a").unwrap().unwrap();
        assert_eq!(
            inner.text("b").unwrap_err().to_string(),
            "`a.b` must be text, found 7"
        );
        assert_eq!(
            fields.refs("c").unwrap_err().to_string(),
            "`c[1]` must be text, found 1"
        );
        assert_eq!(
            fields.literal("d", "x").unwrap_err().to_string(),
            "`d` is missing: it must be \"x\""
        );
    }

    #[test]
    fn a_long_or_hostile_value_is_shown_short_and_plain() {
        let found = shown(&json!(format!("\u{9b}31m{}", "x".repeat(500))));
        assert!(found.chars().count() <= SHOWN_CHARS + 1);
        assert!(!found.chars().any(char::is_control));
    }
}
