//! The hash chain over the trajectory's lines (`contracts.md` 6, ours).
//!
//! A row that the harness appends carries `chain`: the SHA-256 over the chain
//! value before it and its own text. Lines that carry none (rows of other
//! programs, rows from before the chain, comments) are covered by the next row
//! that does. So no line before a chained row can be inserted, removed, moved
//! or altered without a break.
//!
//! The value of a chained row is `sha256:` and the hexadecimal SHA-256 over:
//!
//! 1. the chain value of the chained row before it, or [`GENESIS`] where there
//!    is none, and a line feed;
//! 2. for each line between that row and this one, in their order:
//!    `raw:`, the hexadecimal SHA-256 of the line without its line feed, and a
//!    line feed; lines of white space alone are left out;
//! 3. the row's canonical JSON without its `chain` member.
//!
//! A chained row is written in canonical JSON, its `chain` member included.

use crate::json::canonical::{Sum, hex};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The member of a row that holds its chain value.
pub(crate) const CHAIN_FIELD: &str = "chain";

/// What the first chained row continues from.
pub(crate) const GENESIS: &str = "premath.harness.trajectory.chain.v1";

const PREFIX: &str = "sha256:";

/// The chain value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainHead([u8; 32]);

/// A text is not a chain value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a chain value: it must be `sha256:` and 64 lower-case hexadecimal digits")]
pub struct NoChainHead(pub String);

impl fmt::Display for ChainHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", hex(&self.0))
    }
}

impl FromStr for ChainHead {
    type Err = NoChainHead;

    fn from_str(text: &str) -> Result<Self, NoChainHead> {
        let refused = || NoChainHead(text.chars().take(100).collect());
        let digits = text.strip_prefix(PREFIX).ok_or_else(refused)?.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != bytes.len() * 2 {
            return Err(refused());
        }
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let (high, low) = (digit(pair[0]), digit(pair[1]));
            *byte = high.zip(low).map(|(h, l)| h << 4 | l).ok_or_else(refused)?;
        }
        Ok(Self(bytes))
    }
}

/// The end of a chain: what the next row continues from.
///
/// Follows a file line by line, in constant memory.
#[derive(Clone, Debug)]
pub struct Chain {
    head: Option<ChainHead>,
    /// Over the head and the lines since.
    ahead: Sha256,
    /// How many lines came since the head.
    since: u64,
}

impl Default for Chain {
    fn default() -> Self {
        Self::at(None)
    }
}

impl Chain {
    /// Returns a chain that ends at a value, or has not begun.
    pub(crate) fn at(head: Option<ChainHead>) -> Self {
        let mut ahead = Sha256::new();
        match head {
            Some(head) => ahead.update(head.to_string()),
            None => ahead.update(GENESIS),
        }
        ahead.update(b"\n");
        Self {
            head,
            ahead,
            since: 0,
        }
    }

    /// Returns the value of the last chained row.
    pub const fn head(&self) -> Option<ChainHead> {
        self.head
    }

    /// Returns the value of a row that comes next, by its canonical JSON
    /// without a chain value.
    pub(crate) fn value_of(&self, body: &str) -> ChainHead {
        let mut hash = self.ahead.clone();
        hash.update(body);
        ChainHead(hash.finalize().into())
    }

    /// Returns the line of a row that is appended next, with its chain value;
    /// `body` is its canonical JSON. The chain itself continues when the line
    /// is in the file: [`Chain::follow`].
    pub fn line(&self, body: &str) -> (String, ChainHead) {
        let mut members = Members::of(body.as_bytes()).unwrap_or_default();
        members.0.remove(CHAIN_FIELD);
        let body = members.text(None);
        let value = self.value_of(&body);
        (members.text(Some(value)), value)
    }

    /// Takes in the next line of a file as it is: the chain value that it
    /// carries is trusted. Returns that value.
    pub fn follow(&mut self, line: &[u8]) -> Option<ChainHead> {
        let value = Members::chained(line).map(|(_, value)| value);
        match value {
            Some(value) => self.continue_from(value),
            None => self.absorb(line),
        }
        value
    }

    /// Continues from a chained row.
    pub fn continue_from(&mut self, value: ChainHead) {
        *self = Self::at(Some(value));
    }

    /// Takes in a line that has no chain value.
    pub(crate) fn absorb(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        self.ahead.update(b"raw:");
        self.ahead.update(Sum::of(line).hex());
        self.ahead.update(b"\n");
        self.since += 1;
    }
}

/// The members of a row, each with the text that it has in the line.
#[derive(Default)]
struct Members<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Members<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok().map(Self)
    }

    /// Reads a line that carries a chain value.
    fn chained(line: &'a [u8]) -> Option<(Self, ChainHead)> {
        // A cheap look keeps other lines from being parsed.
        find(line, b"\"chain\"")?;
        let members = Self::of(line)?;
        let text = members.0.get(CHAIN_FIELD)?.get();
        let value = text.strip_prefix('"')?.strip_suffix('"')?.parse().ok()?;
        Some((members, value))
    }

    /// Writes the members in canonical order, with a chain value where one is
    /// given and without one otherwise.
    fn text(&self, chain: Option<ChainHead>) -> String {
        let mut text = String::from("{");
        let mut put = |name: &str, value: &str| {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&crate::json::canonical::canonical(name));
            text.push(':');
            text.push_str(value);
        };
        let mut chain = chain.map(|value| format!("\"{value}\""));
        for (name, value) in &self.0 {
            if name == CHAIN_FIELD {
                continue;
            }
            if name.as_str() > CHAIN_FIELD
                && let Some(value) = chain.take()
            {
                put(CHAIN_FIELD, &value);
            }
            put(name, value.get());
        }
        if let Some(value) = chain {
            put(CHAIN_FIELD, &value);
        }
        text.push('}');
        text
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// A chained row as a file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChainedLine {
    /// The value that it carries.
    pub(super) value: ChainHead,
    /// Its text without that value.
    pub(super) body: String,
    /// Whether the line is what the harness writes, byte for byte.
    pub(super) canonical: bool,
}

/// Reads a chained row; `None` if the line is not one.
pub(super) fn chained(line: &[u8]) -> Option<ChainedLine> {
    let (members, value) = Members::chained(line)?;
    Some(ChainedLine {
        value,
        body: members.text(None),
        canonical: members.text(Some(value)).as_bytes() == line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::canonical::sha256_hex;

    #[test]
    fn the_values_are_those_of_the_rule() {
        let mut chain = Chain::default();
        let (line, first) = chain.line(r#"{"a":1,"z":2}"#);
        let expected = sha256_hex(format!("{GENESIS}\n{{\"a\":1,\"z\":2}}").as_bytes());
        assert_eq!(
            line,
            format!(r#"{{"a":1,"chain":"sha256:{expected}","z":2}}"#)
        );
        assert_eq!(chain.follow(line.as_bytes()), Some(first));
        assert_eq!(chain.follow(br#"{"foreign":1}"#), None);
        assert_eq!(chain.follow(b"  \t"), None);
        assert_eq!(chain.since, 1);
        let raw = sha256_hex(br#"{"foreign":1}"#);
        let (line, second) = chain.line(r#"{"b":1}"#);
        let expected = sha256_hex(format!("{first}\nraw:{raw}\n{{\"b\":1}}").as_bytes());
        assert_eq!(line, format!(r#"{{"b":1,"chain":"sha256:{expected}"}}"#));
        assert_eq!(chain.follow(line.as_bytes()), Some(second));
        assert_eq!((chain.head(), chain.since), (Some(second), 0));
    }

    #[test]
    fn a_value_reads_back_and_nothing_else_reads() {
        let value = Chain::default().value_of("{}");
        assert_eq!(value.to_string().parse(), Ok(value));
        let text = value.to_string();
        for wrong in [
            "",
            "sha256:",
            &text[..70],
            &text.to_uppercase(),
            &text.replace("sha256", "sha512"),
            &format!("{text}0"),
            &format!(" {text}"),
        ] {
            assert!(wrong.parse::<ChainHead>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_chain_member_of_another_shape_chains_nothing() {
        for line in [
            r#"{"chain":5}"#,
            r#"{"chain":"sha256:ab"}"#,
            r#"{"x":{"chain":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}"#,
            r#"["chain"]"#,
        ] {
            let mut chain = Chain::default();
            assert_eq!(chain.follow(line.as_bytes()), None, "{line}");
            assert_eq!(chain.since, 1, "{line}");
            assert_eq!(chained(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn a_row_that_has_a_value_already_gets_one_of_its_own() {
        let chain = Chain::default();
        let (line, value) = chain.line(r#"{"a":1}"#);
        assert_eq!(chain.line(&line), (line, value));
    }
}
