//! A place in a document.

use std::fmt;

/// A place in a document, built on the stack while the document is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Path<'a> {
    /// The whole document.
    Root,
    /// A field, by its name on the wire.
    Field(&'a Path<'a>, &'a str),
    /// A field, by its name in a struct, which the wire has in camel case.
    Member(&'a Path<'a>, &'static str),
    /// A row of a list.
    Row(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(crate) const fn field(&'a self, name: &'a str) -> Self {
        Self::Field(self, name)
    }

    pub(crate) const fn member(&'a self, name: &'static str) -> Self {
        Self::Member(self, name)
    }

    pub(crate) const fn row(&'a self, index: usize) -> Self {
        Self::Row(self, index)
    }

    /// Returns the path without row numbers: one text for all rows of a list,
    /// so that a field unknown in each of many rows is named once.
    pub(crate) fn any_row(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text, false);
        text
    }

    fn write(&self, f: &mut impl fmt::Write, numbered: bool) -> fmt::Result {
        let parent = match self {
            Self::Root => return Ok(()),
            Self::Field(parent, _) | Self::Member(parent, _) | Self::Row(parent, _) => parent,
        };
        parent.write(f, numbered)?;
        let dot = if matches!(parent, Self::Root) {
            ""
        } else {
            "."
        };
        match self {
            Self::Root => Ok(()),
            Self::Field(_, name) => write!(f, "{dot}{}", field_name(name)),
            Self::Member(_, name) => write!(f, "{dot}{}", camel_case(name)),
            Self::Row(_, index) if numbered => write!(f, "[{index}]"),
            Self::Row(..) => f.write_str("[]"),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, true)
    }
}

/// Returns a name as it is where it is plain, and quoted with its control
/// characters escaped where it is not: names come from outside.
fn field_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("{name:?}")
    }
}

/// Returns a field of a struct as the wire names it.
fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let mut letters = part.chars();
        let head = letters.next().map(|letter| letter.to_ascii_uppercase());
        text + &head.into_iter().chain(letters).collect::<String>()
    })
}
