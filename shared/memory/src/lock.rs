//! File locks: flock on a file of its own, never unlinked (`storage.md`).

mod cache;
mod look;
mod projection;
mod repository;
mod wait;
mod warm;
mod worktree;

pub use cache::{CacheLock, CacheUse};
pub use look::{LockState, landing_lock, lane_lock};
pub use projection::ProjectionLock;
pub use repository::{LandingLock, LandingWaiter, WorktreesLock};
pub use wait::LockWait;
pub use warm::{WarmBuild, WarmUse};
pub use worktree::{CommandLock, PREDECESSOR_WAIT, WorktreeLock};

use crate::clock;
use crate::error::StoreError;
use fs2::FileExt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use wait::queue_for;

/// How long a lock is waited for where nothing else is reported.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(10);

/// A lock file that may be locked again and again; made at the first time, so
/// that who only looks needs no right to write.
#[derive(Debug)]
pub(crate) struct LockFile {
    path: PathBuf,
    file: OnceLock<File>,
    /// flock does not tell the threads of one descriptor apart.
    turn: Mutex<()>,
}

/// A held lock; dropping it unlocks.
#[derive(Debug)]
pub(crate) struct HeldLock<'a> {
    file: &'a File,
    /// The descriptor that holds it, where it is not the lock file's own.
    waited: Option<File>,
    _turn: MutexGuard<'a, ()>,
}

/// How many waits a lock is worth that goes from hand to hand.
const HANDS_MAX: usize = 6;

/// How long a lock is tried for before a thread queues for it.
const TRY: Duration = Duration::from_millis(1);

impl LockFile {
    /// Names a lock file.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self {
            path,
            file: OnceLock::new(),
            turn: Mutex::new(()),
        }
    }

    /// Names the lock file beside a data file: `<name>.flock`.
    pub(crate) fn beside(path: &Path) -> Self {
        Self::at(Self::path_beside(path))
    }

    /// Returns the path of the lock file beside a data file.
    pub(crate) fn path_beside(path: &Path) -> PathBuf {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(".flock");
        path.with_file_name(name)
    }

    fn file(&self) -> io::Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = open(&self.path)?;
        Ok(self.file.get_or_init(|| file))
    }

    /// Takes the lock, waiting at most `wait`.
    pub(crate) fn acquire(&self, wait: Duration) -> Result<HeldLock<'_>, StoreError> {
        let started = Instant::now();
        let failed = |source| StoreError::LockIo {
            path: self.path.clone(),
            source,
        };
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let file = self.file().map_err(failed)?;
        loop {
            match FileExt::try_lock_exclusive(file) {
                Ok(()) => {
                    sign(file);
                    return Ok(HeldLock {
                        file,
                        waited: None,
                        _turn: turn,
                    });
                }
                Err(error)
                    if error.raw_os_error() == fs2::lock_contended_error().raw_os_error() => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(failed(source)),
            }
            if started.elapsed() >= TRY.min(wait) {
                break;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        // A process that only polls can starve behind later ones, so the rest
        // of the wait is spent in the kernel's queue. That queue is not fair
        // either, so a lock that changes holders is waited for longer than one
        // that a single holder keeps.
        for _ in 0..HANDS_MAX {
            let before = signature(file);
            match queue_for(&self.path, wait).map_err(failed)? {
                Some(waited) => {
                    sign(file);
                    return Ok(HeldLock {
                        file,
                        waited: Some(waited),
                        _turn: turn,
                    });
                }
                None if wait.is_zero() || signature(file) == before => break,
                None => {}
            }
        }
        Err(StoreError::LockBusy {
            path: self.path.clone(),
            waited: started.elapsed(),
            holder: holder_of(&signature(file)),
        })
    }
}

/// Writes who holds the lock and since when, for those that wait; a failure
/// costs only the name. One process that takes it again and again writes once
/// a second.
fn sign(file: &File) {
    let (pid, now) = (std::process::id(), clock::now().boot_ms);
    let before = signature(file);
    let mut words = before.split_whitespace().skip(1).step_by(2);
    let (by, since) = (words.next(), words.next());
    let is_mine = by.and_then(|word| word.parse().ok()) == Some(pid);
    let is_fresh = since
        .and_then(|word| word.parse::<u64>().ok())
        .is_some_and(|since| now.saturating_sub(since) < 1_000);
    if !(is_mine && is_fresh) {
        let text = format!("pid {pid:>10} since {now:>20}\n");
        let _ = file.write_all_at(text.as_bytes(), 0);
    }
}

fn signature(file: &File) -> String {
    let mut bytes = [0; 64];
    let read = file.read_at(&mut bytes, 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..read]).trim().to_owned()
}

fn holder_of(signature: &str) -> String {
    match signature.split_whitespace().nth(1) {
        Some(pid) => format!("pid {pid}"),
        None => "an unknown process".to_owned(),
    }
}

impl Drop for HeldLock<'_> {
    fn drop(&mut self) {
        // Explicitly: a child between fork and exec shares the descriptor.
        let _ = FileExt::unlock(self.waited.as_ref().unwrap_or(self.file));
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o644)
        .open(path)
}

/// A lock on a descriptor of its own; dropping it unlocks.
#[derive(Debug)]
struct OwnedLock(File);

impl OwnedLock {
    /// Takes a lock, waiting at most `wait`.
    fn acquire(path: PathBuf, wait: Duration) -> Result<Self, StoreError> {
        own(path, wait).map(Self)
    }

    /// Takes a lock if it is free; `None` if it is held.
    fn try_acquire(path: PathBuf) -> Result<Option<Self>, StoreError> {
        match Self::acquire(path, Duration::ZERO) {
            Ok(lock) => Ok(Some(lock)),
            Err(StoreError::LockBusy { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for OwnedLock {
    fn drop(&mut self) {
        // Explicitly: a child between fork and exec shares the descriptor.
        let _ = FileExt::unlock(&self.0);
    }
}

/// Takes a lock and returns the descriptor that holds it.
fn own(path: PathBuf, wait: Duration) -> Result<File, StoreError> {
    let lock = LockFile::at(path.clone());
    let mut held = lock.acquire(wait)?;
    let file = match held.waited.take() {
        Some(waited) => waited,
        None => held
            .file
            .try_clone()
            .map_err(|source| StoreError::LockIo { path, source })?,
    };
    // The lock stays with the descriptor that continues.
    std::mem::forget(held);
    Ok(file)
}

/// Refuses filesystems whose flock is not what it seems.
pub(crate) fn refuse_network_filesystem(path: &Path, insist: bool) -> Result<(), StoreError> {
    if insist {
        return Ok(());
    }
    match premath_platform::machine::network_kind(path) {
        Some(kind) => Err(StoreError::NetworkFilesystem {
            path: path.to_path_buf(),
            kind,
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_learns_who_the_first_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.flock");
        let first = LockFile::at(path.clone());
        let second = LockFile::at(path.clone());
        let held = first.acquire(LOCK_WAIT).unwrap();
        let error = second.acquire(Duration::from_millis(5)).unwrap_err();
        assert!(
            error
                .to_string()
                .contains(&format!("pid {}", std::process::id()))
        );
        drop(held);
        second.acquire(LOCK_WAIT).unwrap();
    }
}
