//! Parts that the JSON Schemas of the kernel's documents share.
//!
//! Most types derive their schema. A schema describes a form; it never changes
//! one.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
