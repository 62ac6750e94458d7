//! The rest of a repository, which a worktree must not write.

use super::Tree;
use super::beneath::path;
use std::fs;
use std::path::{Path, PathBuf};

impl Tree {
    /// Returns the repository's git folder and every worktree of it but this
    /// one, sorted.
    pub fn others(&self) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = self
            .other_places()
            .into_iter()
            .map(|path| fs::canonicalize(&path).unwrap_or(path))
            .collect();
        found.sort();
        found.dedup();
        let here = fs::canonicalize(&self.worktree).unwrap_or_else(|_| self.worktree.clone());
        found.retain(|path| *path != here);
        found
    }

    /// Returns the same by the paths that the repository has, this worktree
    /// among them.
    pub(super) fn other_places(&self) -> Vec<PathBuf> {
        linked(self.history.commondir())
            .into_iter()
            .chain(self.history.workdir().map(Path::to_path_buf))
            // The main worktree's git folder is its own.
            .chain((!self.is_main()).then(|| self.common_folder().to_path_buf()))
            .collect()
    }
}

/// Returns where the linked worktrees of a repository are, by its records.
///
/// Read here and not through libgit2, which opens each of them as a repository:
/// this is asked for at every look at a lane's files.
fn linked(common: &Path) -> Vec<PathBuf> {
    let records = fs::read_dir(common.join("worktrees"));
    let records = records.into_iter().flatten().flatten();
    records
        .filter_map(|record| {
            let record = record.path();
            let link = fs::read(record.join("gitdir")).ok()?;
            let link = record.join(path(link.trim_ascii_end()));
            Some(link.parent()?.to_path_buf())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use git2::{Repository, Signature};

    fn prepared() -> (tempfile::TempDir, PathBuf, Tree) {
        let folder = tempfile::tempdir().unwrap();
        let above = folder.path().canonicalize().unwrap();
        let main = above.join("main");
        let git = Repository::init(&main).unwrap();
        let author = Signature::now("t", "t@localhost").unwrap();
        let tree = git.treebuilder(None).unwrap().write().unwrap();
        let tree = git.find_tree(tree).unwrap();
        git.commit(Some("HEAD"), &author, &author, "first", &tree, &[])
            .unwrap();
        for name in ["one", "two"] {
            git.worktree(name, &above.join(name), None).unwrap();
        }
        let one = Tree::open(&above.join("one")).unwrap();
        (folder, above, one)
    }

    #[test]
    fn the_others_are_every_worktree_but_this_one_and_the_git_folder() {
        let (_folder, above, tree) = prepared();
        let names = ["main", "main/.git", "two"];
        assert_eq!(tree.others(), names.map(|name| above.join(name)));
        let main = Tree::open(&above.join("main")).unwrap();
        assert_eq!(main.others(), ["one", "two"].map(|name| above.join(name)));
    }
}
