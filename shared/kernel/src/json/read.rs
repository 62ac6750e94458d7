//! The one reader of documents: serde's derive over a value that was parsed.
//!
//! It demands an object for a struct, knows the path of every fault, and notes
//! the fields that no struct declares. A struct is shown each field that it
//! declares, also one that the document does not have: so the field's type says
//! what is missing. An absent list is empty, an absent or null option is
//! `None`; for anything else there are the functions below, as
//! `deserialize_with`.

use super::path::Path;
use super::strict::excerpt;
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, Expected, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;

/// What a field is expected to be.
const OBJECT: &str = "an object";
const LIST: &str = "a list";
const FLAG: &str = "true or false";
const TEXT: &str = "a string";
const NAME: &str = "a non-empty string";
const WHOLE: &str = "a whole number";
const POLICY: &str = "an object, or a string that refers to one";

/// The paths of the fields that no struct declares, from every depth, rows
/// without their number.
pub(crate) type Unknown = RefCell<BTreeSet<String>>;

/// Reads what is at a place of a document.
pub(crate) fn read<T: DeserializeOwned>(
    value: Option<Value>,
    at: &Path<'_>,
    unknown: &Unknown,
) -> Result<T, Fault> {
    let reader = Reader {
        value,
        at,
        place: Place::Required,
        unknown,
    };
    reader.give(PhantomData)
}

/// What is wrong, and where.
#[derive(Debug)]
pub(crate) struct Fault {
    path: Option<String>,
    expected: String,
    found: Found,
}

/// What there is in place of what was expected.
#[derive(Debug)]
enum Found {
    /// Nothing.
    Missing,
    /// A value of another type.
    Type(&'static str),
    /// A value of the right type that is not admitted.
    Value(String),
    /// The expectation says it.
    Said,
}

impl Fault {
    fn new(expected: impl fmt::Display, found: Found) -> Self {
        Self {
            path: None,
            expected: expected.to_string(),
            found,
        }
    }

    /// Sets the place, where none is set: the innermost sets it first.
    fn at(mut self, path: &Path<'_>) -> Self {
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
            Found::Type(kind) => format!("must be {expected}, not {kind}"),
            Found::Value(value) => format!("must be {expected}, not {value}"),
            Found::Said => expected,
        };
        (path.unwrap_or_default(), text)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expected)
    }
}

impl std::error::Error for Fault {}

impl Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message, Found::Said)
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let kind = match found {
            Unexpected::Bool(_) => "a boolean",
            Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "a number",
            Unexpected::Str(_) => TEXT,
            Unexpected::Seq => LIST,
            Unexpected::Map => OBJECT,
            _ => return Self::new(expected_text(expected), Found::Missing),
        };
        Self::new(expected_text(expected), Found::Type(kind))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let value = match found {
            Unexpected::Str(text) => excerpt(text),
            Unexpected::Unsigned(number) => number.to_string(),
            Unexpected::Float(number) => number.to_string(),
            other => other.to_string(),
        };
        Self::new(expected_text(expected), Found::Value(value))
    }
}

/// `serde_json` calls its numbers JSON numbers, as if there were others here.
fn expected_text(expected: &dyn Expected) -> String {
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

/// How a value is placed, which decides what is expected of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A field that must be there.
    Required,
    /// A field that may be absent.
    Optional,
    /// A key of a map or an item of a list.
    Item,
}

/// A value, or that there is none, at its place.
struct Reader<'r> {
    value: Option<Value>,
    at: &'r Path<'r>,
    place: Place,
    unknown: &'r Unknown,
}

/// The name by which [`given`] asks whether there is a value at all.
const GIVEN: &str = "given";

impl Reader<'_> {
    /// Reads the value, and sets the place of a fault.
    fn give<'de, S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Fault> {
        let at = self.at;
        seed.deserialize(self).map_err(|fault| fault.at(at))
    }

    /// Describes what is there in place of what is expected.
    fn fault(&self, expected: impl fmt::Display) -> Fault {
        let found = match &self.value {
            None => Found::Missing,
            Some(value) => Found::Type(kind(value)),
        };
        Fault::new(expected, found)
    }
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            None => Err(self.fault(expected_text(&visitor))),
            Some(Value::Null) => visitor.visit_unit(),
            Some(Value::Bool(flag)) => visitor.visit_bool(flag),
            Some(Value::Number(number)) => visit_number(&number, visitor),
            Some(Value::String(text)) => visitor.visit_string(text),
            Some(Value::Array(_)) => self.deserialize_seq(visitor),
            Some(Value::Object(_)) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Some(Value::Bool(flag)) => visitor.visit_bool(flag),
            _ => Err(self.fault(FLAG)),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.value {
            Some(Value::Number(number)) => match number.as_u64() {
                Some(count) => visitor.visit_u64(count),
                None => Err(Fault::new(WHOLE, Found::Value(number.to_string()))),
            },
            Some(Value::Null) => Err(Fault::new(WHOLE, Found::Missing)),
            _ => Err(self.fault(WHOLE)),
        }
    }

    /// Any text.
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Some(Value::String(text)) => visitor.visit_string(text),
            _ if self.place == Place::Required => Err(self.fault(NAME)),
            _ => Err(self.fault(TEXT)),
        }
    }

    /// A word of a closed set; where it is required, null and blank text are
    /// none.
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let required = self.place == Place::Required;
        match self.value {
            Some(Value::String(text)) if !(required && text.trim().is_empty()) => {
                visitor.visit_string(text)
            }
            None | Some(Value::Null | Value::String(_)) if required => {
                Err(Fault::new(expected_text(&visitor), Found::Missing))
            }
            _ if self.place == Place::Item => Err(self.fault(expected_text(&visitor))),
            _ => Err(self.fault(TEXT)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Fault> {
        self.place = Place::Optional;
        match self.value {
            None | Some(Value::Null) => visitor.visit_none(),
            Some(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.value {
            None if name == GIVEN => visitor.visit_none(),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let items = match self.value {
            None => Vec::new(),
            Some(Value::Array(items)) => items,
            _ => return Err(self.fault(LIST)),
        };
        visitor.visit_seq(Items {
            items: items.into_iter().enumerate(),
            at: self.at,
            unknown: self.unknown,
        })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Some(Value::Object(map)) = self.value else {
            return Err(self.fault(OBJECT));
        };
        visitor.visit_map(Entries {
            entries: map.into_iter(),
            entry: None,
            at: self.at,
            unknown: self.unknown,
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let Some(Value::Object(mut map)) = self.value else {
            return Err(self.fault(OBJECT));
        };
        let read = visitor.visit_map(Fields {
            names: names.iter(),
            name: "",
            map: &mut map,
            at: self.at,
            unknown: self.unknown,
        })?;
        let left = map.keys().map(|name| self.at.field(name).any_row());
        self.unknown.borrow_mut().extend(left);
        Ok(read)
    }

    /// The variant `Content` of an object, and `Ref` of a text in its place.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let variant = match &self.value {
            Some(Value::Object(_)) => "Content",
            Some(Value::String(_)) => "Ref",
            _ => return Err(self.fault(POLICY)),
        };
        visitor.visit_enum(Variant(variant, self))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 f64 char bytes byte_buf unit unit_struct tuple
        tuple_struct identifier ignored_any
    }
}

fn visit_number<'de, V: Visitor<'de>>(number: &Number, visitor: V) -> Result<V::Value, Fault> {
    if let Some(number) = number.as_u64() {
        visitor.visit_u64(number)
    } else if let Some(number) = number.as_i64() {
        visitor.visit_i64(number)
    } else {
        visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN))
    }
}

/// The fields of a struct, each once and in its order; what is left in the map
/// is unknown.
struct Fields<'r> {
    names: std::slice::Iter<'static, &'static str>,
    name: &'static str,
    map: &'r mut Map<String, Value>,
    at: &'r Path<'r>,
    unknown: &'r Unknown,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some(name) = self.names.next() else {
            return Ok(None);
        };
        self.name = name;
        seed.deserialize(StrDeserializer::<Fault>::new(name))
            .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let field = Reader {
            value: self.map.remove(self.name),
            at: &self.at.field(self.name),
            place: Place::Required,
            unknown: self.unknown,
        };
        field.give(seed)
    }
}

/// The entries of a map.
struct Entries<'r> {
    entries: serde_json::map::IntoIter,
    entry: Option<(String, Value)>,
    at: &'r Path<'r>,
    unknown: &'r Unknown,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        self.entry = self.entries.next();
        let Some((name, _)) = &self.entry else {
            return Ok(None);
        };
        let key = Reader {
            value: Some(Value::String(name.clone())),
            at: &self.at.field(name),
            place: Place::Item,
            unknown: self.unknown,
        };
        key.give(seed).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let (name, value) = self.entry.take().unwrap_or_default();
        let entry = Reader {
            value: Some(value),
            at: &self.at.field(&name),
            place: Place::Required,
            unknown: self.unknown,
        };
        entry.give(seed)
    }
}

/// The items of a list.
struct Items<'r> {
    items: std::iter::Enumerate<std::vec::IntoIter<Value>>,
    at: &'r Path<'r>,
    unknown: &'r Unknown,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some((index, value)) = self.items.next() else {
            return Ok(None);
        };
        let item = Reader {
            value: Some(value),
            at: &self.at.row(index),
            place: Place::Item,
            unknown: self.unknown,
        };
        item.give(seed).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

/// The variant of an enum with its content.
struct Variant<'r>(&'static str, Reader<'r>);

impl<'de, 'r> EnumAccess<'de> for Variant<'r> {
    type Error = Fault;
    type Variant = Reader<'r>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Reader<'r>), Fault> {
        let variant = seed.deserialize(StrDeserializer::<Fault>::new(self.0))?;
        Ok((variant, self.1))
    }
}

impl<'de> VariantAccess<'de> for Reader<'_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_struct("", names, visitor)
    }
}

/// Reads a field that may be absent, but not null.
pub(crate) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    struct Given<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Given<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a value")
        }

        fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_newtype_struct<D: Deserializer<'de>>(
            self,
            deserializer: D,
        ) -> Result<Self::Value, D::Error> {
            T::deserialize(deserializer).map(Some)
        }
    }

    deserializer.deserialize_newtype_struct(GIVEN, Given(PhantomData))
}

/// Reads a flag that is false where it is absent; null is a fault.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(given(deserializer)?.unwrap_or_default())
}

/// Reads a field that has its default where it is absent or null.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a whole number counted from 1, where there is one.
pub(crate) fn ordinal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    match Option::deserialize(deserializer)? {
        Some(0) => Err(D::Error::invalid_value(
            Unexpected::Unsigned(0),
            &"1 or more",
        )),
        count => Ok(count),
    }
}

/// Reads a number between 0 and 1, where there is one.
pub(crate) fn share<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Number>, D::Error> {
    let share: Option<Number> = Option::deserialize(deserializer)?;
    match share.as_ref().and_then(Number::as_f64) {
        Some(value) if !(0.0..=1.0).contains(&value) => Err(D::Error::invalid_value(
            Unexpected::Float(value),
            &"between 0 and 1",
        )),
        _ => Ok(share),
    }
}
