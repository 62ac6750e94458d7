//! Canonical JSON and the digests over it (`contracts.md` 1).
//!
//! Keys are sorted by bytes, there is no white space, strings and numbers are
//! written as `serde_json` writes them.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::{self, BufWriter, Write};

/// Returns the canonical JSON text of a value.
///
/// A [`Value`]'s objects are sorted maps, so a struct goes through one first.
pub fn canonical(value: &impl Serialize) -> String {
    // `to_string` of a `Value` writes the same text, through a formatter.
    canonical_value(&value_of(value))
}

/// Returns the `sha256:` digest of a value's canonical JSON: `D(v)`.
pub fn digest(value: &impl Serialize) -> String {
    format!("sha256:{}", ref_digest(value))
}

/// Returns [`digest`] of a value that serialises its object keys in byte order
/// already, as types do whose fields stand in that order: without a copy of
/// it, and in constant memory.
///
/// The tests of each such type compare it with [`digest`]; debug builds do so
/// at every call.
pub fn digest_ordered(value: &impl Serialize) -> String {
    let digest = hashed(value, 16 * 1024);
    debug_assert_eq!(digest, self::digest(value), "the fields are not in order");
    digest
}

/// Returns [`digest`] of a value that is generic JSON already: its objects are
/// sorted maps, so it is written as it is.
pub fn digest_value(value: &Value) -> String {
    match value {
        // What tools give is mostly one long text.
        Value::String(text) => {
            let mut bytes = Vec::with_capacity(text.len() + text.len() / 8 + 2);
            quote(text, &mut bytes);
            prefixed(&Sha256::digest(&bytes))
        }
        other => hashed(other, 2 * 1024),
    }
}

/// Writes a string as `serde_json` does, several bytes at a time.
fn quote(text: &str, out: &mut Vec<u8>) {
    /// Wide enough for the compiler's vectors, short enough for one line end.
    const STRIDE: usize = 16;
    let bytes = text.as_bytes();
    out.push(b'"');
    let mut written = 0;
    for (number, stride) in bytes.chunks(STRIDE).enumerate() {
        // No early exit: the comparison of a whole stride is one operation.
        if !stride
            .iter()
            .fold(false, |any, byte| any | is_escaped(*byte))
        {
            continue;
        }
        for (offset, byte) in stride.iter().enumerate().filter(|(_, b)| is_escaped(**b)) {
            let at = number * STRIDE + offset;
            out.extend_from_slice(bytes.get(written..at).unwrap_or_default());
            written = at + 1;
            match *byte {
                b'"' => out.extend_from_slice(b"\\\""),
                b'\\' => out.extend_from_slice(b"\\\\"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\t' => out.extend_from_slice(b"\\t"),
                0x08 => out.extend_from_slice(b"\\b"),
                0x0c => out.extend_from_slice(b"\\f"),
                byte => {
                    out.extend_from_slice(b"\\u00");
                    out.extend_from_slice(hex(&[byte]).as_bytes());
                }
            }
        }
    }
    out.extend_from_slice(bytes.get(written..).unwrap_or_default());
    out.push(b'"');
}

const fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Hashes JSON text as it is written, so many bytes at a time.
fn hashed(value: &impl Serialize, buffer: usize) -> String {
    let mut writer = BufWriter::with_capacity(buffer, Hasher(Sha256::new()));
    let written = serde_json::to_writer(&mut writer, value);
    let hasher = writer.into_inner().ok().filter(|_| written.is_ok());
    // A hasher does not fail; neither do kernel types (see `value_of`).
    hasher.map_or_else(String::new, |hasher| prefixed(&hasher.0.finalize()))
}

struct Hasher(Sha256);

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the bare hexadecimal digest of a value's canonical JSON: `H(v)`.
pub fn ref_digest(value: &impl Serialize) -> String {
    sha256_hex(canonical(value).as_bytes())
}

/// Returns the canonical JSON text of a value that is generic JSON already:
/// its objects are sorted maps, so nothing is copied.
pub fn canonical_value(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns the lower-case hexadecimal SHA-256 of bytes.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns bytes as lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    push_hex(bytes, &mut text);
    text
}

/// Returns a digest as it stands in a document.
fn prefixed(digest: &[u8]) -> String {
    const PREFIX: &str = "sha256:";
    let mut text = String::with_capacity(PREFIX.len() + digest.len() * 2);
    text.push_str(PREFIX);
    push_hex(digest, &mut text);
    text
}

fn push_hex(bytes: &[u8], text: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 0xf)]));
    }
}

/// Returns a value as generic JSON.
///
/// Kernel types serialise to JSON without fail: they have string keys only
/// and no foreign `Serialize`; should one ever not, it reads as `null`, which
/// no digest of ours has.
pub fn value_of(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_sorted_by_bytes_at_every_depth() {
        let value = json!({"b": {"z": 1, "a": [true, null]}, "a": "x"});
        assert_eq!(
            canonical(&value),
            r#"{"a":"x","b":{"a":[true,null],"z":1}}"#
        );
    }

    proptest::proptest! {
        #[test]
        fn a_text_is_quoted_as_serde_json_does(text in "(?s)[\\x00-\\x7f\u{80}-\u{7ff}]{0,80}") {
            let mut bytes = Vec::new();
            quote(&text, &mut bytes);
            proptest::prop_assert_eq!(&bytes, &serde_json::to_vec(&text).unwrap());
            let value = Value::from(text);
            proptest::prop_assert_eq!(digest_value(&value), digest(&value));
        }
    }

    #[test]
    fn every_character_that_is_escaped_is_quoted_as_serde_json_does() {
        for byte in 0..=0x7f {
            let text = format!("{0}x{0}{0}", char::from(byte));
            let mut bytes = Vec::new();
            quote(&text, &mut bytes);
            assert_eq!(bytes, serde_json::to_vec(&text).unwrap());
        }
    }

    #[test]
    fn the_digest_of_the_empty_object_is_that_of_its_two_bytes() {
        assert_eq!(digest(&json!({})), format!("sha256:{}", sha256_hex(b"{}")));
        assert_eq!(
            sha256_hex(b""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
