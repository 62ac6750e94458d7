//! Which untracked files git skips: the ignore files of a worktree, read as
//! text that a step wrote, and the operator's own.

use super::beneath::{Beneath, path};
use super::ignore_rules::{of_operator, parsed};
use super::made_folder::open_without_waiting;
use ignore::Match;
use ignore::gitignore::Gitignore;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

/// The file of a folder's rules.
pub(super) const RULES: &[u8] = b".gitignore";
/// An ignore file larger than this is skipped.
const TEXT_MAX: u64 = 1 << 20;

/// The rules in force in one folder: its own, then those of the folders above.
pub(super) struct Exclusion {
    /// Rules with the length of the prefix that paths lose before they match.
    rules: Vec<(usize, Gitignore)>,
    /// The operator's rules, which come last.
    outer: Vec<Arc<Gitignore>>,
}

/// Reads a file of the operator's.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    open_without_waiting(file)?
        .take(TEXT_MAX)
        .read_to_end(&mut text)?;
    Ok(text)
}

impl Exclusion {
    /// Reads the operator's rules; a file that is not there has none.
    pub(super) fn new(outer: &[std::path::PathBuf]) -> Self {
        let outer = outer
            .iter()
            .filter_map(|file| read(file).ok())
            .filter_map(|text| of_operator(&text))
            .collect();
        Self {
            rules: Vec::new(),
            outer,
        }
    }

    /// Adds the rules of a folder that is entered, if it `has_rules`; reports how
    /// many rules there were before, to be given to [`Exclusion::leave`].
    pub(super) fn enter(&mut self, root: &Beneath, folder: &[u8], has_rules: bool) -> usize {
        let before = self.rules.len();
        let file = path(folder).join(path(RULES));
        if has_rules
            && let Ok(Some(text)) = root.read(&file, TEXT_MAX)
            && let Some(rules) = parsed(&text)
        {
            let prefix = if folder.is_empty() {
                0
            } else {
                folder.len() + 1
            };
            self.rules.push((prefix, rules));
        }
        before
    }

    /// Removes the rules that were added since.
    pub(super) fn leave(&mut self, before: usize) {
        self.rules.truncate(before);
    }

    /// Returns whether a path is ignored; the folders above it are not.
    pub(super) fn excludes(&self, name: &[u8], is_folder: bool) -> bool {
        let inner = self
            .rules
            .iter()
            .rev()
            .map(|(prefix, rules)| (name.get(*prefix..).unwrap_or(name), rules));
        let outer = self.outer.iter().map(|rules| (name, &**rules));
        for (name, rules) in inner.chain(outer) {
            match rules.matched(Path::new(path(name)), is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}
