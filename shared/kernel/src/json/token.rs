//! Names from outside, made fit for ids, refs, paths and branches.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Everything outside `[A-Za-z0-9._-]`.
const UNSAFE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-');

/// Returns the lossy token of a name, for lease and session ids
/// (`contracts.md` 4): letters lower-cased, digits, `-` and `_` kept,
/// anything else `_`, outer `_` trimmed; `empty` where nothing is left.
pub fn token(name: &str, empty: &str) -> String {
    let mapped: String = name
        .chars()
        .map(|c| match c {
            'a'..='z' | '0'..='9' | '-' | '_' => c,
            'A'..='Z' => c.to_ascii_lowercase(),
            _ => '_',
        })
        .collect();
    let trimmed = mapped.trim_matches('_');
    if trimmed.is_empty() { empty } else { trimmed }.to_owned()
}

/// Returns an injective spelling of a name for paths and references
/// (`contracts.md` 11): percent-encoded outside `[A-Za-z0-9._-]`, and never
/// `.` or `..`.
pub fn encode(name: &str) -> String {
    match name {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ => utf8_percent_encode(name, UNSAFE).to_string(),
    }
}

/// Returns an injective spelling of a name for one part of a branch: as
/// [`encode`], and nothing that git refuses in a ref.
pub fn encode_branch(name: &str) -> String {
    let encoded = encode(name);
    // Git refuses `..`, a leading or trailing dot and a trailing `.lock`.
    let dotted = encoded.replace("..", "%2E%2E");
    let mut text = match dotted.strip_prefix('.') {
        Some(rest) => format!("%2E{rest}"),
        None => dotted,
    };
    if let Some(stem) = text.strip_suffix(".lock") {
        text = format!("{stem}%2Elock");
    }
    if let Some(stem) = text.strip_suffix('.') {
        text = format!("{stem}%2E");
    }
    text
}

/// Returns the name that a spelling of [`encode`] or [`encode_branch`]
/// represents; `None` where it represents none.
pub fn decode(spelling: &str) -> Option<String> {
    let name = percent_decode_str(spelling).decode_utf8().ok()?;
    (!name.is_empty()).then(|| name.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tokens_follow_the_contract() {
        assert_eq!(token("Worker.1", "anon"), "worker_1");
        assert_eq!(token("__x__", "anon"), "x");
        assert_eq!(token("\u{e9}", "anon"), "anon");
        assert_eq!(token("", "session"), "session");
    }

    #[test]
    fn dots_that_mean_something_are_encoded() {
        assert_eq!(encode("."), "%2E");
        assert_eq!(encode(".."), "%2E%2E");
        assert_eq!(encode("a/../b"), "a%2F..%2Fb");
        assert_eq!(encode("x.lock"), "x.lock");
        assert_eq!(encode_branch("a/../b"), "a%2F%2E%2E%2Fb");
        assert_eq!(encode_branch("x.lock"), "x%2Elock");
        assert_eq!(encode_branch(".x."), "%2Ex%2E");
        assert_eq!(encode_branch("bd-1.2"), "bd-1.2");
    }

    proptest! {
        #[test]
        fn encoding_is_injective(a in ".{0,8}", b in ".{0,8}") {
            for spell in [encode, encode_branch] {
                prop_assert_eq!(a == b, spell(&a) == spell(&b));
                let text = spell(&a);
                prop_assert_eq!(decode(&text).unwrap_or_default(), a.as_str());
            }
        }
    }
}
