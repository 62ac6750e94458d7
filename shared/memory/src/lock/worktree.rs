//! The locks that a supervisor process shares: a lane's and a gated command's.

use super::own;
use crate::error::StoreError;
use fs2::FileExt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The lane's lock, in a worktree's own git folder.
pub(super) const LANE: &str = "premath-lane.flock";

/// How long a lock is waited for that a harness which died may still hold: its
/// supervisor ends what it runs within a second.
pub const PREDECESSOR_WAIT: Duration = Duration::from_secs(3);

/// A lock that a supervisor process may share: as long as it does, the lock is held.
#[derive(Debug)]
struct SharableLock {
    file: File,
    is_shared: AtomicBool,
}

impl SharableLock {
    fn acquire(path: PathBuf, wait: Duration) -> Result<Self, StoreError> {
        Ok(Self {
            file: own(path, wait)?,
            is_shared: AtomicBool::new(false),
        })
    }

    fn share(&self) -> io::Result<OwnedFd> {
        let shared = self.file.try_clone()?;
        self.is_shared.store(true, Ordering::Relaxed);
        Ok(shared.into())
    }
}

impl Drop for SharableLock {
    fn drop(&mut self) {
        // A child between fork and exec has the descriptor too.
        if !*self.is_shared.get_mut() {
            let _ = FileExt::unlock(&self.file);
        }
    }
}

/// The lock of a lane on its worktree, held for the lane's life.
///
/// The lane's supervisor process shares it: as long as a child of a dead
/// harness may live, no other process gets the worktree. It is in the
/// worktree's own git folder, out of the way of what works in the tree.
#[derive(Debug)]
pub struct WorktreeLock(SharableLock);

impl WorktreeLock {
    /// Locks a worktree, waiting at most `wait` for a dying predecessor.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockBusy`] where another process holds it,
    /// [`StoreError::Repository`] where it is not a worktree.
    pub fn acquire(worktree: &Path, wait: Duration) -> Result<Self, StoreError> {
        let repository =
            git2::Repository::open(worktree).map_err(|error| StoreError::Repository {
                path: worktree.to_path_buf(),
                detail: error.message().to_owned(),
            })?;
        Self::acquire_in(repository.path(), wait)
    }

    /// Does as [`WorktreeLock::acquire`] for the worktree whose own git folder
    /// it is.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockBusy`] where another process holds it,
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn acquire_in(git_folder: &Path, wait: Duration) -> Result<Self, StoreError> {
        SharableLock::acquire(git_folder.join(LANE), wait).map(Self)
    }

    /// Returns a second descriptor of the same lock, for the supervisor.
    ///
    /// # Errors
    ///
    /// The process has no descriptor left.
    pub fn share(&self) -> io::Result<OwnedFd> {
        self.0.share()
    }
}

/// The lock of a gated command, held while it is tried; its supervisor process
/// shares it, as a lane's does.
#[derive(Debug)]
pub struct CommandLock(SharableLock);

impl CommandLock {
    /// Locks a command by the file of its lock, waiting at most `wait` for a
    /// dying predecessor.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockBusy`] where another process holds it,
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn acquire(path: PathBuf, wait: Duration) -> Result<Self, StoreError> {
        SharableLock::acquire(path, wait).map(Self)
    }

    /// Returns a second descriptor of the same lock, for the supervisor.
    ///
    /// # Errors
    ///
    /// The process has no descriptor left.
    pub fn share(&self) -> io::Result<OwnedFd> {
        self.0.share()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worktree_lock_lives_as_long_as_its_last_descriptor() {
        let folder = tempfile::tempdir().unwrap();
        git2::Repository::init(folder.path()).unwrap();
        let lock = WorktreeLock::acquire(folder.path(), Duration::ZERO).unwrap();
        let shared = lock.share().unwrap();
        drop(lock);
        assert!(WorktreeLock::acquire(folder.path(), Duration::ZERO).is_err());
        drop(shared);
        assert!(WorktreeLock::acquire(folder.path(), Duration::ZERO).is_ok());
    }

    #[test]
    fn a_lock_that_no_supervisor_shares_is_free_at_once() {
        let folder = tempfile::tempdir().unwrap();
        git2::Repository::init(folder.path()).unwrap();
        let lock = WorktreeLock::acquire(folder.path(), Duration::ZERO).unwrap();
        // As in a child that has not started its program yet.
        let inherited = lock.0.file.try_clone().unwrap();
        drop(lock);
        assert!(WorktreeLock::acquire(folder.path(), Duration::ZERO).is_ok());
        drop(inherited);
    }
}
