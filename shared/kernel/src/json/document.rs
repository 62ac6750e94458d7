//! Documents of the harness.
//!
//! A type's fields are read by serde, and the rest is kept, so that a document
//! written again has every field that it had.

use super::field::FieldError;
use super::path::Path;
use super::read::{Unknown, read};
use super::strict;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A document that was parsed, and is read by the fields of a struct.
#[derive(Debug)]
pub(crate) struct Document(Map<String, Value>);

impl Document {
    /// Parses bytes as one JSON object.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, FieldError> {
        Self::of(serde_json::from_slice(bytes).map_err(FieldError::syntax)?)
    }

    /// Parses bytes as one JSON object in which no name appears twice.
    pub(crate) fn parse_strict(bytes: &[u8]) -> Result<Self, FieldError> {
        Self::of(strict::parse(bytes).map_err(FieldError::syntax)?)
    }

    fn of(value: Value) -> Result<Self, FieldError> {
        match value {
            Value::Object(fields) => Ok(Self(fields)),
            other => Err(FieldError::wrong("document", "an object", &other)),
        }
    }

    /// Returns the fields.
    pub(crate) const fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Takes `schema`, which must be the number 1.
    pub(crate) fn versioned(mut self) -> Result<Self, FieldError> {
        self.literal("schema", &Value::from(1))?;
        Ok(self)
    }

    /// Takes `schema`, which must be the number 1, and the kind, which must be
    /// this one.
    pub(crate) fn of_kind(self, name: &str, kind: &str) -> Result<Self, FieldError> {
        let mut document = self.versioned()?;
        document.literal(name, &Value::from(kind))?;
        Ok(document)
    }

    fn literal(&mut self, name: &str, literal: &Value) -> Result<(), FieldError> {
        let expected = literal.to_string();
        match self.0.remove(name).filter(|value| !value.is_null()) {
            Some(value) if value == *literal => Ok(()),
            Some(value) => Err(FieldError::wrong(name, &expected, &value)),
            None => Err(FieldError::missing(name, &expected)),
        }
    }

    /// Reads the fields that a type declares; the others are unknown.
    pub(crate) fn read<T: DeserializeOwned>(self) -> Result<(T, Unknown), FieldError> {
        let unknown = Unknown::default();
        let found = read(Some(Value::Object(self.0)), &Path::Root, &unknown)?;
        Ok((found, unknown))
    }

    /// Reads the fields that a type declares, and refuses others.
    pub(crate) fn read_known<T: DeserializeOwned>(self) -> Result<T, FieldError> {
        let (found, unknown) = self.read()?;
        match unknown.into_paths().pop_first() {
            None => Ok(found),
            Some(field) => Err(FieldError::Unknown { field }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::read::text;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "the fields are read, and never looked at")]
    struct Outer {
        a: Option<Inner>,
        #[serde(default)]
        c: Vec<String>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "the fields are read, and never looked at")]
    struct Inner {
        #[serde(deserialize_with = "text")]
        b: String,
    }

    #[test]
    fn errors_name_the_path_and_what_would_be_right() {
        for (value, expected) in [
            (json!([]), "`document` must be an object, found []"),
            (json!({"a": {"b": 7}}), "`a.b` must be a string, found 7"),
            (
                json!({"a": {"b": " "}}),
                "`a.b` is missing: it must be text that is not blank",
            ),
            (json!({"a": []}), "`a` must be an object, found []"),
            (json!({"c": ["x", 1]}), "`c[1]` must be a string, found 1"),
        ] {
            let error = Document::of(value).and_then(Document::read::<Outer>);
            assert_eq!(error.unwrap_err().to_string(), expected);
        }
        let error = Document(Map::new()).of_kind("d", "x").unwrap_err();
        assert_eq!(error.to_string(), "`schema` is missing: it must be 1");
    }

    #[test]
    fn unknown_fields_are_kept_by_the_path_of_their_object() {
        let document = Document::of(json!({"a": {"b": "x", "y": 1}, "z": null})).unwrap();
        let (_, unknown) = document.read::<Outer>().unwrap();
        assert_eq!(Value::from(unknown.take("a")), json!({"y": 1}));
        assert_eq!(Value::from(unknown.take("")), json!({"z": null}));
    }
}
