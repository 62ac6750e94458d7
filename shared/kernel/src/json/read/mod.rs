//! The one reader of documents: serde's derive over a value that was parsed.
//!
//! It demands an object for a struct, knows the path of every fault, and notes
//! the fields that no struct declares. A struct is shown each field that it
//! declares, also one that the document does not have: so the field's type says
//! what is missing. An absent list is empty, an absent or null option is
//! `None`; for anything else there are the functions of [`field`], as
//! `deserialize_with`. `deny_unknown_fields` has no effect here: the caller
//! decides about unknown fields.

mod access;
mod fault;
mod field;

use super::path::Path;
use access::{Entries, FieldAccess, Items, Variant};
pub(crate) use fault::ReadFault;
use fault::{Found, expected_text, one_of};
pub(crate) use field::{
    ALIKE, Text, distinct, flag, given, given_or_default, missing, or_default, ordinal, share,
    some_words, text, texts, unless_blank, words,
};
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
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

/// The fields that no struct declares, from every depth.
#[derive(Debug, Default)]
pub(crate) struct Unknown {
    paths: RefCell<BTreeSet<String>>,
    fields: RefCell<BTreeMap<String, Map<String, Value>>>,
}

impl Unknown {
    /// Returns their paths, rows without their number.
    pub(crate) fn into_paths(self) -> BTreeSet<String> {
        self.paths.into_inner()
    }

    /// Takes those of the object at a path.
    pub(crate) fn take(&self, path: &str) -> Map<String, Value> {
        self.fields.borrow_mut().remove(path).unwrap_or_default()
    }

    fn note(&self, at: &Path<'_>, left: Map<String, Value>) {
        if left.is_empty() {
            return;
        }
        let paths = left.keys().map(|name| at.field(name).any_row());
        self.paths.borrow_mut().extend(paths);
        self.fields.borrow_mut().insert(at.to_string(), left);
    }
}

/// Reads what is at a place of a document.
pub(crate) fn read<T: DeserializeOwned>(
    value: Option<Value>,
    at: &Path<'_>,
    unknown: &Unknown,
) -> Result<T, ReadFault> {
    let reader = Reader {
        value,
        at,
        place: ValueSlot::Required,
        unknown,
    };
    reader.give(PhantomData)
}

/// Reads a value; `None` where it does not have the shape.
pub(crate) fn of_shape<T: DeserializeOwned>(value: &Value) -> Option<T> {
    read(Some(value.clone()), &Path::Root, &Unknown::default()).ok()
}

/// How a value is placed, which decides what is expected of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueSlot {
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
    place: ValueSlot,
    unknown: &'r Unknown,
}

/// The name by which [`given`] asks whether there is a value at all.
const GIVEN: &str = "given";

impl Reader<'_> {
    /// Reads the value, and sets the place of a fault.
    fn give<'de, S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, ReadFault> {
        let at = self.at;
        seed.deserialize(self).map_err(|fault| fault.at(at))
    }

    /// Describes what is there in place of what is expected.
    fn fault(&self, expected: impl fmt::Display) -> ReadFault {
        let found = match &self.value {
            None => Found::Missing,
            Some(value) => Found::Type(value.clone()),
        };
        ReadFault::new(expected, found)
    }
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = ReadFault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadFault> {
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

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadFault> {
        match self.value {
            Some(Value::Bool(flag)) => visitor.visit_bool(flag),
            _ => Err(self.fault(FLAG)),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadFault> {
        match &self.value {
            Some(Value::Number(number)) => match number.as_u64() {
                Some(count) => visitor.visit_u64(count),
                None => Err(ReadFault::new(WHOLE, Found::Value(number.clone().into()))),
            },
            Some(Value::Null) => Err(ReadFault::new(WHOLE, Found::Missing)),
            _ => Err(self.fault(WHOLE)),
        }
    }

    /// Any text.
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadFault> {
        match self.value {
            Some(Value::String(text)) => visitor.visit_string(text),
            _ if self.place == ValueSlot::Required => Err(self.fault(NAME)),
            _ => Err(self.fault(TEXT)),
        }
    }

    /// A word of a closed set; where it is required, null and blank text are
    /// none.
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadFault> {
        let required = self.place == ValueSlot::Required;
        match self.value {
            Some(Value::String(text)) if !(required && text.trim().is_empty()) => {
                visitor.visit_string(text)
            }
            None | Some(Value::Null | Value::String(_)) if required => {
                Err(ReadFault::new(expected_text(&visitor), Found::Missing))
            }
            _ if self.place == ValueSlot::Item => Err(self.fault(expected_text(&visitor))),
            _ => Err(self.fault(TEXT)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, ReadFault> {
        self.place = ValueSlot::Optional;
        match self.value {
            None | Some(Value::Null) => visitor.visit_none(),
            Some(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadFault> {
        match self.value {
            None if name == GIVEN => visitor.visit_none(),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadFault> {
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

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadFault> {
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
    ) -> Result<V::Value, ReadFault> {
        let Some(Value::Object(mut map)) = self.value else {
            return Err(self.fault(OBJECT));
        };
        let read = visitor.visit_map(FieldAccess {
            names: names.iter(),
            name: "",
            map: &mut map,
            at: self.at,
            unknown: self.unknown,
        })?;
        self.unknown.note(self.at, map);
        Ok(read)
    }

    /// A word that is a variant; or the variant `Content` of an object and `Ref`
    /// of a text in its place.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadFault> {
        let is_policy = variants == ["Content", "Ref"];
        match &self.value {
            Some(Value::Object(_)) if is_policy => visitor.visit_enum(Variant("Content", self)),
            Some(Value::String(_)) if is_policy => visitor.visit_enum(Variant("Ref", self)),
            _ if is_policy => Err(self.fault(POLICY)),
            Some(Value::String(word)) if !word.trim().is_empty() => {
                visitor.visit_enum(StrDeserializer::new(word.trim()))
            }
            None | Some(Value::Null | Value::String(_)) => {
                Err(ReadFault::new(one_of(variants), Found::Missing))
            }
            Some(_) => Err(self.fault(one_of(variants))),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 f64 char bytes byte_buf unit unit_struct tuple
        tuple_struct identifier ignored_any
    }
}

fn visit_number<'de, V: Visitor<'de>>(number: &Number, visitor: V) -> Result<V::Value, ReadFault> {
    if let Some(number) = number.as_u64() {
        visitor.visit_u64(number)
    } else if let Some(number) = number.as_i64() {
        visitor.visit_i64(number)
    } else {
        visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN))
    }
}
