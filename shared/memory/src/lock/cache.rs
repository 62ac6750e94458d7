//! Entries of a cache that all harnesses of a user share.

use super::{StoreError, open, own};
use fs2::FileExt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The right to make or remove an entry, against every other process; dropping it
/// releases it.
#[derive(Debug)]
pub struct CacheLock {
    file: File,
}

impl CacheLock {
    /// Locks an entry by the file of its lock, waiting at most `wait` for who
    /// makes it now.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockBusy`] where another process holds it,
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn acquire(path: PathBuf, wait: Duration) -> Result<Self, StoreError> {
        let file = own(path, wait)?;
        Ok(Self { file })
    }

    /// Locks an entry that is neither used nor made; `None` where it is. The time
    /// of its last use stays.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn try_acquire(path: &Path) -> Result<Option<Self>, StoreError> {
        let file = tried(path, FileExt::try_lock_exclusive)?;
        Ok(file.map(|file| Self { file }))
    }
}

impl Drop for CacheLock {
    fn drop(&mut self) {
        // Explicitly: a child between fork and exec shares the descriptor.
        let _ = FileExt::unlock(&self.file);
    }
}

/// Held as long as an entry is used. The time of its lock file is that of the
/// last use.
#[derive(Debug)]
pub struct CacheUse {
    path: PathBuf,
    file: File,
}

impl CacheUse {
    /// Says that an entry is used; `None` where it is made or removed now.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn begin(path: &Path) -> Result<Option<Self>, StoreError> {
        let Some(file) = tried(path, FileExt::try_lock_shared)? else {
            return Ok(None);
        };
        // Without the time the entry may only seem older than it is.
        let _ = file.set_modified(SystemTime::now());
        let path = path.to_path_buf();
        Ok(Some(Self { path, file }))
    }
}

/// The same where it is of the same entry.
impl PartialEq for CacheUse {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for CacheUse {}

impl Drop for CacheUse {
    fn drop(&mut self) {
        let _ = FileExt::unlock(&self.file);
    }
}

fn tried(path: &Path, lock: impl Fn(&File) -> io::Result<()>) -> Result<Option<File>, StoreError> {
    let failed = |source| StoreError::LockIo {
        path: path.to_path_buf(),
        source,
    };
    let file = open(path).map_err(failed)?;
    match lock(&file) {
        Ok(()) => Ok(Some(file)),
        Err(error) if error.raw_os_error() == fs2::lock_contended_error().raw_os_error() => {
            Ok(None)
        }
        Err(error) => Err(failed(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_in_use_is_used_by_others_and_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.flock");
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        let one = CacheUse::begin(&path).unwrap().unwrap();
        let other = CacheUse::begin(&path).unwrap().unwrap();
        assert_eq!(one, other);
        drop(one);
        assert!(CacheLock::try_acquire(&path).unwrap().is_none());
        drop(other);
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(long_ago).unwrap();
        let modified = || path.metadata().unwrap().modified().unwrap();
        let removing = CacheLock::try_acquire(&path).unwrap();
        assert!(removing.is_some());
        assert_eq!(modified(), long_ago);
        assert!(CacheUse::begin(&path).unwrap().is_none());
        drop(removing);
        let again = CacheUse::begin(&path).unwrap();
        assert!(again.is_some());
        assert!(modified() > long_ago);
    }
}
