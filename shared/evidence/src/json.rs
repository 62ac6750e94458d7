//! JSON as the adapters need it: one level at a time, payloads untouched.
//!
//! An object is the list of its members as they stand, so that a name that
//! stands twice is seen; what no adapter asks for is never copied.

use crate::flaw::Flaw;
use premath_kernel::canonical;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// How many bytes of a text are kept where an excerpt does.
pub(crate) const EXCERPT_BYTES: usize = 512;

/// How many bytes an id or a name may have.
const MAX_NAME_BYTES: usize = 512;

/// An object, as the list of its members.
pub(crate) struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Object<'a> {
    /// Reads an object; anything else is none.
    pub(crate) fn read(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns a member; null reads as absent, and a name that stands twice
    /// with different values is a flaw.
    pub(crate) fn get(&self, name: &'static str) -> Result<Option<&'a RawValue>, Flaw> {
        let mut found = self.all(name);
        let first = found.next();
        if found.any(|other| Some(other.get()) != first.map(RawValue::get)) {
            return Err(Flaw::field(name, "there once"));
        }
        Ok(first.filter(|raw| raw.get() != "null"))
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &'a RawValue> {
        let members = self.0.iter().filter(move |(key, _)| key == name);
        members.map(|(_, raw)| *raw)
    }

    /// Tells whether a member is there, be it null.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// Returns a text.
    pub(crate) fn text(&self, name: &'static str) -> Result<Option<Cow<'a, str>>, Flaw> {
        let Some(raw) = self.get(name)? else {
            return Ok(None);
        };
        let text = read_text(raw).ok_or(Flaw::field(name, "a text"))?;
        Ok(Some(text))
    }

    /// Returns an id or a name, which must be there and be short.
    pub(crate) fn name(&self, name: &'static str) -> Result<String, Flaw> {
        self.optional_name(name)?
            .ok_or(Flaw::field(name, "a name of 1 to 512 bytes"))
    }

    /// Returns an id or a name, where there is one.
    pub(crate) fn optional_name(&self, name: &'static str) -> Result<Option<String>, Flaw> {
        let text = self.text(name)?;
        text.map(|text| bounded(&text, name)).transpose()
    }

    /// Returns an id that may stand twice, as the first says: the second is
    /// that of what lies within.
    pub(crate) fn first_name(&self, name: &'static str) -> Result<String, Flaw> {
        let first = self.all(name).next().and_then(read_text);
        let first = first.ok_or(Flaw::field(name, "a name of 1 to 512 bytes"))?;
        bounded(&first, name)
    }

    /// Returns a word, or what it is where it is missing.
    pub(crate) fn word(&self, name: &'static str) -> Result<Cow<'a, str>, Flaw> {
        self.text(name)?.ok_or(Flaw::field(name, "a text"))
    }

    /// Returns a flag, false where absent.
    pub(crate) fn flag(&self, name: &'static str) -> Result<bool, Flaw> {
        match self.get(name)?.map(RawValue::get) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Flaw::field(name, "true or false")),
        }
    }

    /// Returns a whole number.
    pub(crate) fn integer(&self, name: &'static str) -> Result<Option<i64>, Flaw> {
        let raw = self.get(name)?;
        let number = raw.map(|raw| raw.get().parse());
        number
            .transpose()
            .map_err(|_| Flaw::field(name, "a whole number"))
    }

    /// Returns a count; a fraction is cut off.
    pub(crate) fn count(&self, name: &'static str) -> Result<Option<u64>, Flaw> {
        let expected = Flaw::field(name, "a number of at least 0");
        let Some(raw) = self.get(name)? else {
            return Ok(None);
        };
        if let Ok(count) = raw.get().parse() {
            return Ok(Some(count));
        }
        match raw.get().parse::<f64>() {
            // Far below what a whole number of this kind holds exactly.
            Ok(number) if (0.0..9.0e15).contains(&number) => Ok(Some(number as u64)),
            _ => Err(expected),
        }
    }

    /// Returns an amount of dollars in billionths.
    pub(crate) fn nano_usd(&self, name: &'static str) -> Result<Option<u64>, Flaw> {
        let Some(raw) = self.get(name)? else {
            return Ok(None);
        };
        match raw.get().parse::<f64>() {
            Ok(dollars) if (0.0..1.0e6).contains(&dollars) => {
                Ok(Some((dollars * 1e9).round() as u64))
            }
            _ => Err(Flaw::field(name, "an amount of dollars")),
        }
    }

    /// Returns an object within.
    pub(crate) fn object(&self, name: &'static str) -> Result<Option<Self>, Flaw> {
        let Some(raw) = self.get(name)? else {
            return Ok(None);
        };
        let object = Object::read(raw.get()).ok_or(Flaw::field(name, "an object"))?;
        Ok(Some(object))
    }

    /// Returns an object within that must be there.
    pub(crate) fn needed(&self, name: &'static str) -> Result<Self, Flaw> {
        self.object(name)?.ok_or(Flaw::field(name, "an object"))
    }

    /// Returns the objects of a list within; none where it is absent.
    pub(crate) fn objects(&self, name: &'static str) -> Result<Vec<Self>, Flaw> {
        let Some(raw) = self.get(name)? else {
            return Ok(Vec::new());
        };
        serde_json::from_str(raw.get()).map_err(|_| Flaw::field(name, "a list of objects"))
    }

    /// Tells whether any name in the object, at any depth, is one that calls
    /// bear: an id or a status.
    pub(crate) fn bears_call(&self) -> bool {
        let mut members = self.0.iter();
        members.any(|(name, raw)| CALL_NAMES.contains(&&**name) || bears_call(raw.get()))
    }

    /// Returns the first bytes of what a member says.
    pub(crate) fn excerpt(&self, name: &'static str) -> Result<String, Flaw> {
        Ok(self.get(name)?.map(said).unwrap_or_default())
    }
}

/// Reads a list of anything.
pub(crate) fn list(raw: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(raw.get()).ok()
}

/// Tells whether a value is a text.
pub(crate) fn is_text(raw: &RawValue) -> bool {
    raw.get().starts_with('"')
}

/// Returns the first bytes of what a value says: a text as it is, anything
/// else as its JSON.
pub(crate) fn said(raw: &RawValue) -> String {
    match read_text(raw) {
        Some(text) => cut(&text).to_owned(),
        None => cut(raw.get()).to_owned(),
    }
}

/// Returns the first bytes of a text, at the end of a character.
pub(crate) fn cut(text: &str) -> &str {
    let mut end = EXCERPT_BYTES.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns `D` of a value; where it is none (a text cut in the middle of a
/// character, as JavaScript leaves them, or too deep), `D` of its JSON as text.
pub(crate) fn digest(raw: &RawValue) -> String {
    if is_canonical_text(raw.get()) {
        return format!("sha256:{}", canonical::sha256_hex(raw.get().as_bytes()));
    }
    if let Some(text) = read_text(raw) {
        return canonical::digest_ordered(&*text);
    }
    match serde_json::from_str::<Value>(raw.get()) {
        Ok(value) => canonical::digest_ordered(&value),
        Err(_) => canonical::digest_ordered(raw.get()),
    }
}

/// Tells whether a value is a text that is escaped as canonical JSON escapes
/// it, as most are: then its bytes are what is digested.
fn is_canonical_text(json: &str) -> bool {
    let Some(text) = json.strip_prefix('"') else {
        return false;
    };
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        let escaped = &rest[at + 1..];
        let length = match escaped {
            [b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 1,
            [b'u', b'0', b'0', b'0', b'0'..=b'7' | b'b' | b'e' | b'f', ..] => 5,
            [b'u', b'0', b'0', b'1', b'0'..=b'9' | b'a'..=b'f', ..] => 5,
            _ => return false,
        };
        rest = &escaped[length..];
    }
    true
}

/// Returns `D` of a member, and of null where it is absent.
pub(crate) fn digest_of(raw: Option<&RawValue>) -> String {
    raw.map_or_else(|| canonical::digest_ordered(&Value::Null), digest)
}

/// The names that calls bear: an id or a status.
const CALL_NAMES: [&str; 13] = [
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

/// Tells whether any name in a value, at any depth, is one that calls bear.
/// What cannot be read may bear one.
fn bears_call(json: &str) -> bool {
    fn within(value: &Value) -> bool {
        match value {
            Value::Object(members) => members
                .iter()
                .any(|(name, value)| CALL_NAMES.contains(&name.as_str()) || within(value)),
            Value::Array(values) => values.iter().any(within),
            _ => false,
        }
    }
    serde_json::from_str(json).map_or(true, |value: Value| within(&value))
}

fn bounded(text: &str, name: &'static str) -> Result<String, Flaw> {
    if text.trim().is_empty() || text.len() > MAX_NAME_BYTES {
        return Err(Flaw::field(name, "a name of 1 to 512 bytes"));
    }
    Ok(text.to_owned())
}

fn read_text(raw: &RawValue) -> Option<Cow<'_, str>> {
    if !is_text(raw) {
        return None;
    }
    let text: Text<'_> = serde_json::from_str(raw.get()).ok()?;
    Some(text.0)
}

/// A text, borrowed where nothing in it is escaped.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text)))
            }
        }
        deserializer.deserialize_str(Reader)
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(Text(key)) = map.next_key()? {
                    members.push((key, map.next_value()?));
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_digest_is_that_of_the_value_however_it_is_escaped(
            text in any::<String>(),
            escapes in prop::collection::vec(
                prop::sample::select(&[
                    "\\n", "\\\\", "\\\"", "\\/", "\\u00e9", "\\u001b", "\\u001B", "\\u000a", "\\u0000",
                    "\\u000b", "\\u000e", "\\u007f", "\\ud83d\\ude00", "\\b", "n", "u001b", "\u{7f}",
                ][..]),
                0..12,
            ),
        ) {
            let plain = serde_json::to_string(&text).unwrap();
            let json = format!("{}{}\"", plain.strip_suffix('"').unwrap(), escapes.concat());
            let raw: &RawValue = serde_json::from_str(&json).unwrap();
            let value: Value = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(digest(raw), canonical::digest(&value));
        }
    }

    #[test]
    fn what_is_no_text_is_digested_as_canonical_json() {
        for json in [
            "null",
            "{\"b\": 1, \"a\": [1.0, \"\\u0041\"]}",
            "\"\"",
            "\"\\\\\"",
        ] {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            let value: Value = serde_json::from_str(json).unwrap();
            assert_eq!(digest(raw), canonical::digest(&value), "{json}");
        }
    }
}
