//! The values of `harness.toml`, as people write them.

use super::SettingsError;
use humantime::parse_duration;
use premath_evidence::Agent;
use premath_kernel::json::size::Size;
use premath_kernel::policy::budget::nano_usd;
use premath_kernel::policy::network::{HostPattern, Ports};
use premath_kernel::policy::retry::Backoff;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, MapAccess, SeqAccess, Unexpected, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

/// A value that is written in one of a few ways.
///
/// What a value is not written as stays `None`: it is an error that says what
/// is expected.
trait Written: Sized {
    /// Says what is expected, for an error.
    fn expected() -> Cow<'static, str>;

    /// Returns the JSON schema of what is expected.
    fn schema() -> Schema;

    /// Reads a text; an error says why it does not fit.
    fn of_text(_: &str) -> Option<Result<Self, String>> {
        None
    }

    /// Reads a whole number; nothing where it is out of range.
    fn of_number(_: u64) -> Option<Self> {
        None
    }

    /// Reads any other number, as it is written.
    fn of_other_number(_: &str) -> Option<Result<Self, String>> {
        None
    }

    /// Reads a list.
    fn of_list<'de, L: SeqAccess<'de>>(_: L) -> Option<Result<Self, L::Error>> {
        None
    }

    /// Reads a table.
    fn of_table<'de, M: MapAccess<'de>>(_: M) -> Option<Result<Self, M::Error>> {
        None
    }
}

struct WrittenVisitor<T>(PhantomData<T>);

impl<'de, T: Written> Visitor<'de> for WrittenVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&T::expected())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        match T::of_text(text) {
            None => Err(E::invalid_type(Unexpected::Str(text), &self)),
            Some(read) => read.map_err(E::custom),
        }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        if let Ok(number) = u64::try_from(number) {
            return self.visit_u64(number);
        }
        match T::of_other_number(&number.to_string()) {
            Some(read) => read.map_err(E::custom),
            None => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        let read = T::of_number(number);
        read.ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        match T::of_other_number(&number.to_string()) {
            Some(read) => read.map_err(E::custom),
            None => Err(E::invalid_type(Unexpected::Float(number), &self)),
        }
    }

    fn visit_seq<L: SeqAccess<'de>>(self, list: L) -> Result<T, L::Error> {
        let wrong = || L::Error::invalid_type(Unexpected::Seq, &self);
        T::of_list(list).unwrap_or_else(|| Err(wrong()))
    }

    fn visit_map<M: MapAccess<'de>>(self, table: M) -> Result<T, M::Error> {
        let wrong = || M::Error::invalid_type(Unexpected::Map, &self);
        T::of_table(table).unwrap_or_else(|| Err(wrong()))
    }
}

/// Reads a type as it is written, and gives it a schema.
macro_rules! read_as_written {
    ($([$($generic:tt)*] $type:ty,)+) => {
        $(
            impl<'de, $($generic)*> Deserialize<'de> for $type {
                fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                    from.deserialize_any(WrittenVisitor(PhantomData))
                }
            }

            impl<$($generic)*> JsonSchema for $type {
                fn schema_name() -> Cow<'static, str> {
                    Self::expected()
                }

                fn inline_schema() -> bool {
                    true
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    Self::schema()
                }
            }
        )+
    };
}

read_as_written! {
    [] Words,
    [const LEAST: u64, const MOST: u64] Whole<LEAST, MOST>,
    [] Wait,
    [] Period,
    [T: FromStr<Err: fmt::Display>] Word<T>,
    [] Bytes,
    [] Dollars,
    [] BackoffValue,
}

/// Reads one of a few words; an error says what is expected.
pub(super) fn one_of<'de, T: Copy, D: Deserializer<'de>>(
    from: D,
    words: &[(&str, T)],
    expected: &'static str,
) -> Result<T, D::Error> {
    struct OneOf<'a, T>(&'a [(&'a str, T)], &'static str);

    impl<T: Copy> Visitor<'_> for OneOf<'_, T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.1)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            let found = self.0.iter().find(|(word, _)| *word == text);
            let value = found.map(|(_, value)| *value);
            value.ok_or_else(|| {
                E::custom(format_args!(
                    "unknown variant `{text}`, expected {}",
                    self.1
                ))
            })
        }
    }

    from.deserialize_any(OneOf(words, expected))
}

/// Reads the word of a flag.
///
/// # Errors
///
/// [`SettingsError::Value`], naming the flag, for a word that is not among them.
pub(super) fn flag_word<T: Copy>(
    name: &'static str,
    given: &str,
    words: &[(&str, T)],
    expected: &str,
) -> Result<T, SettingsError> {
    let known = words.iter().find(|(word, _)| *word == given);
    known
        .map(|(_, value)| *value)
        .ok_or_else(|| SettingsError::Value {
            name,
            detail: format!("unknown rule `{given}`; expected {expected}"),
        })
}

/// A list of texts, or one text with commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Words(pub(super) Vec<String>);

impl Written for Words {
    fn expected() -> Cow<'static, str> {
        "a list of texts".into()
    }

    fn schema() -> Schema {
        json_schema!({"type": ["array", "string"], "items": {"type": "string"}})
    }

    fn of_text(text: &str) -> Option<Result<Self, String>> {
        Some(Ok(Self(super::split(text))))
    }

    fn of_list<'de, L: SeqAccess<'de>>(mut list: L) -> Option<Result<Self, L::Error>> {
        let mut words = Vec::new();
        loop {
            match list.next_element() {
                Ok(Some(word)) => words.push(word),
                Ok(None) => return Some(Ok(Self(words))),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// A whole number within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whole<const LEAST: u64, const MOST: u64>(pub(super) u64);

/// A whole number, which may be 0.
pub(super) type Natural = Whole<0, { u64::MAX }>;

impl Natural {
    /// Returns it as a count of things.
    pub(super) fn count(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// A whole number above 0.
pub(super) type Count = Whole<1, { u64::MAX }>;

impl<const LEAST: u64, const MOST: u64> Written for Whole<LEAST, MOST> {
    fn expected() -> Cow<'static, str> {
        match MOST {
            u64::MAX if LEAST == 0 => "a whole number from 0".into(),
            u64::MAX => "a whole number above 0".into(),
            _ => format!("a whole number from {LEAST} to {MOST}").into(),
        }
    }

    fn schema() -> Schema {
        match MOST {
            u64::MAX => json_schema!({"type": "integer", "minimum": LEAST}),
            _ => json_schema!({"type": "integer", "minimum": LEAST, "maximum": MOST}),
        }
    }

    fn of_number(number: u64) -> Option<Self> {
        (LEAST..=MOST).contains(&number).then_some(Self(number))
    }
}

/// A duration, which may be nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait(pub(super) Duration);

impl Written for Wait {
    fn expected() -> Cow<'static, str> {
        "a duration such as \"45m\" or \"1h 30m\"".into()
    }

    fn schema() -> Schema {
        json_schema!({"type": "string", "examples": ["45m", "1h 30m"]})
    }

    fn of_text(text: &str) -> Option<Result<Self, String>> {
        Some(parse_duration(text).map(Self).map_err(|error| {
            let expected = Self::expected();
            format!("invalid duration `{text}`: expected {expected}: {error}")
        }))
    }
}

/// A duration above nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period(pub(super) Duration);

impl Written for Period {
    fn expected() -> Cow<'static, str> {
        Wait::expected()
    }

    fn schema() -> Schema {
        Wait::schema()
    }

    fn of_text(text: &str) -> Option<Result<Self, String>> {
        let wait = Wait::of_text(text)?;
        Some(wait.and_then(|Wait(duration)| match duration.is_zero() {
            true => Err("must be greater than 0".to_owned()),
            false => Ok(Self(duration)),
        }))
    }
}

/// A text that is one of a few words, or has a form of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word<T>(pub(super) T);

impl<T: FromStr<Err: fmt::Display>> Written for Word<T> {
    fn expected() -> Cow<'static, str> {
        "a text in quotes".into()
    }

    fn schema() -> Schema {
        json_schema!({"type": "string"})
    }

    fn of_text(text: &str) -> Option<Result<Self, String>> {
        Some(
            text.parse()
                .map(Self)
                .map_err(|error: T::Err| error.to_string()),
        )
    }
}

/// A size as people write it, or a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bytes(pub(super) Size);

impl Written for Bytes {
    fn expected() -> Cow<'static, str> {
        "a size, for example \"1GiB\" or 0".into()
    }

    fn schema() -> Schema {
        json_schema!({"type": ["string", "integer"], "minimum": 0, "examples": ["1GiB", 0]})
    }

    fn of_text(text: &str) -> Option<Result<Self, String>> {
        let size: Result<Size, _> = text.parse();
        Some(size.map(Self).map_err(|error| error.to_string()))
    }

    fn of_number(number: u64) -> Option<Self> {
        Some(Self(Size(number)))
    }
}

/// A sum in dollars, in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dollars(pub(super) u64);

impl Written for Dollars {
    fn expected() -> Cow<'static, str> {
        "an amount in dollars above 0, for example 25 or 0.50".into()
    }

    fn schema() -> Schema {
        json_schema!({"type": ["number", "string"], "exclusiveMinimum": 0})
    }

    fn of_text(text: &str) -> Option<Result<Self, String>> {
        let nano = nano_usd(text).map_err(|error| error.to_string());
        Some(nano.and_then(|nano| match nano {
            0 => Err("must be greater than 0".to_owned()),
            nano => Ok(Self(nano)),
        }))
    }

    fn of_number(number: u64) -> Option<Self> {
        Self::of_text(&number.to_string())?.ok()
    }

    fn of_other_number(number: &str) -> Option<Result<Self, String>> {
        Self::of_text(number)
    }
}

/// How long a backoff class waits: a duration, or one that doubles up to a cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BackoffValue(pub(super) Backoff);

/// A wait that doubles with each attempt.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Doubling {
    base: Wait,
    cap: Wait,
}

impl Written for BackoffValue {
    fn expected() -> Cow<'static, str> {
        "a duration, or { base = \"15s\", cap = \"10m\" }".into()
    }

    fn schema() -> Schema {
        json_schema!({"type": ["string", "object"], "required": ["base", "cap"], "properties": {
            "base": {"type": "string"}, "cap": {"type": "string"},
        }, "additionalProperties": false})
    }

    fn of_text(text: &str) -> Option<Result<Self, String>> {
        let wait = Wait::of_text(text)?;
        Some(wait.map(|Wait(wait)| Self(Backoff::Fixed(wait))))
    }

    fn of_table<'de, M: MapAccess<'de>>(table: M) -> Option<Result<Self, M::Error>> {
        let read = Doubling::deserialize(MapAccessDeserializer::new(table));
        Some(read.map(|Doubling { base, cap }| {
            let (base, cap) = (base.0, cap.0);
            Self(Backoff::Exponential { base, cap })
        }))
    }
}

/// Agents by their names.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(try_from = "Words")]
#[schemars(with = "Words")]
pub(super) struct AgentNames(pub(super) Vec<Agent>);

impl TryFrom<Words> for AgentNames {
    type Error = String;

    fn try_from(Words(names): Words) -> Result<Self, String> {
        let agent =
            |name: String| Agent::named(&name).ok_or_else(|| super::agent::unknown("agent", &name));
        names
            .into_iter()
            .map(agent)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// Patterns of hosts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(try_from = "Words")]
#[schemars(with = "Words")]
pub(super) struct Hosts(pub(super) Vec<HostPattern>);

impl TryFrom<Words> for Hosts {
    type Error = <HostPattern as FromStr>::Err;

    fn try_from(Words(entries): Words) -> Result<Self, Self::Error> {
        let entries = entries.iter().map(|entry| entry.parse());
        entries.collect::<Result<_, _>>().map(Self)
    }
}

/// Numbers of ports.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct PortList(Vec<Whole<1, 65_535>>);

impl PortList {
    /// Returns the ports.
    pub(super) fn ports(&self) -> Ports {
        let numbers = self.0.iter().map(|port| u16::try_from(port.0));
        numbers.flatten().collect()
    }
}
