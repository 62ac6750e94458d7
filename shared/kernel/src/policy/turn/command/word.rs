//! A word of a shell command.

/// A word, as far as it is known before the text runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellWord {
    /// The word without its quotes; of an expansion, the text that expands.
    pub text: String,
    /// Whether the word is known only when the text runs: it has an expansion.
    pub is_dynamic: bool,
}

impl ShellWord {
    /// Returns whether the word assigns a variable.
    pub(super) fn is_assignment(&self) -> bool {
        let Some((name, _)) = self.text.split_once('=') else {
            return false;
        };
        let name = name.strip_suffix('+').unwrap_or(name);
        let name = name.split('[').next().unwrap_or(name);
        let mut letters = name.chars();
        let is_start = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
        letters.next().is_some_and(is_start)
            && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    }

    /// Returns whether the word is an option.
    pub(super) fn is_option(&self) -> bool {
        self.text.starts_with('-') && self.text.len() > 1
    }
}
