//! Which files a sparse checkout leaves out, by the patterns of git.

use super::Tree;
use super::beneath::path;
use super::ignore_rules::parsed;
use super::scan::left_out_entry;
use super::tree_files::TreeFiles;
use git2::{Index, IndexEntry};
use ignore::gitignore::Gitignore;
use std::fs;
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
    /// Returns the patterns of the worktree; none where all files are checked out.
    pub(super) fn sparse_rules(&self) -> Option<SparseRules> {
        if !self.setting("core.sparseCheckout", false) {
            return None;
        }
        let file = self.git_folder().join(PATTERNS);
        let meta = fs::symlink_metadata(&file).ok()?;
        let is_fit = meta.is_file() && meta.len() <= PATTERNS_MAX;
        let text = is_fit.then(|| fs::read(&file).ok()).flatten()?;
        parsed(&text).map(SparseRules)
    }

    /// Returns the index entries of files of a tree that the patterns leave out, that
    /// an index does not have and that are not in the worktree.
    pub(super) fn newly_left_out(
        &self,
        target: &git2::Tree<'_>,
        index: &Index,
    ) -> Result<Vec<IndexEntry>, super::TreeError> {
        let Some(rules) = self.sparse_rules() else {
            return Ok(Vec::new());
        };
        let root = self.beneath()?;
        let mut found = Vec::new();
        let mut files = TreeFiles::new(&self.repository, target);
        while let Some((name, leaf)) = files.next().map_err(self.failed("read the tree"))? {
            if rules.leaves_out(&name)
                && index.get_path(path(&name), 0).is_none()
                && root.look(path(&name)).is_ok_and(|at| at.is_none())
            {
                found.push(left_out_entry(&name, leaf));
            }
        }
        Ok(found)
    }
}

/// Returns the patterns of a worktree's git folder, where there are any.
pub(crate) fn patterns_of(git_folder: &Path) -> Option<String> {
    fs::read_to_string(git_folder.join(PATTERNS)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_leave_out_what_git_leaves_out() {
        let cone = "/*\n!/*/\n/src/\n!/src/*/\n/src/deep/\n";
        let plain = "*.md\n!/docs/old.md\n/src/\n";
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
            ("", "a", true),
        ] {
            let rules = SparseRules(parsed(text.as_bytes()).unwrap());
            assert_eq!(rules.leaves_out(name.as_bytes()), expected, "{text}{name}");
        }
    }
}
