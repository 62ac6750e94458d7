//! The digest of a value, from its JSON as it is.

use super::{read_text, value};
use memchr::memchr2;
use premath_kernel::json::canonical::{self, Sum};
use serde_json::value::RawValue;

/// How deep a value is looked at; what lies deeper is read like any other JSON.
const MAX_DEPTH: usize = 32;

/// Returns `D` of a value; where it is none (a text cut in the middle of a
/// character, as JavaScript leaves them, too deep, or of too many parts), `D` of
/// its JSON as text.
fn digest(raw: &RawValue) -> Sum {
    let json = raw.get();
    if is_canonical(json) {
        return Sum::of(json.as_bytes());
    }
    if let Some(text) = read_text(raw) {
        return canonical::sum_ordered(&*text);
    }
    match value::read(json) {
        Some(value) => canonical::sum_ordered(&value),
        None => canonical::sum_ordered(json),
    }
}

/// Returns `D` of a member, and of null where it is absent.
pub(crate) fn digest_of(raw: Option<&RawValue>) -> Sum {
    raw.map_or_else(|| Sum::of(b"null"), digest)
}

/// Returns `D` of a text; none where the value is none, or its text cannot be read.
pub(crate) fn digest_of_text(raw: &RawValue) -> Option<Sum> {
    let json = raw.get();
    if json.starts_with('"') && is_canonical(json) {
        return Some(Sum::of(json.as_bytes()));
    }
    Some(canonical::sum_ordered(&*read_text(raw)?))
}

/// Returns whether a value's JSON is canonical as it is, as most is. Its bytes are
/// then digested as they are. The text must be JSON. `false` is always correct, and
/// only costs time.
fn is_canonical(json: &str) -> bool {
    Canonical(json.as_bytes()).value(MAX_DEPTH) == Some(())
}

/// What is left of a value's JSON; `None` where it is not canonical.
struct Canonical<'a>(&'a [u8]);

impl<'a> Canonical<'a> {
    fn value(&mut self, depth: usize) -> Option<()> {
        match self.0.first()? {
            b'"' => self.text().map(|_| ()),
            b'{' => self.object(depth.checked_sub(1)?),
            b'[' => self.list(depth.checked_sub(1)?),
            b'-' | b'0'..=b'9' => self.number(),
            b't' | b'n' => self.skip(4),
            b'f' => self.skip(5),
            // White space.
            _ => None,
        }
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        self.skip(1)?;
        if self.take(b'}') {
            return Some(());
        }
        let mut before: Option<&[u8]> = None;
        loop {
            let name = self.text()?;
            // An escaped name is elsewhere in the order than its bytes do.
            let rises = before.is_none_or(|before| before < name);
            if !rises || name.contains(&b'\\') || !self.take(b':') {
                return None;
            }
            before = Some(name);
            self.value(depth)?;
            if self.take(b'}') {
                return Some(());
            }
            self.take(b',').then_some(())?;
        }
    }

    fn list(&mut self, depth: usize) -> Option<()> {
        self.skip(1)?;
        if self.take(b']') {
            return Some(());
        }
        loop {
            self.value(depth)?;
            if self.take(b']') {
                return Some(());
            }
            self.take(b',').then_some(())?;
        }
    }

    /// Skips a whole number of a size that is written as it is.
    fn number(&mut self) -> Option<()> {
        const MAX_DIGITS: usize = 18;
        let negative = self.take(b'-');
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit());
        let digits = digits.count();
        let zero = self.0.first() == Some(&b'0');
        self.skip(digits)?;
        let fraction = matches!(self.0.first(), Some(b'.' | b'e' | b'E'));
        (digits <= MAX_DIGITS && !fraction && !(negative && zero)).then_some(())
    }

    /// Skips a text that is escaped as canonical JSON escapes it; returns what
    /// is between its quotes.
    fn text(&mut self) -> Option<&'a [u8]> {
        self.take(b'"').then_some(())?;
        let begin = self.0;
        loop {
            self.skip(memchr2(b'"', b'\\', self.0)?)?;
            if self.take(b'"') {
                return begin.get(..begin.len() - self.0.len() - 1);
            }
            self.skip(match self.0.get(1..)? {
                [b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
                [b'u', b'0', b'0', b'0', b'0'..=b'7' | b'b' | b'e' | b'f', ..] => 6,
                [b'u', b'0', b'0', b'1', b'0'..=b'9' | b'a'..=b'f', ..] => 6,
                _ => return None,
            })?;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        match self.0.split_first() {
            Some((first, rest)) if *first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.0 = self.0.get(count..)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flaw::MAX_PARTS;
    use proptest::prelude::*;
    use serde_json::Value;

    fn check(json: &str) {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        let value: Value = serde_json::from_str(json).unwrap();
        assert_eq!(digest(raw).digest(), canonical::digest(&value), "{json}");
        if is_canonical(raw.get()) {
            assert_eq!(raw.get(), canonical::canonical(&value));
        }
    }

    /// JSON texts of values, some as canonical JSON writes them and some not.
    fn json() -> impl Strategy<Value = String> {
        let names = prop::sample::select(
            &[
                "\"\"",
                "\"a\"",
                "\"b\"",
                "\"aa\"",
                "\"\\u0061\"",
                "\"\\n\"",
                "\"é\"",
            ][..],
        );
        let gap = || prop::sample::select(&["", "", "", " ", "\n"][..]);
        let leaf = prop::sample::select(
            &[
                "null",
                "true",
                "false",
                "0",
                "-0",
                "-1",
                "7",
                "1.0",
                "1e3",
                "1E-2",
                "0.5",
                "-0.0",
                "999999999999999999",
                "1000000000000000000",
                "18446744073709551616",
                "\"\"",
                "\"x\"",
                "\"\\/\"",
                "\"\\u001f\"",
                "\"\\u001F\"",
                "{}",
                "[]",
            ][..],
        );
        leaf.prop_map(str::to_owned)
            .prop_recursive(4, 24, 4, move |within| {
                let member = (names.clone(), gap(), within.clone())
                    .prop_map(|(name, gap, value)| format!("{name}:{gap}{value}"));
                prop_oneof![
                    (prop::collection::vec(member, 0..4), gap())
                        .prop_map(|(members, gap)| format!("{{{}{gap}}}", members.join(","))),
                    (prop::collection::vec(within, 0..4), gap())
                        .prop_map(|(values, gap)| format!("[{gap}{}]", values.join(","))),
                ]
            })
    }

    proptest! {
        #[test]
        fn a_digest_is_that_of_the_value_however_it_is_written(json in json()) {
            check(&json);
        }

        #[test]
        fn a_digest_is_that_of_the_value_however_it_is_escaped(
            text in any::<String>(),
            escapes in prop::collection::vec(
                prop::sample::select(&[
                    "\\n", "\\\\", "\\\"", "\\/", "\\u00e9", "\\u001b", "\\u001B", "\\u000a", "\\u0000",
                    "\\u000b", "\\u000e", "\\u007f", "\\ud83d\\ude00", "\\b", "n", "u001b", "\u{7f}",
                ][..]),
                0..12,
            ),
        ) {
            let plain = serde_json::to_string(&text).unwrap();
            check(&format!("{}{}\"", plain.strip_suffix('"').unwrap(), escapes.concat()));
        }
    }

    #[test]
    fn what_is_canonical_is_seen_to_be() {
        for json in [
            "null",
            r#"{"cmd":"cat x\n","cwd":"/","env":{},"n":[1,-20,true]}"#,
            r#""\u0000\u001f\b\"\\""#,
        ] {
            assert!(is_canonical(json), "{json}");
            check(json);
        }
        for json in [r#"{"b":1,"a":2}"#, r#"{"a":1,"a":1}"#, "[ 1]", "1.0", "-0"] {
            assert!(!is_canonical(json), "{json}");
            check(json);
        }
    }

    #[test]
    fn a_value_of_any_depth_has_a_digest() {
        for depth in [MAX_DEPTH, MAX_DEPTH + 1, 100] {
            check(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
        }
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let broad = format!("[{}0]", "0, ".repeat(MAX_PARTS));
        for json in [deep, broad] {
            let raw: &RawValue = serde_json::from_str(&json).unwrap();
            assert_eq!(digest(raw).digest(), canonical::digest(&json));
        }
    }

    #[test]
    fn no_name_makes_an_object_something_else() {
        for gap in ["", " "] {
            let json = format!("{{\"$serde_json::private::RawValue\":{gap}\"{{}}\"}}");
            let raw: &RawValue = serde_json::from_str(&json).unwrap();
            let expected = json.replace(' ', "");
            assert_eq!(digest(raw), Sum::of(expected.as_bytes()));
        }
    }
}
