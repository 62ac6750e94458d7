//! Which untracked files git skips: the ignore files of a worktree, read as
//! text that a step wrote, and the operator's own.

use super::beneath::{Beneath, path};
use super::ignore_rules::{of_operator, parsed};
use super::made_folder::of_file;
use ignore::Match;
use ignore::gitignore::Gitignore;
use premath_platform::file::read_regular;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file of a folder's rules.
pub(super) const RULES: &[u8] = b".gitignore";
/// An ignore file of a worktree that is larger than this is skipped.
const TEXT_MAX: u64 = 1 << 20;
/// How many bytes of ignore files a step may have changed. Their automata take a
/// thousand times the time of reading them, in every look at the files from then on.
const CHANGED_MAX: u64 = 128 << 10;
/// From how many bytes on the rules of a text are made once for a look.
const LARGE: usize = 16 << 10;

/// The rules in force in one folder: its own, then those of the folders above.
pub(super) struct Exclusion {
    /// Rules with the length of the prefix that paths lose before they match.
    rules: Vec<(usize, Arc<Gitignore>)>,
    /// The operator's rules, which come last.
    outer: Vec<Arc<Gitignore>>,
    /// The rules of large texts.
    large: HashMap<Vec<u8>, Option<Arc<Gitignore>>>,
    /// How many bytes of changed files may still be read.
    left: u64,
}

/// What a folder has of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FolderRules {
    /// It has no ignore file.
    None,
    /// It has that of the commit.
    Known,
    /// It has one that was changed, or that the commit does not have.
    Changed,
}

/// Changed rules are more than are read.
#[derive(Debug)]
pub(super) struct TooManyRules;

impl Exclusion {
    /// Reads the operator's rules; a file that is not there has none.
    ///
    /// # Errors
    ///
    /// A file cannot be read: what it hides, such as a file with secrets, must not be
    /// taken for work.
    pub(super) fn new(outer: &[PathBuf]) -> io::Result<Self> {
        let mut rules = Vec::new();
        for file in outer {
            let text = read_regular(file).map_err(|error| of_file(file, error))?;
            rules.extend(text.and_then(|text| of_operator(&text)));
        }
        Ok(Self {
            rules: Vec::new(),
            outer: rules,
            large: HashMap::new(),
            left: CHANGED_MAX,
        })
    }

    /// Returns how many rules there are, to be given to [`Exclusion::leave`].
    pub(super) const fn mark(&self) -> usize {
        self.rules.len()
    }

    /// Adds the rules of a folder that is entered.
    ///
    /// # Errors
    ///
    /// The rules were changed and are too many; they are not added.
    pub(super) fn enter(
        &mut self,
        root: &Beneath,
        folder: &[u8],
        has: FolderRules,
    ) -> Result<(), TooManyRules> {
        let most = match has {
            FolderRules::None => return Ok(()),
            FolderRules::Known => TEXT_MAX,
            FolderRules::Changed => self.left,
        };
        let file = path(folder).join(path(RULES));
        let text = match root.read(&file, most) {
            Ok(Some(text)) => text,
            Err(error)
                if error.kind() == io::ErrorKind::FileTooLarge && has == FolderRules::Changed =>
            {
                return Err(TooManyRules);
            }
            Ok(None) | Err(_) => return Ok(()),
        };
        if has == FolderRules::Changed {
            self.left -= text.len() as u64;
        }
        if let Some(rules) = self.rules_of(text) {
            let prefix = if folder.is_empty() {
                0
            } else {
                folder.len() + 1
            };
            self.rules.push((prefix, rules));
        }
        Ok(())
    }

    /// Returns the rules of a text; those of a large one are made once.
    fn rules_of(&mut self, text: Vec<u8>) -> Option<Arc<Gitignore>> {
        if text.len() < LARGE {
            return parsed(&text).map(Arc::new);
        }
        let rules = self.large.entry(text);
        rules
            .or_insert_with_key(|text| parsed(text).map(Arc::new))
            .clone()
    }

    /// Removes the rules that were added since.
    pub(super) fn leave(&mut self, before: usize) {
        self.rules.truncate(before);
    }

    /// Returns whether rules ignore a path, those for the folders above it left aside.
    pub(super) fn excludes(&self, name: &[u8], is_folder: bool) -> bool {
        self.excludes_by(&self.rules, name, is_folder)
    }

    /// Returns whether a folder is ignored, or one above it: nothing that is in it can be
    /// exempt (gitignore(5)). The rules of all of them are there.
    pub(super) fn excludes_folder(&self, folder: &[u8]) -> bool {
        let ends = folder.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let ends = ends.map(|(end, _)| end).chain([folder.len()]);
        let mut begin = 0;
        for end in ends {
            let count = self.rules.partition_point(|(prefix, _)| *prefix <= begin);
            if self.excludes_by(&self.rules[..count], &folder[..end], true) {
                return true;
            }
            begin = end + 1;
        }
        false
    }

    fn excludes_by(&self, rules: &[(usize, Arc<Gitignore>)], name: &[u8], is_folder: bool) -> bool {
        let inner = rules
            .iter()
            .rev()
            .map(|(prefix, rules)| (name.get(*prefix..).unwrap_or(name), &**rules));
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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};

    #[test]
    fn a_file_of_the_operators_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let [missing, pipe, plain] =
            ["missing", "pipe", "plain"].map(|name| folder.path().join(name));
        mkfifoat(CWD, &pipe, Mode::RWXU).unwrap();
        // No file is too large, and none is cut.
        let text = [&b"#\n".repeat(1 << 20)[..], b"/secret\n"].concat();
        std::fs::write(&plain, text).unwrap();
        let below = plain.join("below");
        let null = folder.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &null).unwrap();
        let rules = Exclusion::new(&[missing, below, null, plain]).unwrap();
        assert!(rules.excludes(b"secret", false) && !rules.excludes(b"open", false));
        let error = Exclusion::new(std::slice::from_ref(&pipe))
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(&pipe.display().to_string()), "{error}");
    }
}
