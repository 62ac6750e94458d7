//! Class words: what a command reports about its own failure (`contracts.md`
//! 7).

use crate::failure::FailureClass;
use serde::Deserialize;
use serde_json::Value;

/// How many bytes at the end of a stream are looked at.
const SCANNED_BYTES: usize = 1 << 20;

/// How many words are taken.
const MAX_WORDS: usize = 32;

/// How long a word may be.
const MAX_WORD_BYTES: usize = 128;

/// What only the harness may say: these use up no attempt, so a command that
/// could claim them would be tried for ever.
const HARNESS_ONLY: [FailureClass; 2] = [FailureClass::HarnessDied, FailureClass::StepInterrupted];

/// The two fields of a document on stdout that name classes.
#[derive(Deserialize)]
struct Named {
    #[serde(rename = "failureClass", default)]
    one: Value,
    #[serde(rename = "failureClasses", default)]
    many: Value,
}

/// Returns whether only the harness finds a class. If the command of a step could name
/// it, the next attempt would get the landing reserved, its issue would never be set
/// aside, or the breaker would never open.
pub fn is_found_by_the_harness(word: &str) -> bool {
    let found = [
        FailureClass::LandingConflict,
        FailureClass::LandingNotTakenBack,
        FailureClass::LandingTargetUnusable,
        FailureClass::WorkUnfit,
    ];
    found.iter().any(|class| class.as_str() == word)
}

/// Returns whether a text has the form of a class word: `snake_case` of two
/// parts or more, or parts of lower-case letters, digits and `_` joined by dots.
pub fn is_class_word(text: &str) -> bool {
    text.len() <= MAX_WORD_BYTES
        && text.contains(['_', '.'])
        && text.split(['_', '.']).all(|part| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
}

/// Returns the classes that a command names itself, stderr first, each once, in
/// the order in which they appear.
///
/// A line on stderr that begins with a class word and a colon names it; so
/// does a JSON document on stdout, the whole of it or one line, with
/// `failureClass` or `failureClasses`. Only words that `known` accepts count,
/// and never those that the harness alone may say (`harness_died`,
/// `step_interrupted`). Of each stream the last 1 MiB is looked at, and 32
/// words are taken in all.
pub fn class_words(stderr: &[u8], stdout: &[u8], known: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut words = Vec::new();
    let mut take = |word: &str| {
        if words.len() < MAX_WORDS
            && is_class_word(word)
            && !HARNESS_ONLY.iter().any(|class| class.as_str() == word)
            && known(word)
            && !words.iter().any(|w| w == word)
        {
            words.push(word.to_owned());
        }
    };
    for line in tail(stderr).split(|b| *b == b'\n') {
        let head = line.get(..MAX_WORD_BYTES + 1).unwrap_or(line);
        if let Some(colon) = head.iter().position(|b| *b == b':')
            && let Some(Ok(word)) = head.get(..colon).map(std::str::from_utf8)
        {
            take(word);
        }
    }
    let stdout = tail(stdout);
    if !take_document(stdout, &mut take) {
        for line in stdout.split(|b| *b == b'\n') {
            take_document(line, &mut take);
        }
    }
    words
}

/// Takes what one JSON object names; returns whether the text is one.
fn take_document(text: &[u8], take: &mut impl FnMut(&str)) -> bool {
    let text = text.trim_ascii();
    if !text.starts_with(b"{") {
        return false;
    }
    let Ok(named) = serde_json::from_slice::<Named>(text) else {
        return false;
    };
    for value in [&named.one, &named.many] {
        match value {
            Value::String(word) => take(word.trim()),
            Value::Array(items) => {
                for word in items.iter().filter_map(Value::as_str) {
                    take(word.trim());
                }
            }
            _ => {}
        }
    }
    true
}

/// Returns the end of a stream, from the beginning of a line where it is cut.
fn tail(stream: &[u8]) -> &[u8] {
    let Some(cut) = stream
        .len()
        .checked_sub(SCANNED_BYTES)
        .filter(|cut| *cut > 0)
    else {
        return stream;
    };
    let end = stream.get(cut..).unwrap_or_default();
    match end.iter().position(|b| *b == b'\n') {
        Some(newline) => end.get(newline + 1..).unwrap_or_default(),
        None => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::retry::RetryPolicy;
    use proptest::prelude::*;

    fn words(stderr: &str, stdout: &str) -> Vec<String> {
        let policy = RetryPolicy::embedded().unwrap();
        class_words(stderr.as_bytes(), stdout.as_bytes(), &|w| policy.knows(w))
    }

    #[test]
    fn words_come_from_lines_of_stderr_and_documents_on_stdout() {
        let none: [&str; 0] = [];
        for (stderr, stdout, expected) in [
            ("network_timeout: no answer\n", "", &["network_timeout"][..]),
            (
                "x\ntool.result_missing: t\r\nflaky_io:",
                "",
                &["tool.result_missing", "flaky_io"],
            ),
            ("", r#"{"failureClass": "gate_timeout"}"#, &["gate_timeout"]),
            (
                "",
                "{\n \"failureClasses\": [\"flaky_io\", 7, \"gate_timeout\"]\n}\n",
                &["flaky_io", "gate_timeout"],
            ),
            (
                "",
                "log\n{\"failureClasses\": [\"flaky_io\"]}\nlog",
                &["flaky_io"],
            ),
            (
                "check_failed: a",
                r#"{"failureClass":"flaky_io","failureClasses":["check_failed"]}"#,
                &["check_failed", "flaky_io"],
            ),
            ("error: flaky_io: x", "", &none),
            (" flaky_io: x", "", &none),
            ("flaky_io", "flaky_io: x", &none),
            ("of_my_own: x", r#"{"failureClass": "of_my_own"}"#, &none),
            (
                "harness_died: x\nstep_interrupted: x",
                r#"{"failureClass": "harness_died"}"#,
                &none,
            ),
            ("", r#"{"nested": {"failureClass": "flaky_io"}}"#, &none),
            ("", r#"["flaky_io"]"#, &none),
        ] {
            assert_eq!(words(stderr, stdout), expected, "{stderr:?} {stdout:?}");
        }
    }

    #[test]
    fn the_form_of_a_word_is_that_of_the_contract() {
        for (text, expected) in [
            ("check_failed", true),
            ("tool.result_missing", true),
            ("a1_2", true),
            ("failed", false),
            ("Check_failed", false),
            ("check_", false),
            ("_check", false),
            ("a__b", false),
            ("tool.", false),
            ("", false),
        ] {
            assert_eq!(is_class_word(text), expected, "{text}");
        }
        assert!(!is_class_word(&"a_".repeat(100)));
        for class in FailureClass::ALL {
            assert!(is_class_word(class.as_str()), "{class}");
        }
    }

    #[test]
    fn a_long_stream_costs_its_end_only() {
        let mut stream = b"flaky_io: early\n".to_vec();
        stream.extend(std::iter::repeat_n(b'x', SCANNED_BYTES));
        stream.extend(b"\ngate_timeout: late\n");
        let found = class_words(&stream, b"", &|_| true);
        assert_eq!(found, ["gate_timeout"]);
        let many: String = (0..1000).map(|n| format!("w_{n}: x\n")).collect();
        assert_eq!(
            class_words(many.as_bytes(), b"", &|_| true).len(),
            MAX_WORDS
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_every_word_is_known(
            stderr in proptest::collection::vec(any::<u8>(), 0..200),
            stdout in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            prop_assert!(class_words(&stderr, &stdout, &|_| false).is_empty());
            for word in class_words(&stderr, &stdout, &|_| true) {
                prop_assert!(is_class_word(&word));
            }
        }

        #[test]
        fn text_that_looks_like_it_never_panics(stderr in "[a-c_.:\n{}\"]{0,60}", stdout in "[{}\"a-c:,\n\\[\\]]{0,60}") {
            let _ = class_words(stderr.as_bytes(), stdout.as_bytes(), &|_| true);
        }
    }
}
