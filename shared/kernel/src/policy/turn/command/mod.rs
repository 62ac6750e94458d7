//! The commands of a shell text, found without running it.
//!
//! One pass over the text, with bounds on its length and depth: the text is a
//! step's, and no text may cost more than its length. What the scanner does not
//! understand makes the whole text unreadable, and no rule that allows commands
//! matches an unreadable text.

mod scan;
mod unwrap;
mod word;

pub use word::ShellWord;

/// The longest text that is read, in bytes.
pub const TEXT_MAX: usize = 64 * 1024;

/// How deep substitutions, subshells and texts of other shells may be nested.
const DEPTH_MAX: usize = 24;

/// The most commands of a text.
const COMMANDS_MAX: usize = 500;

/// One simple command of a shell text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellCommand {
    /// The program and its arguments, without assignments and redirections.
    pub words: Vec<ShellWord>,
    /// The files that its output is redirected to.
    pub written: Vec<ShellWord>,
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
}

/// Returns every command that a shell text may run, as far as the text itself
/// reports it; none where the text is not understood.
///
/// Commands that are arguments of others are found too: those of `sudo`, `env`
/// and the like, and the texts of `sh -c` and `eval`.
pub fn commands_of(text: &str) -> Option<Vec<ShellCommand>> {
    let mut found = scan::commands(text, 0)?;
    let mut next = 0;
    // What is found while this runs is unwrapped too.
    while next < found.len() {
        let (command, depth) = &found[next];
        let inner = unwrap::inner(command, *depth)?;
        next += 1;
        found.extend(inner);
        if found.len() > COMMANDS_MAX {
            return None;
        }
    }
    Some(found.into_iter().map(|(command, _)| command).collect())
}

#[cfg(test)]
mod tests;
