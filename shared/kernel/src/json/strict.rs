//! Parses a document, and refuses names that appear twice.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// The fields whose values are anybody's JSON, in which the last of two equal
/// keys counts, as it does for every reader of such a value.
const FREE: &[&str] = &["payload", "rawError"];

/// The field whose keys are names of the contract, and whose values are free.
const FREE_BELOW: &str = "toolExamples";

/// Parses one JSON document and refuses a key that appears twice in an object
/// of the contract: two readers would see two different turns.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = STRICT.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Strict {
    /// The object's values are anybody's JSON.
    free_below: bool,
}

/// Reads what is in a document by the contract.
const STRICT: Strict = Strict { free_below: false };

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
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
        while let Some(item) = seq.next_element_seed(STRICT)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let value = if self.free_below || FREE.contains(&name.as_str()) {
                entries.next_value::<Value>()?
            } else {
                let free_below = name == FREE_BELOW;
                entries.next_value_seed(Self { free_below })?
            };
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
