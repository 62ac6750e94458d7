//! A value as generic JSON.

use super::node::{Name, Parts};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Reads a value; none where it is too deep or has too many parts.
///
/// `serde_json` reads an object that has one of its own private names as
/// something else than an object; here it is one like any other.
pub(super) fn read(json: &str) -> Option<Value> {
    let parts = Parts::default();
    let mut json = serde_json::Deserializer::from_str(json);
    Reader(&parts).deserialize(&mut json).ok()
}

/// Reads a document as [`read`] does, with a bound of its own on its parts.
pub(crate) fn document(json: &[u8], most: usize) -> Option<Value> {
    let parts = Parts::at_most(most);
    let mut json = serde_json::Deserializer::from_slice(json);
    let value = Reader(&parts).deserialize(&mut json).ok()?;
    json.end().ok().map(|()| value)
}

struct Reader<'p>(&'p Parts);

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key_seed(Name)? {
            self.0.add()?;
            members.insert(name.into_owned(), map.next_value_seed(Self(self.0))?);
        }
        Ok(Value::Object(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(Self(self.0))? {
            self.0.add()?;
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_of_too_many_parts_is_not_read() {
        let list = |parts: usize| format!("[{}0]", "0,".repeat(parts - 1)).into_bytes();
        assert!(document(&list(8), 8).is_some());
        assert!(document(&list(9), 8).is_none());
        assert!(document(br#"{"a":{"b":[1]}}"#, 3).is_some());
        assert!(document(br#"{"a":{"b":[1]}}"#, 2).is_none());
        assert!(document(b"{} {}", 8).is_none());
    }
}
