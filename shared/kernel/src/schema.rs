//! JSON Schemas of what the kernel reads and writes.
//!
//! Most types derive theirs; here are the parts that they share, and the
//! schemas of types whose JSON form is written by hand. A schema describes a
//! form; it never changes one.

use crate::failure::FailureClass;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Adds a property to an object's schema; a name that is there is overwritten.
pub fn describe(schema: &mut Schema, name: &str, property: Schema) {
    let properties = schema
        .ensure_object()
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(properties) = properties {
        properties.insert(name.to_owned(), property.to_value());
    }
}

/// Adds a property that every document has.
pub fn require(schema: &mut Schema, name: &str, property: Schema) {
    describe(schema, name, property);
    let required = schema
        .ensure_object()
        .entry("required")
        .or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(required) = required
        && !required.iter().any(|there| there == name)
    {
        required.push(name.into());
    }
}

/// The schema of a document's `schema`: the number 1.
pub(crate) fn one(_: &mut SchemaGenerator) -> Schema {
    version()
}

/// The schema of the number 1, as the version of a document's form.
pub(crate) fn version() -> Schema {
    json_schema!({"description": "The version of the document's form.", "const": 1})
}

/// The schema of a time that may be missing.
pub(crate) fn time_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "format": "date-time"})
}

impl JsonSchema for FailureClass {
    fn schema_name() -> Cow<'static, str> {
        "FailureClass".into()
    }

    fn schema_id() -> Cow<'static, str> {
        concat!(module_path!(), "::FailureClass").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let classes: Vec<Value> = Self::ALL
            .iter()
            .map(|class| json!({"const": class.as_str(), "description": class.meaning()}))
            .collect();
        json_schema!({
            "description": "A stable, machine-readable name of one way to fail.",
            "type": "string",
            "oneOf": classes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_class_stands_in_its_schema_with_its_meaning() {
        let schema = schemars::schema_for!(FailureClass);
        let classes = schema.get("oneOf").and_then(Value::as_array).unwrap();
        assert_eq!(classes.len(), FailureClass::ALL.len());
        for (class, described) in FailureClass::ALL.iter().zip(classes) {
            assert_eq!(described["const"], class.as_str());
            assert_eq!(described["description"], class.meaning());
        }
    }

    #[test]
    fn a_property_that_is_required_twice_is_named_once() {
        let mut schema = json_schema!({"type": "object"});
        for value in [1, 2] {
            require(&mut schema, "a", json_schema!({"const": value}));
        }
        assert_eq!(
            schema.to_value(),
            json!({"type": "object", "properties": {"a": {"const": 2}}, "required": ["a"]})
        );
    }
}
