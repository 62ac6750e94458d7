//! The parts of a value: fields, entries, items and variants.

use super::{ReadFault, Reader, Unknown, ValueSlot};
use crate::json::path::Path;
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde_json::{Map, Value};

/// The fields of a struct, each once and in its order; what is left in the map
/// is unknown.
pub(super) struct FieldAccess<'r> {
    pub(super) names: std::slice::Iter<'static, &'static str>,
    pub(super) name: &'static str,
    pub(super) map: &'r mut Map<String, Value>,
    pub(super) at: &'r Path<'r>,
    pub(super) unknown: &'r Unknown,
}

impl<'de> MapAccess<'de> for FieldAccess<'_> {
    type Error = ReadFault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadFault> {
        let Some(name) = self.names.next() else {
            return Ok(None);
        };
        self.name = name;
        seed.deserialize(StrDeserializer::<ReadFault>::new(name))
            .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadFault> {
        let field = Reader {
            value: self.map.remove(self.name),
            at: &self.at.field(self.name),
            place: ValueSlot::Required,
            unknown: self.unknown,
        };
        field.give(seed)
    }
}

/// The entries of a map.
pub(super) struct Entries<'r> {
    pub(super) entries: serde_json::map::IntoIter,
    pub(super) entry: Option<(String, Value)>,
    pub(super) at: &'r Path<'r>,
    pub(super) unknown: &'r Unknown,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = ReadFault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadFault> {
        self.entry = self.entries.next();
        let Some((name, _)) = &self.entry else {
            return Ok(None);
        };
        let key = Reader {
            value: Some(Value::String(name.clone())),
            at: &self.at.field(name),
            place: ValueSlot::Item,
            unknown: self.unknown,
        };
        key.give(seed).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadFault> {
        let (name, value) = self.entry.take().unwrap_or_default();
        let entry = Reader {
            value: Some(value),
            at: &self.at.field(&name),
            place: ValueSlot::Required,
            unknown: self.unknown,
        };
        entry.give(seed)
    }
}

/// The items of a list.
pub(super) struct Items<'r> {
    pub(super) items: std::iter::Enumerate<std::vec::IntoIter<Value>>,
    pub(super) at: &'r Path<'r>,
    pub(super) unknown: &'r Unknown,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = ReadFault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadFault> {
        let Some((index, value)) = self.items.next() else {
            return Ok(None);
        };
        let item = Reader {
            value: Some(value),
            at: &self.at.row(index),
            place: ValueSlot::Item,
            unknown: self.unknown,
        };
        item.give(seed).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

/// The variant of an enum with its content.
pub(super) struct Variant<'r>(pub(super) &'static str, pub(super) Reader<'r>);

impl<'de, 'r> EnumAccess<'de> for Variant<'r> {
    type Error = ReadFault;
    type Variant = Reader<'r>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Reader<'r>), ReadFault> {
        let variant = seed.deserialize(StrDeserializer::<ReadFault>::new(self.0))?;
        Ok((variant, self.1))
    }
}

impl<'de> VariantAccess<'de> for Reader<'_> {
    type Error = ReadFault;

    fn unit_variant(self) -> Result<(), ReadFault> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadFault> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ReadFault> {
        self.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadFault> {
        self.deserialize_struct("", names, visitor)
    }
}
