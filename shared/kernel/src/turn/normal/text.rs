//! Texts in normal form: trimmed, and absent where nothing is left.

use super::super::path::{EvidenceError, Path};
use std::collections::BTreeSet;

pub(super) fn required(text: String, at: &Path<'_>, name: &str) -> Result<String, EvidenceError> {
    trimmed(text).ok_or_else(|| at.field(name).error("must be a non-empty string"))
}

pub(super) fn optional(text: Option<String>) -> Option<String> {
    trimmed(text?)
}

pub(super) fn trimmed(text: String) -> Option<String> {
    let ends = [text.as_bytes().first(), text.as_bytes().last()];
    // Most texts have nothing to trim, and stay what they are.
    if ends.iter().all(|end| end.is_some_and(u8::is_ascii_graphic)) {
        return Some(text);
    }
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

pub(super) fn refs(refs: BTreeSet<String>) -> BTreeSet<String> {
    refs.into_iter().filter_map(trimmed).collect()
}
