//! Which files a sparse checkout leaves out, by the patterns of git.

use super::beneath::path;
use super::ignore_rules::parsed;
use super::scan::left_out_entry;
use super::tree_files::TreeFiles;
use super::{Tree, TreeError};
use git2::{Index, IndexEntry, IndexEntryExtendedFlag};
use ignore::gitignore::Gitignore;
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

/// Where a git folder of a worktree has its patterns.
pub(crate) const PATTERNS: &str = "info/sparse-checkout";

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
        !self.is_checkout && self.setting("core.sparseCheckout", false)
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
            if rules.leaves_out(&name) && root.look(path(&name)).is_ok_and(|at| at.is_none()) {
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

/// Returns the patterns of a worktree's git folder; none where it has no such file.
/// No link is followed, and nothing is waited for.
pub(crate) fn patterns_of(git_folder: &Path) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat(CWD, git_folder.join(PATTERNS), flags, Mode::empty());
    let file = match opened.map_err(io::Error::from) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => File::from(opened?),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = Vec::new();
    file.take(PATTERNS_MAX + 1).read_to_end(&mut text)?;
    match text.len() as u64 > PATTERNS_MAX {
        true => Err(io::Error::other("it is larger than 1 MiB")),
        false => Ok(Some(text)),
    }
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
    fn a_file_of_patterns_that_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join(PATTERNS);
        assert_eq!(patterns_of(folder.path()).unwrap(), None);
        std::fs::create_dir(folder.path().join("info")).unwrap();
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
