//! JSON as the adapters need it: in a single pass per line, payloads untouched.
//!
//! An object is the list of its members as they are, so that a name that
//! appears twice is seen; what no adapter asks for is never copied.

mod digest;
mod node;
mod text;
mod trace;
mod value;

pub(crate) use digest::{digest_of, digest_of_text};
pub(crate) use node::{Object, Shape};
pub(crate) use text::{cut, excerpt};
pub(crate) use value::document;

use crate::flaw::Flaw;
use node::Node;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::borrow::Cow;
use text::read_text;

/// How many bytes an id or a name may have.
pub(crate) const MAX_NAME_BYTES: usize = 512;

impl<'a> Object<'a> {
    /// Returns a member as it is, which is none that its shape reads into; null
    /// reads as absent, and a name that appears twice with different values is
    /// a flaw.
    pub(crate) fn get(&self, name: &'static str) -> Result<Option<&'a RawValue>, Flaw> {
        match self.member(name)? {
            None => Ok(None),
            Some(Node::Raw(raw)) => Ok(Some(raw)),
            Some(_) => Err(Flaw::field(name, "something that has no parts")),
        }
    }

    fn member(&self, name: &'static str) -> Result<Option<&Node<'a>>, Flaw> {
        let mut found = self.all(name);
        let Some(first) = found.next() else {
            return Ok(None);
        };
        if found.any(|other| other != first) {
            return Err(Flaw::field(name, "there once"));
        }
        Ok(Some(first).filter(|node| !node.is_null()))
    }

    /// Returns whether a member is there, be it null.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// Returns whether a member is a text.
    pub(crate) fn is_text(&self, name: &'static str) -> Result<bool, Flaw> {
        Ok(self.member(name)?.is_some_and(Node::is_text))
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
    pub(crate) fn name(&self, name: &'static str) -> Result<Cow<'a, str>, Flaw> {
        self.optional_name(name)?
            .ok_or(Flaw::field(name, "a name of 1 to 512 bytes"))
    }

    /// Returns an id or a name, where there is one.
    pub(crate) fn optional_name(&self, name: &'static str) -> Result<Option<Cow<'a, str>>, Flaw> {
        let text = self.text(name)?;
        text.map(|text| bounded(text, name)).transpose()
    }

    /// Returns an id that may be twice, as the first says: the second is that
    /// of what lies within.
    pub(crate) fn first_name(&self, name: &'static str) -> Result<Cow<'a, str>, Flaw> {
        let first = self
            .all(name)
            .next()
            .and_then(Node::raw)
            .and_then(read_text);
        let first = first.ok_or(Flaw::field(name, "a name of 1 to 512 bytes"))?;
        bounded(first, name)
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
    pub(crate) fn object(&self, name: &'static str) -> Result<Option<Cow<'_, Self>>, Flaw> {
        let object = match self.member(name)? {
            None => return Ok(None),
            Some(Node::Object(object)) => Some(Cow::Borrowed(object)),
            Some(Node::Raw(raw)) => match Object::read(raw.get(), &Shape::FLAT) {
                Err(Flaw::TooManyParts) => return Err(Flaw::TooManyParts),
                object => object.ok().map(Cow::Owned),
            },
            Some(_) => None,
        };
        object.map(Some).ok_or(Flaw::field(name, "an object"))
    }

    /// Returns an object within that must be there.
    pub(crate) fn needed(&self, name: &'static str) -> Result<Cow<'_, Self>, Flaw> {
        self.object(name)?.ok_or(Flaw::field(name, "an object"))
    }

    /// Takes every member of an object within, each of them an object, whatever
    /// its name; false where it is absent.
    pub(crate) fn each_object(
        &self,
        name: &'static str,
        mut take: impl FnMut(&Object<'_>) -> Result<(), Flaw>,
    ) -> Result<bool, Flaw> {
        let Some(within) = self.object(name)? else {
            return Ok(false);
        };
        for (_, node) in within.members() {
            let raw = node.raw().ok_or(Flaw::field(name, "objects"))?;
            match Object::read(raw.get(), &Shape::FLAT) {
                Ok(object) => take(&object)?,
                Err(Flaw::TooManyParts) => return Err(Flaw::TooManyParts),
                Err(_) => return Err(Flaw::field(name, "objects")),
            }
        }
        Ok(true)
    }

    /// Returns the objects of a list that the object's shape reads into; none
    /// where it is absent.
    pub(crate) fn objects(&self, name: &'static str) -> Result<impl Iterator<Item = &Self>, Flaw> {
        let nodes = match self.member(name)? {
            None => &[][..],
            Some(Node::List(nodes)) if nodes.iter().all(|node| node.as_object().is_some()) => nodes,
            Some(_) => return Err(Flaw::field(name, "a list of objects")),
        };
        Ok(nodes.iter().filter_map(Node::as_object))
    }

    /// Returns whether any name in the object, at any depth, is one that calls
    /// bear: an id or a status.
    pub(crate) fn has_call_field(&self) -> bool {
        let mut members = self.members();
        members.any(|(name, node)| trace::is_trace(name) || trace::is_in(node))
    }

    /// Returns the first bytes of what a member says.
    pub(crate) fn excerpt(&self, name: &'static str) -> Result<String, Flaw> {
        if let Some(Node::Text(text)) = self.member(name)? {
            return Ok(text.clone());
        }
        Ok(self.get(name)?.map(excerpt).unwrap_or_default())
    }
}

/// Returns how many values a list has.
pub(crate) fn length(raw: &RawValue) -> Option<usize> {
    let list: Vec<IgnoredAny> = serde_json::from_str(raw.get()).ok()?;
    Some(list.len())
}

fn bounded<'a>(text: Cow<'a, str>, name: &'static str) -> Result<Cow<'a, str>, Flaw> {
    if text.chars().all(char::is_whitespace) || text.len() > MAX_NAME_BYTES {
        return Err(Flaw::field(name, "a name of 1 to 512 bytes"));
    }
    Ok(text)
}
