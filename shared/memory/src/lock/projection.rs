//! The lock of those that read a projection, change it and write it back.

use super::{LOCK_WAIT, OwnedLock};
use crate::error::StoreError;
use git2::{ErrorCode, Repository};
use std::path::Path;

/// The lock of all projections of a repository, in the git folder that its
/// worktrees share: a step can neither hold it nor put a symlink in its place.
const PROJECTIONS: &str = "premath-projections.flock";

/// The right to change a projection by what it says; dropping it releases it.
#[derive(Debug)]
pub struct ProjectionLock {
    _lock: OwnedLock,
}

impl ProjectionLock {
    /// Takes the lock for a file, waiting for 10 s at most. A file outside of
    /// any repository has the lock in its folder.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockBusy`], [`StoreError::LockIo`], and
    /// [`StoreError::Repository`] where the repository cannot be read.
    pub fn acquire(path: &Path) -> Result<Self, StoreError> {
        let absolute = std::path::absolute(path).map_err(StoreError::io("find", path))?;
        let there = absolute.ancestors().skip(1).find(|folder| folder.is_dir());
        let repository = there.map(Repository::discover).transpose();
        let file = match repository {
            Ok(Some(repository)) => repository.commondir().join(PROJECTIONS),
            Ok(None) => absolute.with_file_name(PROJECTIONS),
            Err(error) if error.code() == ErrorCode::NotFound => {
                absolute.with_file_name(PROJECTIONS)
            }
            Err(error) => {
                return Err(StoreError::Repository {
                    path: absolute,
                    detail: error.message().to_owned(),
                });
            }
        };
        let lock = OwnedLock::acquire(file, LOCK_WAIT)?;
        Ok(Self { _lock: lock })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_worktrees_of_a_repository_share_a_lock_that_no_worktree_holds() {
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init(folder.path()).unwrap();
        let lock = git.commondir().join(PROJECTIONS);
        let path = folder.path().join(".premath/harness_session.json");
        let held = ProjectionLock::acquire(&path).unwrap();
        let second = OwnedLock::acquire(lock.clone(), Duration::ZERO);
        assert!(matches!(second, Err(StoreError::LockBusy { .. })));
        drop(held);
        assert!(OwnedLock::acquire(lock, Duration::ZERO).is_ok());
        assert!(!folder.path().join(".premath").exists());
    }

    #[test]
    fn a_file_outside_of_a_repository_has_the_lock_in_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let _held = ProjectionLock::acquire(&folder.path().join("session.json")).unwrap();
        assert!(folder.path().join(PROJECTIONS).exists());
    }
}
