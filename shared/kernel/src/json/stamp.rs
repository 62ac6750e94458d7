//! Times as they are stored in files.

use crate::json::time;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A time and the text that it was read from or is written as.
///
/// A time from another program is rewritten unchanged; one of ours has
/// microseconds and ends in `Z` (`contracts.md` 6). Compare [`Stamp::time`],
/// never the text.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(
    inline,
    with = "String",
    description = "A time, RFC 3339.",
    extend("format" = "date-time")
)]
pub struct Stamp {
    time: Timestamp,
    text: String,
}

impl Stamp {
    /// Takes a time of ours; what is below a microsecond is cut off.
    pub fn at(time: Timestamp) -> Self {
        let text = time::micros(time);
        Self {
            time: time::parse(&text).unwrap_or(time),
            text,
        }
    }

    /// Reads an RFC 3339 time and keeps its text; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        Some(Self {
            time: time::parse(text)?,
            text: text.to_owned(),
        })
    }

    /// Returns the instant.
    pub const fn time(&self) -> Timestamp {
        self.time
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// A time and its text, as [`Stamp`], borrowed from the line that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampText<'a> {
    time: Timestamp,
    text: &'a str,
}

impl<'a> StampText<'a> {
    /// Reads an RFC 3339 time; `None` for anything else.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let time = time::parse(text)?;
        Some(Self { time, text })
    }

    /// Returns the instant.
    pub const fn time(self) -> Timestamp {
        self.time
    }
}

impl<'a> From<&'a Stamp> for StampText<'a> {
    fn from(stamp: &'a Stamp) -> Self {
        Self {
            time: stamp.time,
            text: &stamp.text,
        }
    }
}

impl From<StampText<'_>> for Stamp {
    fn from(stamp: StampText<'_>) -> Self {
        Self {
            time: stamp.time,
            text: stamp.text.to_owned(),
        }
    }
}

impl From<Timestamp> for Stamp {
    fn from(time: Timestamp) -> Self {
        Self::at(time)
    }
}

impl<'de> Deserialize<'de> for Stamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;

        impl Visitor<'_> for Read {
            type Value = Stamp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an RFC 3339 time such as 2026-03-05T10:00:00Z")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Stamp, E> {
                Stamp::parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_str(Read)
    }
}

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// Returns a time as `yyyymmddThhmmssZ`, for ids.
pub(crate) fn compact(time: Timestamp) -> String {
    format!("{time:.0}")
        .chars()
        .filter(|c| !matches!(c, '-' | ':'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_kept_and_ours_has_microseconds() {
        let foreign = Stamp::parse(" 2026-03-05T11:00:00+01:00 ").unwrap();
        let ours = Stamp::at("2026-03-05T10:00:00.000000999Z".parse().unwrap());
        assert_eq!(foreign.as_str(), "2026-03-05T11:00:00+01:00");
        assert_eq!(ours.as_str(), "2026-03-05T10:00:00.000000Z");
        assert_eq!(foreign.time(), ours.time());
        assert_eq!(compact(ours.time()), "20260305T100000Z");
        assert_eq!(Stamp::parse("yesterday"), None);
    }
}
