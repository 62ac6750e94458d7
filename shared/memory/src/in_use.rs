//! Whether batches use a repository, or the harness is being removed from it.

use crate::error::StoreError;
use crate::lock::{CacheLock, CacheUse};
use crate::roots::common_folder;
use std::path::Path;

/// The lock file, in the git folder that all worktrees share.
pub(crate) const IN_USE: &str = "premath-use.flock";

/// Held by each process that begins a batch in a repository, as long as it lives;
/// dropping it ends the use.
#[derive(Debug)]
pub struct RepositoryUse {
    _shared: CacheUse,
}

impl RepositoryUse {
    /// Declares that a repository is used.
    ///
    /// # Errors
    ///
    /// [`StoreError::Removing`] where the harness is being removed from it,
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn begin(repository: &Path) -> Result<Self, StoreError> {
        let path = common_folder(repository)?.join(IN_USE);
        match CacheUse::begin(&path)? {
            Some(_shared) => Ok(Self { _shared }),
            None => Err(StoreError::Removing {
                path: repository.to_path_buf(),
            }),
        }
    }
}

/// The right to remove the harness from a repository: no batch uses it, and none
/// begins until this is dropped.
#[derive(Debug)]
pub struct RepositoryRemoval {
    _alone: CacheLock,
}

impl RepositoryRemoval {
    /// Takes the right; `None` where a batch, or another removal, has the repository.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn try_begin(repository: &Path) -> Result<Option<Self>, StoreError> {
        let path = common_folder(repository)?.join(IN_USE);
        let lock = CacheLock::try_acquire(&path)?;
        Ok(lock.map(|_alone| Self { _alone }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_in_use_is_not_removed_and_none_begins_while_one_is() {
        let folder = tempfile::tempdir().unwrap();
        git2::Repository::init(folder.path()).unwrap();
        let begin = || RepositoryUse::begin(folder.path());
        let remove = || RepositoryRemoval::try_begin(folder.path()).unwrap();
        let (one, other) = (begin().unwrap(), begin().unwrap());
        assert!(remove().is_none());
        drop(one);
        assert!(remove().is_none());
        drop(other);
        let removing = remove();
        assert!(removing.is_some());
        assert!(remove().is_none());
        let refused = begin().unwrap_err();
        assert!(matches!(refused, StoreError::Removing { .. }), "{refused}");
        drop(removing);
        begin().unwrap();
    }
}
