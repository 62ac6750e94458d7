//! Parses a document, and refuses names that appear twice.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::cell::Cell;
use std::fmt;

/// Parses one JSON document and refuses a key that appears twice in an object,
/// payloads included: two readers would see two different turns, and compute two
/// digests of a payload.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    parse_at_most(bytes, usize::MAX)
}

/// Parses as [`parse`] does, and refuses a document of more values: small ones take
/// many times the memory of their text.
pub(crate) fn parse_at_most(bytes: &[u8], values: usize) -> Result<Value, serde_json::Error> {
    let left = Cell::new(values);
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Strict(&left).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Reads a value, refuses a key that appears twice in an object, and counts down how
/// many values may follow.
#[derive(Clone, Copy)]
struct Strict<'c>(&'c Cell<usize>);

impl Strict<'_> {
    fn count<E: Error>(self) -> Result<Self, E> {
        match self.0.get().checked_sub(1) {
            Some(left) => self.0.set(left),
            None => return Err(E::custom("the document has too many values")),
        }
        Ok(self)
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self.count()?)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(self)?;
            if map.contains_key(&name) {
                return Err(A::Error::custom(format_args!(
                    "the field {} appears twice in one object",
                    excerpt(&name)
                )));
            }
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

/// Returns the head of a text from outside, quoted and escaped.
pub(crate) fn excerpt(text: &str) -> String {
    let head: String = text.chars().take(40).collect();
    let more = if head.len() < text.len() { "…" } else { "" };
    format!("{head:?}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_of_too_many_values_is_refused() {
        for (text, values) in [("1", 1), ("[0,0]", 3), (r#"{"a":{"b":[1]}}"#, 4)] {
            parse_at_most(text.as_bytes(), values).unwrap();
            let refused = parse_at_most(text.as_bytes(), values - 1).unwrap_err();
            assert!(refused.to_string().contains("too many values"), "{refused}");
        }
    }
}
