//! Whether a command is a certain subcommand of its program.

use super::options::{GIT, ValueOptions};
use super::{ShellCommand, ShellWord};

/// An operand of a command, as far as it is known what its options mean.
struct Operand<'c> {
    word: &'c ShellWord,
    /// Whether it may be the value of the option before it instead.
    is_uncertain: bool,
}

impl ShellCommand {
    /// Returns whether the command is the subcommand whose words are given, as
    /// far as that can be known: `is_sure` asks for what holds in any case, else
    /// for what may be.
    ///
    /// The first operand is the subcommand. Which options have a value is known
    /// for git alone; for other programs the word after an option may be an
    /// operand or not.
    pub(in super::super) fn is_subcommand(
        &self,
        names: &[&str],
        is_sure: bool,
        matches: impl Fn(&str, &str) -> bool,
    ) -> bool {
        // How many names the operands so far may be.
        let mut reached = vec![false; names.len() + 1];
        reached[0] = true;
        for Operand { word, is_uncertain } in self.operands() {
            if reached[names.len()] {
                return true;
            }
            if is_sure && (is_uncertain || word.is_dynamic) {
                return false;
            }
            let is_skipped = is_uncertain || word.is_dynamic;
            let mut next = match is_skipped {
                true => reached.clone(),
                false => vec![false; reached.len()],
            };
            for (at, name) in names.iter().enumerate() {
                next[at + 1] |= reached[at] && matches(name, &word.text);
            }
            reached = next;
        }
        reached[names.len()]
    }

    fn operands(&self) -> impl Iterator<Item = Operand<'_>> {
        let is_known = self.program() == Some("git");
        let options = match is_known {
            true => GIT,
            false => ValueOptions::default(),
        };
        let words = self.arguments();
        // `cargo +nightly` names a toolchain.
        let operands = options.operands(words).map(move |at| (at, &words[at]));
        let operands = operands.filter(|(_, word)| !word.text.starts_with('+'));
        operands.map(move |(at, word)| {
            let before = at.checked_sub(1).map(|before| &words[before]);
            let may_have_value = |option: &ShellWord| {
                let text = &*option.text;
                option.is_option()
                    && text != "--"
                    && !text.starts_with("--no-")
                    && !text.contains('=')
            };
            Operand {
                word,
                is_uncertain: !is_known && before.is_some_and(may_have_value),
            }
        })
    }
}
