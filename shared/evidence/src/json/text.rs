//! The texts of values.

use memchr::memchr;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// How many bytes of a text are kept where an excerpt does.
const EXCERPT_BYTES: usize = 512;

/// Returns the first bytes of a value: a text as it is, anything
/// else as its JSON.
pub(crate) fn excerpt(raw: &RawValue) -> String {
    match read_text(raw) {
        Some(text) => cut(&text).to_owned(),
        None => cut(raw.get()).to_owned(),
    }
}

/// Returns the first bytes of a text, at the end of a character.
pub(crate) fn cut(text: &str) -> &str {
    let mut end = EXCERPT_BYTES.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns a text, borrowed where nothing in it is escaped.
pub(super) fn read_text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let within = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if memchr(b'\\', within.as_bytes()).is_none() {
        return Some(Cow::Borrowed(within));
    }
    serde_json::from_str(raw.get()).ok().map(Cow::Owned)
}
