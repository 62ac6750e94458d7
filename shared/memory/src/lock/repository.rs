//! The locks that the harnesses of a repository take against one another.

use super::{LockWait, OwnedLock};
use crate::error::StoreError;
use std::path::Path;
use std::time::Duration;

/// The lock on landing, in the git folder that all worktrees share.
pub(super) const LANDING: &str = "premath-landing.flock";

/// The right to move the branch that work lands on, against every other
/// harness of the repository; dropping it releases it.
///
/// It is in the git folder that all worktrees share.
#[derive(Debug)]
pub struct LandingLock {
    _lock: OwnedLock,
}

impl LandingLock {
    /// Takes the lock if it is free; `None` if it is held.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn try_acquire(common_folder: &Path) -> Result<Option<Self>, StoreError> {
        let lock = OwnedLock::try_acquire(common_folder.join(LANDING))?;
        Ok(lock.map(|_lock| Self { _lock }))
    }

    /// Waits for the lock; `granted` is called once it can be taken.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn wait(
        common_folder: &Path,
        granted: impl FnOnce() + Send + 'static,
    ) -> Result<LockWait<Self>, StoreError> {
        let path = common_folder.join(LANDING);
        LockWait::begin(path, granted, |_lock| Self { _lock })
    }
}

/// The right to make and remove worktrees of a repository, against every other
/// harness of it; dropping it releases it.
#[derive(Debug)]
pub struct WorktreesLock {
    _lock: OwnedLock,
}

impl WorktreesLock {
    /// Takes the lock, waiting at most `wait`.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockBusy`] where another process holds it,
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn acquire(common_folder: &Path, wait: Duration) -> Result<Self, StoreError> {
        let path = common_folder.join("premath-worktrees.flock");
        let _lock = OwnedLock::acquire(path, wait)?;
        Ok(Self { _lock })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn one_lands_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let take = || LandingLock::try_acquire(folder.path()).unwrap();
        let held = take();
        assert!(held.is_some());
        assert!(take().is_none());
        drop(held);
        assert!(take().is_some());
    }

    #[test]
    fn a_wait_for_the_landing_lock_ends_when_it_is_free_or_the_wait_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let take = || LandingLock::try_acquire(folder.path()).unwrap();
        let held = take().unwrap();
        let given_up = LandingLock::wait(folder.path(), || {}).unwrap();
        let (send, granted) = sync_channel(1);
        let wait = LandingLock::wait(folder.path(), move || send.send(()).unwrap()).unwrap();
        assert!(wait.take().unwrap().is_none());
        drop(given_up);
        drop(held);
        granted.recv_timeout(Duration::from_secs(60)).unwrap();
        let held = wait.take().unwrap();
        assert!(held.is_some());
        assert!(take().is_none());
        drop(held);
        // The wait that was given up may have the lock for a moment.
        let (send, granted) = sync_channel(1);
        let wait = LandingLock::wait(folder.path(), move || send.send(()).unwrap()).unwrap();
        granted.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(wait.take().unwrap().is_some());
    }
}
