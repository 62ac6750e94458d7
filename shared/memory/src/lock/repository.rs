//! The locks that the harnesses of a repository take against one another.

use super::{LockWait, OwnedLock, open};
use crate::error::StoreError;
use fs2::FileExt;
use std::path::Path;
use std::time::Duration;

/// The lock on landing, in the git folder that all worktrees share.
pub(super) const LANDING: &str = "premath-landing.flock";
/// Held, shared, by those that wait for it: a harness whose landings follow one
/// another lets them land.
const LANDING_WAIT: &str = "premath-landing-wait.flock";

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

/// Says that the right to land is waited for, until it is dropped.
#[derive(Debug)]
pub struct LandingWaiter {
    _lock: OwnedLock,
}

impl LandingWaiter {
    /// Says that the right to land is waited for.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn announce(common_folder: &Path) -> Result<Self, StoreError> {
        let path = common_folder.join(LANDING_WAIT);
        let locked = open(&path).and_then(|file| {
            // Another one holds it alone for as long as it takes to look.
            FileExt::lock_shared(&file)?;
            Ok(file)
        });
        match locked {
            Ok(file) => Ok(Self {
                _lock: OwnedLock(file),
            }),
            Err(source) => Err(StoreError::LockIo { path, source }),
        }
    }

    /// Returns whether anyone waits for the right to land.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn is_there(common_folder: &Path) -> Result<bool, StoreError> {
        Ok(OwnedLock::try_acquire(common_folder.join(LANDING_WAIT))?.is_none())
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
    fn who_waits_for_the_landing_lock_is_seen_until_the_wait_ends() {
        let folder = tempfile::tempdir().unwrap();
        let is_there = || LandingWaiter::is_there(folder.path()).unwrap();
        assert!(!is_there());
        let first = LandingWaiter::announce(folder.path()).unwrap();
        let second = LandingWaiter::announce(folder.path()).unwrap();
        drop(first);
        assert!(is_there());
        drop(second);
        assert!(!is_there());
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
