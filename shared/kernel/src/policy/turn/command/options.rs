//! Which words of a command are options, values of options, and operands.

use super::ShellWord;

/// The options of a program whose value is the next word. Others have none, or
/// have it in the same word.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ValueOptions {
    /// Their letters: `n` of `-n 5`.
    pub(super) letters: &'static str,
    /// Their long forms: `--signal` of `--signal KILL`.
    pub(super) long: &'static [&'static str],
}

/// The options of git before its subcommand.
pub(super) const GIT: ValueOptions = ValueOptions {
    letters: "Cc",
    long: &[
        "--attr-source",
        "--config-env",
        "--git-dir",
        "--namespace",
        "--super-prefix",
        "--work-tree",
    ],
};

impl ValueOptions {
    /// Returns whether the word after an option is its value.
    pub(super) fn takes_next(self, option: &ShellWord) -> bool {
        let text = &*option.text;
        if text.starts_with("--") {
            return self.long.contains(&text);
        }
        // Of several letters in one word, the rest after one with a value is
        // that value.
        let mut letters = text.char_indices().skip(1);
        let with_value = letters.find(|(_, letter)| self.letters.contains(*letter));
        with_value.is_some_and(|(at, letter)| at + letter.len_utf8() == text.len())
    }

    /// Returns the places of the operands: what is neither an option nor the
    /// value of one.
    pub(super) fn operands(self, words: &[ShellWord]) -> impl Iterator<Item = usize> {
        let (mut is_value, mut is_after) = (false, false);
        words.iter().enumerate().filter_map(move |(at, word)| {
            if std::mem::take(&mut is_value) {
                return None;
            }
            if is_after || !word.is_option() {
                return Some(at);
            }
            is_after = word.text == "--";
            is_value = self.takes_next(word);
            None
        })
    }
}
