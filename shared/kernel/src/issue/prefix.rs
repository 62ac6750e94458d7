//! The prefix of the ids that new issues get.

/// The longest prefix, in bytes.
const PREFIX_MAX: usize = 24;

/// The prefix where no other is known.
pub const PREFIX_DEFAULT: &str = "bd";

/// Returns the prefix that fits the name of a repository: its letters and digits
/// in lower case, in words that `-` joins. `None` where that leaves no word that
/// begins with a letter.
pub fn prefix_of(name: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    let words = lower.split(|char: char| !char.is_ascii_alphanumeric());
    let mut prefix = String::new();
    for word in words.filter(|word| !word.is_empty()) {
        let joint = usize::from(!prefix.is_empty());
        if prefix.len() + joint + word.len() > PREFIX_MAX {
            break;
        }
        if joint > 0 {
            prefix.push('-');
        }
        prefix.push_str(word);
    }
    prefix_fault(&prefix).is_none().then_some(prefix)
}

/// Returns why a text cannot be a prefix.
pub fn prefix_fault(prefix: &str) -> Option<String> {
    let is_word = |word: &str| {
        let is_char = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        !word.is_empty() && word.bytes().all(is_char)
    };
    let begins_with_letter = prefix.starts_with(|char: char| char.is_ascii_lowercase());
    let is_prefix =
        begins_with_letter && prefix.len() <= PREFIX_MAX && prefix.split('-').all(is_word);
    (!is_prefix).then(|| {
        format!(
            "expected 1 to {PREFIX_MAX} lower-case letters and digits that begin with a letter, \
             in words that `-` joins"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_made_of_the_words_of_a_name() {
        for (name, prefix) in [
            ("parser", Some("parser")),
            ("My_Parser.rs", Some("my-parser-rs")),
            ("--x--", Some("x")),
            (
                "a-very-long-name-of-a-repository",
                Some("a-very-long-name-of-a"),
            ),
            ("2048", None),
            ("3d-printer", None),
            ("\u{fc}ber", Some("ber")),
            ("", None),
            ("x\u{202e}\n", Some("x")),
            ("abcdefghijklmnopqrstuvwxyz", None),
        ] {
            assert_eq!(prefix_of(name).as_deref(), prefix, "{name:?}");
        }
    }

    #[test]
    fn what_is_no_prefix_is_refused() {
        for prefix in [
            "",
            "A",
            "a-",
            "-a",
            "a--b",
            "1a",
            "a b",
            "abcdefghijklmnopqrstuvwxyz",
        ] {
            assert!(prefix_fault(prefix).is_some(), "{prefix}");
        }
        assert_eq!(prefix_fault("gl-web2"), None);
    }
}
