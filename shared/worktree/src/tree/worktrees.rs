//! The worktrees of a repository.

use git2::{Error, Repository};
use std::fs;
use std::path::{Path, PathBuf};

/// The worktrees of a repository, by its own records. The `.git` file of a linked
/// worktree is not read: a step may have written it.
pub struct Worktrees(Repository);

impl Worktrees {
    /// Opens a repository.
    ///
    /// # Errors
    ///
    /// [`Error`] where there is none.
    pub fn of(repository: &Path) -> Result<Self, Error> {
        Repository::open(repository).map(Self)
    }

    /// Returns whether one of them is in a folder.
    pub fn has(&self, folder: &Path) -> bool {
        self.git_folder(folder).is_ok()
    }

    /// Opens the one in a folder.
    pub(super) fn open(&self, folder: &Path) -> Result<Repository, Error> {
        Repository::open(self.git_folder(folder)?)
    }

    /// Returns the git folder of the one in a folder.
    fn git_folder(&self, folder: &Path) -> Result<PathBuf, Error> {
        let Self(main) = self;
        let place = |path: &Path| fs::canonicalize(path).ok();
        let missing = || Error::from_str("it is not a worktree of this repository");
        let here = Some(place(folder).ok_or_else(missing)?);
        if main.workdir().and_then(place) == here && !main.is_worktree() {
            return Ok(main.path().to_path_buf());
        }
        let names = main.worktrees()?;
        let name = names.iter().flatten().flatten().find(|name| {
            let found = main.find_worktree(name);
            found.ok().and_then(|found| place(found.path())) == here
        });
        let name = name.ok_or_else(missing)?;
        Ok(main.commondir().join("worktrees").join(name))
    }
}
