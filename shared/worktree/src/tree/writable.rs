//! What git writes outside a worktree's files when somebody commits in it, and
//! what else of the repository is none of that worktree's business.

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
            fs::create_dir_all(folder).map_err(self.refused("make", folder))?;
        }
        Ok(folders)
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
