//! What git writes outside a worktree's files on a commit in it, and what else
//! of the repository a worktree must not write.

use super::{Tree, TreeError};
use git2::Reference;
use std::fs;
use std::path::{Path, PathBuf};

impl Tree {
    /// Returns the folders that a commit on a branch writes to: the worktree's
    /// own git folder, the store of objects, and the folders that hold the
    /// branch and its log. They are made where they are not there yet, for what
    /// is not there cannot be opened to anybody.
    ///
    /// # Errors
    ///
    /// [`TreeError`] where one cannot be made.
    pub fn written_by_commits(&self, branch: Option<&str>) -> Result<Vec<PathBuf>, TreeError> {
        let common = self.common_folder();
        let mut folders = vec![self.git_folder().to_path_buf(), common.join("objects")];
        let branch = branch
            .filter(|name| name.starts_with("refs/heads/") && Reference::is_valid_name(name))
            .and_then(|name| Path::new(name).parent());
        if let Some(folder) = branch {
            folders.push(common.join(folder));
            folders.push(common.join("logs").join(folder));
        }
        for folder in &folders {
            // A step with a branch above could have put a symlink here.
            self.lead_straight(folder)?;
        }
        Ok(folders)
    }

    /// Makes sure that a folder is there, and no link on the way to it from the
    /// common one.
    fn lead_straight(&self, folder: &Path) -> Result<(), TreeError> {
        let mut place = self.common_folder().to_path_buf();
        let Ok(below) = folder.strip_prefix(&place) else {
            return fs::create_dir_all(folder).map_err(self.refused("make", folder));
        };
        for name in below {
            place.push(name);
            let made = match fs::symlink_metadata(&place) {
                Ok(meta) if meta.is_dir() => continue,
                Ok(meta) if meta.is_symlink() => {
                    let to = fs::canonicalize(&place).map_err(self.refused("find", &place))?;
                    let detail = format!("{} is a link to {}", place.display(), to.display());
                    return Err(self.error("open the branch's folder", detail));
                }
                // A file in its place is named by what cannot be made.
                _ => fs::create_dir(&place),
            };
            // Another lane may have made it meanwhile.
            made.or_else(|error| match fs::symlink_metadata(&place) {
                Ok(meta) if meta.is_dir() => Ok(()),
                _ => Err(error),
            })
            .map_err(self.refused("make", &place))?;
        }
        Ok(())
    }

    /// Returns the repository's git folder and every worktree of it but this
    /// one, sorted.
    pub fn others(&self) -> Vec<PathBuf> {
        let linked = self.history.worktrees();
        let linked = linked.iter().flat_map(|names| names.iter());
        let mut found: Vec<PathBuf> = linked
            .flatten()
            .flatten()
            .filter_map(|name| self.history.find_worktree(name).ok())
            .map(|worktree| worktree.path().to_path_buf())
            .chain(self.history.workdir().map(Path::to_path_buf))
            // The main worktree's git folder is its own.
            .chain((!self.is_main()).then(|| self.common_folder().to_path_buf()))
            .map(|path| fs::canonicalize(&path).unwrap_or(path))
            .collect();
        found.sort();
        found.dedup();
        let here = fs::canonicalize(&self.worktree).unwrap_or_else(|_| self.worktree.clone());
        found.retain(|path| *path != here);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use git2::{Repository, Signature};

    fn laid_out() -> (tempfile::TempDir, PathBuf, Tree) {
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
    fn a_commit_on_a_steps_branch_writes_neither_the_target_nor_the_settings() {
        let (_folder, above, tree) = laid_out();
        let git = above.join("main/.git");
        let found = tree
            .written_by_commits(Some("refs/heads/harness/a/1"))
            .unwrap();
        let expected = [
            "worktrees/one",
            "objects",
            "refs/heads/harness/a",
            "logs/refs/heads/harness/a",
        ];
        let found: Vec<PathBuf> = found
            .iter()
            .map(|path| path.components().collect())
            .collect();
        assert_eq!(found, expected.map(|name| git.join(name)));
        assert!(found.iter().all(|folder| folder.is_dir()));
        for odd in ["refs/heads/../../hooks/x", "HEAD", "refs/tags/x"] {
            assert_eq!(
                tree.written_by_commits(Some(odd)).unwrap().len(),
                2,
                "{odd}"
            );
        }
    }

    #[test]
    fn a_link_in_the_place_of_a_branchs_folder_is_refused() {
        let (_folder, above, tree) = laid_out();
        let heads = above.join("main/.git/refs/heads/harness");
        std::os::unix::fs::symlink(above.join("two"), heads).unwrap();
        let error = tree.written_by_commits(Some("refs/heads/harness/a/1"));
        assert!(error.unwrap_err().to_string().contains("is a link to"));
    }

    #[test]
    fn the_others_are_every_worktree_but_this_one_and_the_git_folder() {
        let (_folder, above, tree) = laid_out();
        let names = ["main", "main/.git", "two"];
        assert_eq!(tree.others(), names.map(|name| above.join(name)));
        let main = Tree::open(&above.join("main")).unwrap();
        assert_eq!(main.others(), ["one", "two"].map(|name| above.join(name)));
    }
}
