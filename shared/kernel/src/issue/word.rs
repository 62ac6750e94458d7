//! The words that a person may give for an issue's status and priority. A row
//! may have others, which are kept as they are.

use super::Status;

/// The statuses that a change may set in any issue memory: those of the
/// harness, then those that only beads gives a meaning.
pub const KNOWN_STATUSES: [&str; 8] = [
    "open",
    "in_progress",
    "blocked",
    "closed",
    "tombstone",
    "deferred",
    "pinned",
    "hooked",
];

/// The words of the priorities, in their order: the first is 0.
const PRIORITY_WORDS: [&str; 5] = ["critical", "high", "medium", "low", "backlog"];

/// Words of other trackers, and the status that each one is.
const OTHER_STATUSES: [(&str, &str); 12] = [
    ("done", "closed"),
    ("completed", "closed"),
    ("complete", "closed"),
    ("resolved", "closed"),
    ("fixed", "closed"),
    ("wontfix", "closed"),
    ("todo", "open"),
    ("ready", "open"),
    ("reopened", "open"),
    ("doing", "in_progress"),
    ("started", "in_progress"),
    ("in-progress", "in_progress"),
];

/// Returns whether a status is one that a change may set in any issue memory.
pub fn is_known(status: &Status) -> bool {
    KNOWN_STATUSES.contains(&status.as_str())
}

/// Returns the known status that a word of another tracker is: `closed` for
/// `done`.
pub fn status_meant_by(word: &str) -> Option<&'static str> {
    let word = word.trim().to_ascii_lowercase().replace(' ', "-");
    let known = KNOWN_STATUSES
        .into_iter()
        .find(|known| *known == word || known.replace('_', "-") == word);
    known.or_else(|| {
        let mut others = OTHER_STATUSES.into_iter();
        others.find(|(other, _)| *other == word).map(|(_, is)| is)
    })
}

/// Reads a priority: 0 to 4, with or without a `P` before it, or its word.
///
/// # Errors
///
/// A text that says what a priority is.
pub fn parse_priority(text: &str) -> Result<i64, String> {
    let word = text.trim().to_ascii_lowercase();
    let number = word.strip_prefix('p').unwrap_or(&word);
    let by_number = number.parse::<usize>().ok();
    let by_word = || PRIORITY_WORDS.iter().position(|known| *known == word);
    by_number
        .filter(|number| *number < PRIORITY_WORDS.len() && !word.contains('+'))
        .or_else(by_word)
        .and_then(|number| i64::try_from(number).ok())
        .ok_or_else(|| {
            format!(
                "a priority is 0 to 4, or {}",
                PRIORITY_WORDS
                    .join(", ")
                    .replace(", backlog", " or backlog")
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_is_a_number_or_its_word() {
        for (text, expected) in [
            ("0", 0),
            ("4", 4),
            ("P1", 1),
            ("critical", 0),
            ("High", 1),
            ("medium", 2),
            ("low", 3),
            ("backlog", 4),
        ] {
            assert_eq!(parse_priority(text), Ok(expected), "{text}");
        }
        for text in [
            "5",
            "-1",
            "1.5",
            "",
            "urgent",
            "+1",
            "p",
            "99999999999999999999",
        ] {
            let error = parse_priority(text).unwrap_err();
            assert!(error.contains("0 to 4") && error.contains("high"), "{text}");
        }
    }

    #[test]
    fn a_status_of_the_harness_or_of_beads_is_known() {
        for word in KNOWN_STATUSES {
            assert!(is_known(&Status::parse(word)), "{word}");
            assert_eq!(status_meant_by(word), Some(word));
        }
        assert!(!is_known(&Status::parse("done")));
        assert_eq!(status_meant_by("Done"), Some("closed"));
        assert_eq!(status_meant_by("in progress"), Some("in_progress"));
        assert_eq!(status_meant_by("odd"), None);
    }
}
