//! The branch that a person put a worktree on: steps leave it for branches of
//! their own, and the lane goes back to it in the end.

use super::{Base, Tree, TreeError};
use git2::ErrorCode;
use std::io::ErrorKind;
use std::path::Path;

/// A reference of the worktree's own, which other worktrees do not see.
pub(crate) const HOME: &str = "PREMATH_HOME";

impl Tree {
    /// Remembers the branch that HEAD is on as the worktree's home.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn remember_home(&self) -> Result<(), TreeError> {
        let Some(branch) = self.base()?.branch else {
            return Ok(());
        };
        self.repository
            .reference_symbolic(HOME, &branch, true, "premath: the lane's home")
            .map(drop)
            .map_err(self.failed("remember the worktree's branch"))
    }

    /// Puts a clean worktree back on the branch that was remembered, and
    /// forgets it; returns whether there was one.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn return_to_branch(&self) -> Result<bool, TreeError> {
        let failed = "go back to the worktree's branch";
        let home = match self.repository.find_reference(HOME) {
            Ok(home) => home,
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(false),
            Err(error) => return Err(self.failed(failed)(error)),
        };
        let branch = home.symbolic_target().ok().flatten().map(str::to_owned);
        // It may have been deleted since.
        if let Some(branch) = branch
            && let Ok(commit) = self.repository.refname_to_id(&branch)
        {
            let base = Base {
                commit: commit.to_string(),
                branch: Some(branch),
            };
            self.relocate(&base, "home")?;
        }
        self.forget_reference(HOME)?;
        Ok(true)
    }

    /// Deletes a reference of the worktree's own. libgit2 looks for it in the
    /// folder that all worktrees share, where it may be the main worktree's.
    pub(super) fn forget_reference(&self, name: &str) -> Result<(), TreeError> {
        let at = self.git_folder().join(name);
        match std::fs::remove_file(&at) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(self.refused("delete", &at)(error))
            }
            _ => Ok(()),
        }
    }

    /// Returns what a commit has at a path, a file or a folder, by its object id;
    /// `None` where it has nothing there.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn committed(&self, commit: &str, path: &Path) -> Result<Option<String>, TreeError> {
        let commit = self.find_commit(commit)?;
        let tree = commit.tree().map_err(self.failed("read the tree"))?;
        match tree.get_path(path) {
            Ok(entry) => Ok(Some(entry.id().to_string())),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(self.failed("look a path up")(error)),
        }
    }
}
