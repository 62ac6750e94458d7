//! The commands of a shell text, found without running it.
//!
//! The text is read once, with bounds on its length and depth: the text is a
//! step's, and no text may cost more than its length. What the scanner does not
//! understand makes the whole text unreadable, and no rule that allows commands
//! matches an unreadable text.

mod options;
mod scan;
mod subcommand;
mod unwrap;
mod word;

pub use word::ShellWord;

/// The longest text that is read, in bytes.
pub const TEXT_MAX: usize = 64 * 1024;

/// How deep substitutions, subshells and texts of other shells may be nested.
const DEPTH_MAX: usize = 24;

/// The most commands of a text.
const COMMANDS_MAX: usize = 500;

/// The most bytes of commands that are arguments of others: the text of one may
/// be read as a part of several.
const INNER_MAX: usize = 4 * TEXT_MAX;

/// One simple command of a shell text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellCommand {
    /// The program and its arguments, without assignments and redirections.
    pub words: Vec<ShellWord>,
    /// The files that its output is redirected to.
    pub written: Vec<ShellWord>,
    /// The texts that it reads: here-documents and here-strings.
    pub input: Vec<ShellWord>,
    /// The here-documents that are still to be read, by number.
    documents: Vec<usize>,
}

impl ShellCommand {
    /// Returns the name of the program, without its folder; none where it is
    /// known only when the text runs.
    pub fn program(&self) -> Option<&str> {
        let word = self.words.first().filter(|word| !word.is_dynamic)?;
        Some(word.text.rsplit('/').next().unwrap_or(&word.text))
    }

    /// Returns the arguments.
    pub fn arguments(&self) -> &[ShellWord] {
        self.words.get(1..).unwrap_or_default()
    }

    fn size(&self) -> usize {
        let words = self.words.iter().chain(&self.input);
        words.map(|word| word.text.len()).sum()
    }
}

/// Returns every command that a shell text may run, as far as the text itself
/// reports it; none where the text is not understood.
///
/// Commands that are arguments of others are found too: those of `sudo`, `env`
/// and the like, and the texts of `sh -c`, `eval` and a shell's here-document.
pub fn commands_of(text: &str) -> Option<Vec<ShellCommand>> {
    let mut found = scan::commands(text, 0)?;
    let (mut next, mut size) = (0, 0);
    // What is found while this runs is unwrapped too.
    while next < found.len() {
        let (command, depth) = &found[next];
        let inner = unwrap::inner(command, *depth)?;
        next += 1;
        size += inner
            .iter()
            .map(|(command, _)| command.size())
            .sum::<usize>();
        found.extend(inner);
        if found.len() > COMMANDS_MAX || size > INNER_MAX {
            return None;
        }
    }
    Some(found.into_iter().map(|(command, _)| command).collect())
}

#[cfg(test)]
mod tests;
