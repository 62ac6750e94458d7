//! Traces of a call in an unknown event.

use super::node::{Name, Node, scalars};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// The names that calls bear: an id or a status.
const NAMES: [&str; 13] = [
    "id",
    "item_id",
    "itemId",
    "call_id",
    "callId",
    "callID",
    "tool_call_id",
    "toolCallId",
    "tool_id",
    "tool_use_id",
    "toolUseId",
    "status",
    "exit_code",
];

/// Returns whether a name is one that calls bear.
pub(super) fn is_trace(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Returns whether any name in a value, at any depth, is one that calls bear.
/// What cannot be read may bear one.
pub(super) fn is_in(node: &Node<'_>) -> bool {
    match node {
        Node::Raw(raw) => {
            let mut json = serde_json::Deserializer::from_str(raw.get());
            Search.deserialize(&mut json).unwrap_or(true)
        }
        Node::Object(object) => object.has_call_field(),
        Node::List(nodes) => nodes.iter().any(is_in),
        Node::Text(_) | Node::Null | Node::Scalar => false,
    }
}

/// Looks at every name of a value and keeps nothing of it.
struct Search;

impl<'de> DeserializeSeed<'de> for Search {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<bool, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Search {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(name) = map.next_key_seed(Name)? {
            found |= is_trace(&name);
            found |= map.next_value_seed(Self)?;
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(within) = list.next_element_seed(Self)? {
            found |= within;
        }
        Ok(found)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        Ok(false)
    }

    scalars!(false);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    #[test]
    fn a_trace_is_found_at_any_depth_and_only_in_names() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for (json, found) in [
            ("[1, -1, 1.5, true, null, \"id\"]", false),
            ("{\"a\": [{\"b\": {\"call_id\": 1}}]}", true),
            ("{\"a\": 1, \"st\\u0061tus\": {}}", true),
            ("{\"ids\": \"status\"}", false),
            // Cannot be inspected.
            (&deep, true),
        ] {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            assert_eq!(is_in(&Node::Raw(raw)), found, "{json}");
        }
    }
}
