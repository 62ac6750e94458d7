//! Which files a sparse checkout leaves out, by the patterns of git.

use super::beneath::{Beneath, kind, path};
use super::ignore_rules::parsed;
use super::scan::left_out_entry;
use super::tree_files::TreeFiles;
use super::{Tree, TreeError};
use git2::{Index, IndexEntry, IndexEntryExtendedFlag};
use ignore::gitignore::Gitignore;
use rustix::fs::FileType;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// Where a git folder of a worktree has its patterns.
pub(crate) const PATTERNS: &str = "info/sparse-checkout";

/// The folder of that file.
const INFO: &str = "info";

/// The largest file of patterns that is read.
const PATTERNS_MAX: u64 = 1 << 20;

/// The patterns of a sparse checkout.
pub(super) struct SparseRules(Gitignore);

impl SparseRules {
    /// Returns whether a file of a tree is not to be in the worktree.
    pub(super) fn leaves_out(&self, name: &[u8]) -> bool {
        let found = self.0.matched_path_or_any_parents(path(name), false);
        !found.is_ignore()
    }
}

impl Tree {
    /// Returns whether some files may be left out of the worktree. A checkout for
    /// verifications has all of them.
    pub(super) fn is_sparse(&self) -> bool {
        !self.is_checkout && self.settings().sparse_checkout
    }

    /// Returns the patterns of the worktree; none where all files are checked out.
    pub(super) fn sparse_rules(&self) -> Result<Option<SparseRules>, TreeError> {
        if !self.is_sparse() {
            return Ok(None);
        }
        let text = patterns_of(self.git_folder());
        let text = text.map_err(self.refused("read", Path::new(PATTERNS)))?;
        Ok(text.and_then(|text| parsed(&text)).map(SparseRules))
    }

    /// Returns the index entries of files of a tree that the patterns leave out, that
    /// an index does not have and that are not in the worktree.
    pub(super) fn newly_left_out(
        &self,
        target: &git2::Tree<'_>,
        index: &Index,
    ) -> Result<Vec<IndexEntry>, TreeError> {
        let mut found = Vec::new();
        if !self.is_sparse() {
            return Ok(found);
        }
        // Making the rules takes longer than looking that there is nothing new.
        let rules = OnceCell::new();
        let root = self.beneath()?;
        let mut absence = Absence::default();
        let mut files = TreeFiles::new(&self.repository, target);
        while let Some((name, leaf)) = files.next().map_err(self.failed("read the tree"))? {
            if index.get_path(path(&name), 0).is_some() {
                continue;
            }
            if rules.get().is_none() {
                let _ = rules.set(self.sparse_rules()?);
            }
            let Some(rules) = rules.get().and_then(Option::as_ref) else {
                return Ok(found);
            };
            // What cannot be looked at may be there.
            let is_absent = |at: &[u8]| root.look(path(at)).is_ok_and(|at| at.is_none());
            if rules.leaves_out(&name) && absence.has(&name, is_absent) {
                found.push(left_out_entry(&name, leaf));
            }
        }
        Ok(found)
    }

    /// Returns the files of a tree that a sparse checkout leaves out.
    pub(super) fn left_out(&self, target: &git2::Tree<'_>) -> Result<BTreeSet<Vec<u8>>, TreeError> {
        if !self.is_sparse() {
            return Ok(BTreeSet::new());
        }
        let skipped = IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
        let index = self.index_copy(target)?;
        let entries = index.iter();
        let entries = entries.filter(|entry| entry.flags_extended & skipped != 0);
        let entries = entries.chain(self.newly_left_out(target, &index)?);
        Ok(entries.map(|entry| entry.path).collect())
    }

    /// Returns an index of a tree, for one that cannot be read: what the patterns leave
    /// out, and what is not in the worktree, is left out of it too.
    pub(super) fn index_of(&self, target: &git2::Tree<'_>) -> Result<Index, TreeError> {
        let mut index = Index::new().map_err(self.failed("make an index"))?;
        let left_out = self.newly_left_out(target, &index)?;
        index
            .read_tree(target)
            .and_then(|()| left_out.iter().try_for_each(|entry| index.add(entry)))
            .map_err(self.failed("read the tree"))?;
        Ok(index)
    }

    /// Adds what the patterns leave out of a tree to an index that does not have it.
    pub(super) fn with_left_out(
        &self,
        mut index: Index,
        target: &git2::Tree<'_>,
    ) -> Result<Index, TreeError> {
        for entry in self.newly_left_out(target, &index)? {
            index.add(&entry).map_err(self.failed("read the index"))?;
        }
        Ok(index)
    }
}

/// The last folder that was looked for and is not in the worktree, and the last one
/// that is. Paths of an index are sorted: one look is enough for all that is below a
/// folder that is gone.
#[derive(Default)]
pub(super) struct Absence {
    gone: Option<Vec<u8>>,
    here: Option<Vec<u8>>,
}

impl Absence {
    /// Returns whether a path is not there, by looks at it and at folders above it.
    pub(super) fn has(&mut self, name: &[u8], is_absent: impl Fn(&[u8]) -> bool) -> bool {
        let gone = self.gone.as_ref();
        let rest = gone.and_then(|gone| name.strip_prefix(&gone[..]));
        if rest.is_some_and(|rest| rest.first() == Some(&b'/')) {
            return true;
        }
        if !is_absent(name) {
            return false;
        }
        let ends = name.iter().enumerate().rev();
        let above = ends
            .filter(|(_, byte)| **byte == b'/')
            .map(|(end, _)| &name[..end]);
        // The topmost one, from the file upwards.
        for folder in above {
            if self.here.as_deref() == Some(folder) {
                break;
            }
            if !is_absent(folder) {
                self.here = Some(folder.to_vec());
                break;
            }
            self.gone = Some(folder.to_vec());
        }
        true
    }
}

/// Returns the patterns of a worktree's git folder; none where it has no such file.
/// No link below that folder is followed, and nothing is waited for.
pub(crate) fn patterns_of(git_folder: &Path) -> io::Result<Option<Vec<u8>>> {
    let git = Beneath::open(git_folder)?;
    let info = git.look(Path::new(INFO))?;
    if info.is_some_and(|stat| kind(&stat) != FileType::Directory) {
        return Err(io::Error::other(format!("`{INFO}` is not a folder")));
    }
    git.read(Path::new(PATTERNS), PATTERNS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_leave_out_what_git_leaves_out() {
        let cone = "/*\n!/*/\n/src/\n!/src/*/\n/src/deep/\n";
        let plain = "*.md\n!/docs/old.md\n/src/\n/{{name}}/\n";
        for (text, name, expected) in [
            (cone, "README", false),
            (cone, "left/kept.txt", true),
            (cone, "src/a.txt", false),
            (cone, "src/other/a.txt", true),
            (cone, "src/deep/er/a.txt", false),
            (plain, "docs/new.md", false),
            (plain, "docs/old.md", true),
            (plain, "docs/a.txt", true),
            (plain, "src/any/thing", false),
            (plain, "{{name}}/a.txt", false),
            (plain, "name/a.txt", true),
            ("", "a", true),
        ] {
            let rules = SparseRules(parsed(text.as_bytes()).unwrap());
            assert_eq!(rules.leaves_out(name.as_bytes()), expected, "{text}{name}");
        }
    }

    #[test]
    fn what_is_below_a_folder_that_is_not_there_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = Beneath::open(folder.path()).unwrap();
        std::fs::create_dir_all(folder.path().join("a/here")).unwrap();
        std::fs::write(folder.path().join("a/here/x"), "").unwrap();
        let mut absence = Absence::default();
        let looks = std::cell::Cell::new(0);
        let mut has = |name: &str| {
            looks.set(0);
            let is_absent = |at: &[u8]| {
                looks.set(looks.get() + 1);
                root.look(path(at)).unwrap().is_none()
            };
            (absence.has(name.as_bytes(), is_absent), looks.get())
        };
        for (name, expected) in [
            ("a/gone/x", (true, 3)),
            ("a/gone/y/z", (true, 0)),
            ("a/gone-too", (true, 1)),
            ("a/here/w", (true, 2)),
            ("a/here/ww", (true, 1)),
            ("a/here/x", (false, 1)),
            ("b/c/d", (true, 3)),
            ("b/e", (true, 0)),
            ("c", (true, 1)),
        ] {
            assert_eq!(has(name), expected, "{name}");
        }
    }

    #[test]
    fn a_file_of_patterns_that_is_none_is_refused() {
        use rustix::fs::{CWD, Mode};
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join(PATTERNS);
        assert_eq!(patterns_of(folder.path()).unwrap(), None);
        let info = folder.path().join("info");
        std::os::unix::fs::symlink(folder.path(), &info).unwrap();
        std::fs::write(folder.path().join("sparse-checkout"), "/*\n").unwrap();
        patterns_of(folder.path()).unwrap_err();
        std::fs::remove_file(&info).unwrap();
        std::fs::create_dir(&info).unwrap();
        rustix::fs::mkfifoat(CWD, &at, Mode::RWXU).unwrap();
        patterns_of(folder.path()).unwrap_err();
        std::fs::remove_file(&at).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &at).unwrap();
        patterns_of(folder.path()).unwrap_err();
        std::fs::remove_file(&at).unwrap();
        std::fs::write(&at, "/*\n").unwrap();
        assert_eq!(patterns_of(folder.path()).unwrap().unwrap(), b"/*\n");
    }
}
