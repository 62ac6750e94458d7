//! A line, read in one pass.

use super::cut;
use crate::flaw::{Flaw, MAX_PARTS};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

/// What a visitor makes of flags and numbers, where it is the same of all.
macro_rules! scalars {
    ($made:expr) => {
        fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok($made)
        }

        fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok($made)
        }

        fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok($made)
        }

        fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok($made)
        }
    };
}
pub(super) use scalars;

/// How many members there is room for at first: few objects have more.
const MEMBERS: usize = 8;

/// Which members of an object are read into, each with the shape of the objects
/// within it, or within the list that it is; the others stay as they are.
#[derive(Debug)]
pub(crate) struct Shape(pub(crate) &'static [(&'static str, Self)]);

impl Shape {
    /// An object that nothing is read into.
    pub(crate) const FLAT: Self = Self(&[]);

    fn within(&self, name: &str) -> Option<&Self> {
        let mut shapes = self.0.iter();
        shapes
            .find(|(known, _)| *known == name)
            .map(|(_, shape)| shape)
    }
}

/// An object, as the list of its members.
#[derive(Clone, Debug)]
pub(crate) struct Object<'a>(Vec<(Cow<'a, str>, Node<'a>)>);

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Node<'a> {
    /// Unescaped.
    Raw(&'a RawValue),
    /// One that was read into, as are the others.
    Object(Object<'a>),
    List(Vec<Self>),
    /// The first bytes of a text.
    Text(String),
    Null,
    Scalar,
}

impl<'a> Object<'a> {
    /// Reads an object.
    ///
    /// # Errors
    ///
    /// [`Flaw::NotJson`] for anything else, [`Flaw::TooManyParts`].
    pub(crate) fn read(text: &'a str, shape: &Shape) -> Result<Self, Flaw> {
        let mut json = serde_json::Deserializer::from_str(text);
        let parts = Parts::default();
        let members = Members(Part(shape, &parts)).deserialize(&mut json);
        match members.and_then(|object| json.end().map(|()| object)) {
            Ok(object) => Ok(object),
            Err(_) if parts.are_too_many() => Err(Flaw::TooManyParts),
            // Some texts are JSON and cannot be read into, such as one that was
            // cut within a character; as they are they can.
            Err(_) if !shape.0.is_empty() => Self::read(text, &Shape::FLAT),
            Err(_) => Err(Flaw::NotJson),
        }
    }

    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &Node<'a>)> {
        self.0.iter().map(|(name, node)| (&**name, node))
    }

    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &Node<'a>> {
        let members = self.0.iter().filter(move |(known, _)| known == name);
        members.map(|(_, node)| node)
    }
}

impl<'a> Node<'a> {
    pub(super) fn is_null(&self) -> bool {
        match self {
            Self::Raw(raw) => raw.get() == "null",
            other => matches!(other, Self::Null),
        }
    }

    pub(super) fn is_text(&self) -> bool {
        match self {
            Self::Raw(raw) => raw.get().starts_with('"'),
            other => matches!(other, Self::Text(_)),
        }
    }

    pub(super) const fn raw(&self) -> Option<&'a RawValue> {
        match self {
            Self::Raw(raw) => Some(raw),
            _ => None,
        }
    }

    pub(super) const fn as_object(&self) -> Option<&Object<'a>> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }
}

/// Two values are equal if their texts are, and two objects that were parsed if
/// their members are. Of what was not kept that cannot be determined.
impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Raw(one), Self::Raw(other)) => one.get() == other.get(),
            (Self::Object(one), Self::Object(other)) => one.0 == other.0,
            (Self::List(one), Self::List(other)) => one == other,
            (Self::Null, Self::Null) => true,
            _ => false,
        }
    }
}

/// How many members and values in lists were read, and may be.
#[derive(Debug)]
pub(super) struct Parts {
    read: Cell<usize>,
    most: usize,
}

impl Default for Parts {
    fn default() -> Self {
        Self::at_most(MAX_PARTS)
    }
}

impl Parts {
    pub(super) const fn at_most(most: usize) -> Self {
        Self {
            read: Cell::new(0),
            most,
        }
    }

    pub(super) const fn are_too_many(&self) -> bool {
        self.read.get() > self.most
    }

    /// Counts a part.
    pub(super) fn add<E: Error>(&self) -> Result<(), E> {
        self.read.set(self.read.get() + 1);
        if self.are_too_many() {
            return Err(E::custom("too many parts"));
        }
        Ok(())
    }
}

/// What a part is to be.
#[derive(Clone, Copy)]
struct Part<'s>(&'s Shape, &'s Parts);

/// Reads an object.
struct Members<'s>(Part<'s>);

/// Reads anything.
struct Anything<'s>(Part<'s>);

/// Reads a name.
pub(super) struct Name;

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = Object<'de>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(MEMBERS);
        while let Some(name) = map.next_key_seed(Name)? {
            let Part(shape, parts) = self.0;
            parts.add()?;
            let node = match shape.within(&name) {
                Some(shape) => map.next_value_seed(Anything(Part(shape, parts)))?,
                None => Node::Raw(map.next_value()?),
            };
            members.push((name, node));
        }
        Ok(Object(members))
    }
}

impl<'de> DeserializeSeed<'de> for Anything<'_> {
    type Value = Node<'de>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Anything<'_> {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Members(self.0).visit_map(map).map(Node::Object)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element_seed(Anything(self.0))? {
            self.0.1.add()?;
            nodes.push(node);
        }
        Ok(Node::List(nodes))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Node::Text(cut(text).to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Node::Null)
    }

    scalars!(Node::Scalar);
}

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}
