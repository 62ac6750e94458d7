//! Canonical JSON and the digests over it (`contracts.md` 1).
//!
//! Keys are sorted by bytes, there is no white space, strings and numbers are
//! written as `serde_json` writes them.

mod quote;
mod sum;
mod writer;

pub use sum::Sum;

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use writer::Writer;

/// Returns the canonical JSON text of a value.
///
/// A [`Value`]'s objects are sorted maps, so a struct goes through one first.
pub fn canonical(value: &(impl Serialize + ?Sized)) -> String {
    // `to_string` of a `Value` writes the same text, through a formatter.
    canonical_value(&value_of(value))
}

/// Returns the `sha256:` digest of a value's canonical JSON: `D(v)`.
pub fn digest(value: &(impl Serialize + ?Sized)) -> String {
    format!("sha256:{}", ref_digest(value))
}

/// Returns [`digest`] of a value that serialises its object keys in byte order
/// already, as types do whose fields are in that order, and as generic JSON
/// does: without a copy of it, and in constant memory.
///
/// Debug builds compare it with [`digest`] at every call.
pub fn digest_ordered(value: &(impl Serialize + ?Sized)) -> String {
    sum_ordered(value).digest()
}

/// Returns [`digest_ordered`] as its bytes.
pub fn sum_ordered(value: &(impl Serialize + ?Sized)) -> Sum {
    let sum = Sum::from(Writer::hash(value));
    debug_assert_eq!(
        sum.digest(),
        self::digest(value),
        "the fields are not in order"
    );
    sum
}

/// Returns the bare hexadecimal digest of a value's canonical JSON: `H(v)`.
pub fn ref_digest(value: &(impl Serialize + ?Sized)) -> String {
    sha256_hex(canonical(value).as_bytes())
}

/// Returns the digest that a policy's artifact must carry: `pol1_` and the
/// digest of its canonical JSON without `policyDigest`.
pub(crate) fn policy_digest(document: &Map<String, Value>) -> String {
    let mut content = document.clone();
    content.remove("policyDigest");
    format!("pol1_{}", ref_digest(&content))
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
pub fn value_of(value: &(impl Serialize + ?Sized)) -> Value {
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

    #[test]
    fn the_digest_of_the_empty_object_is_that_of_its_two_bytes() {
        assert_eq!(digest(&json!({})), format!("sha256:{}", sha256_hex(b"{}")));
        assert_eq!(
            sha256_hex(b""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
