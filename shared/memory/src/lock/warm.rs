//! The locks of the build state that verifications begin with.

use super::{LockWait, OwnedLock, open};
use crate::error::StoreError;
use fs2::FileExt;
use std::fs::File;
use std::io;
use std::path::Path;

/// The lock on making build state, in the git folder that all worktrees share.
const WARM_BUILD: &str = "premath-warm-build.flock";
/// The lock on using it, in the same folder.
const WARM_USE: &str = "premath-warm-use.flock";

/// The right to make the build state that verifications begin with, against
/// every other harness of the repository; dropping it releases it.
#[derive(Debug)]
pub struct WarmBuild {
    _lock: OwnedLock,
}

impl WarmBuild {
    /// Takes the lock if it is free; `None` if it is held.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn try_acquire(common_folder: &Path) -> Result<Option<Self>, StoreError> {
        let lock = OwnedLock::try_acquire(common_folder.join(WARM_BUILD))?;
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
        let path = common_folder.join(WARM_BUILD);
        LockWait::begin(path, granted, |_lock| Self { _lock })
    }

    /// Says that the build state is used; `None` where it is being replaced.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn shared(&self, common_folder: &Path) -> Result<Option<WarmUse>, StoreError> {
        WarmUse::locked(common_folder, FileExt::try_lock_shared)
    }

    /// Takes the right to replace the build state; `None` where it is used.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn alone(&self, common_folder: &Path) -> Result<Option<WarmUse>, StoreError> {
        WarmUse::locked(common_folder, FileExt::try_lock_exclusive)
    }
}

/// Held as long as the build state that verifications begin with is used.
#[derive(Debug)]
pub struct WarmUse {
    lock: OwnedLock,
}

impl WarmUse {
    fn locked(
        common_folder: &Path,
        lock: impl Fn(&File) -> io::Result<()>,
    ) -> Result<Option<Self>, StoreError> {
        let path = common_folder.join(WARM_USE);
        let failed = |source| StoreError::LockIo {
            path: path.clone(),
            source,
        };
        let file = open(&path).map_err(failed)?;
        match lock(&file) {
            Ok(()) => Ok(Some(Self {
                lock: OwnedLock(file),
            })),
            Err(error) if error.raw_os_error() == fs2::lock_contended_error().raw_os_error() => {
                Ok(None)
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Lets others use it too. Only who has the right to make it may replace it
    /// in between, and that is the caller.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn share(&self) -> io::Result<()> {
        FileExt::lock_shared(&self.lock.0)
    }
}
