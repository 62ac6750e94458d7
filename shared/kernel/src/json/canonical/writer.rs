//! JSON text that goes to a digest as it is written.
//!
//! What `serde_json` does, for values that are hashed: the larger part of the
//! work on a turn is here, and most of it is strings.

use super::quote::quote;
use serde::ser::{
    Error, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, Serializer,
};
use sha2::{Digest, Sha256};
use std::fmt;

/// How many bytes are gathered before they are hashed.
const BUFFER: usize = 16 * 1024;

/// How much room there is at first: most values are small.
const FIRST: usize = 1024;

/// Gathers JSON text and hashes it.
pub(super) struct Writer {
    text: Vec<u8>,
    hasher: Sha256,
}

impl Writer {
    /// Returns the SHA-256 of a value's JSON text, with its keys in the order
    /// in which the value gives them; that of nothing, for a value that is not
    /// JSON (see [`value_of`](super::value_of)).
    pub(super) fn hash(value: &(impl Serialize + ?Sized)) -> [u8; 32] {
        let mut writer = Self {
            text: Vec::with_capacity(FIRST),
            hasher: Sha256::new(),
        };
        if value.serialize(&mut writer).is_err() {
            return Sha256::digest([]).into();
        }
        writer.hasher.update(&writer.text);
        writer.hasher.finalize().into()
    }

    #[inline]
    fn raw(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    #[inline]
    fn string(&mut self, text: &str) {
        self.text.push(b'"');
        quote(text, &mut self.text);
        self.text.push(b'"');
    }

    /// Writes a number as `serde_json` does.
    fn number(&mut self, number: impl Serialize) -> Result<(), fmt::Error> {
        serde_json::to_writer(&mut self.text, &number).map_err(fmt::Error::custom)
    }

    #[inline]
    fn drain(&mut self) {
        if self.text.len() >= BUFFER {
            self.hasher.update(&self.text);
            self.text.clear();
        }
    }
}

/// A list or an object that is being written.
pub(super) struct Compound<'a> {
    writer: &'a mut Writer,
    begun: bool,
    close: &'static str,
}

impl<'a> Compound<'a> {
    #[inline]
    fn open(writer: &'a mut Writer, open: &str, close: &'static str) -> Self {
        writer.raw(open);
        Self {
            writer,
            begun: false,
            close,
        }
    }

    #[inline]
    fn next(&mut self) -> &mut Writer {
        if self.begun {
            self.writer.raw(",");
        }
        self.begun = true;
        self.writer.drain();
        self.writer
    }

    fn close(self) -> Result<(), fmt::Error> {
        self.writer.raw(self.close);
        Ok(())
    }
}

impl SerializeSeq for Compound<'_> {
    type Ok = ();
    type Error = fmt::Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), fmt::Error> {
        value.serialize(self.next())
    }

    fn end(self) -> Result<(), fmt::Error> {
        self.close()
    }
}

impl SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = fmt::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), fmt::Error> {
        key.serialize(self.next())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), fmt::Error> {
        self.writer.raw(":");
        value.serialize(&mut *self.writer)
    }

    fn end(self) -> Result<(), fmt::Error> {
        self.close()
    }
}

impl SerializeStruct for Compound<'_> {
    type Ok = ();
    type Error = fmt::Error;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), fmt::Error> {
        // A field's name needs no escape.
        let writer = self.next();
        writer.raw("\"");
        writer.raw(key);
        writer.raw("\":");
        value.serialize(writer)
    }

    fn end(self) -> Result<(), fmt::Error> {
        self.close()
    }
}

/// No kernel type that is digested has such a part.
type No = Impossible<(), fmt::Error>;

impl<'a> Serializer for &'a mut Writer {
    type Ok = ();
    type Error = fmt::Error;
    type SerializeSeq = Compound<'a>;
    type SerializeTuple = No;
    type SerializeTupleStruct = No;
    type SerializeTupleVariant = No;
    type SerializeMap = Compound<'a>;
    type SerializeStruct = Compound<'a>;
    type SerializeStructVariant = No;

    fn serialize_bool(self, value: bool) -> Result<(), fmt::Error> {
        self.raw(if value { "true" } else { "false" });
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), fmt::Error> {
        self.number(value)
    }

    fn serialize_i16(self, value: i16) -> Result<(), fmt::Error> {
        self.number(value)
    }

    fn serialize_i32(self, value: i32) -> Result<(), fmt::Error> {
        self.number(value)
    }

    fn serialize_i64(self, value: i64) -> Result<(), fmt::Error> {
        self.number(value)
    }

    fn serialize_u8(self, value: u8) -> Result<(), fmt::Error> {
        self.number(value)
    }

    fn serialize_u16(self, value: u16) -> Result<(), fmt::Error> {
        self.number(value)
    }

    fn serialize_u32(self, value: u32) -> Result<(), fmt::Error> {
        self.number(value)
    }

    fn serialize_u64(self, value: u64) -> Result<(), fmt::Error> {
        self.number(value)
    }

    fn serialize_f32(self, value: f32) -> Result<(), fmt::Error> {
        self.number(value)
    }

    fn serialize_f64(self, value: f64) -> Result<(), fmt::Error> {
        self.number(value)
    }

    fn serialize_char(self, value: char) -> Result<(), fmt::Error> {
        self.string(value.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<(), fmt::Error> {
        self.string(value);
        Ok(())
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<(), fmt::Error> {
        Err(fmt::Error)
    }

    fn serialize_none(self) -> Result<(), fmt::Error> {
        self.serialize_unit()
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), fmt::Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), fmt::Error> {
        self.raw("null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), fmt::Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), fmt::Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), fmt::Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), fmt::Error> {
        Err(fmt::Error)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'a>, fmt::Error> {
        Ok(Compound::open(self, "[", "]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<No, fmt::Error> {
        Err(fmt::Error)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<No, fmt::Error> {
        Err(fmt::Error)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<No, fmt::Error> {
        Err(fmt::Error)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'a>, fmt::Error> {
        Ok(Compound::open(self, "{", "}"))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Compound<'a>, fmt::Error> {
        Ok(Compound::open(self, "{", "}"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<No, fmt::Error> {
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn same(value: &Value) {
        let text = serde_json::to_vec(value).unwrap();
        let expected: [u8; 32] = Sha256::digest(&text).into();
        assert_eq!(Writer::hash(value), expected, "{value}");
    }

    #[test]
    fn json_is_hashed_as_serde_json_writes_it() {
        let long = "line\n".repeat(BUFFER);
        for value in [
            json!(null),
            json!([]),
            json!({}),
            json!([[], {}, [null]]),
            json!({"\"": {"a\u{1}": ["\\", 1, -1, 1.5, 1e300, u64::MAX, i64::MIN, true]}}),
            json!([long, long, {long.clone(): long}]),
        ] {
            same(&value);
        }
    }

    #[test]
    fn what_is_not_json_hashes_as_nothing() {
        let nothing: [u8; 32] = Sha256::digest([]).into();
        assert_eq!(Writer::hash(&(1, 2)), nothing);
    }
}
