//! File locks: flock on a file of its own, never unlinked (`storage.md`).

mod cache;
mod look;

pub use cache::{CacheLock, CacheUse};
pub use look::{LockState, landing_lock, lane_lock};

use crate::clock;
use crate::error::StoreError;
use fs2::FileExt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long a lock is waited for where nothing else is reported.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(10);

/// The lane's lock, in a worktree's own git folder.
const LANE: &str = "premath-lane.flock";
/// The lock on landing, in the git folder that all worktrees share.
const LANDING: &str = "premath-landing.flock";
/// The lock on making build state, in the same folder.
const WARM_BUILD: &str = "premath-warm-build.flock";
/// The lock on using it, in the same folder.
const WARM_USE: &str = "premath-warm-use.flock";

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

/// Has a thread wait for the lock on a descriptor of its own, so that an
/// abandoned wait can never release a lock that this process holds; `None`
/// where the time is over first.
fn queue_for(path: &Path, wait: Duration) -> io::Result<Option<File>> {
    if wait.is_zero() {
        return Ok(None);
    }
    match lock_in_thread(path, || {})?.recv_timeout(wait) {
        Ok(locked) => locked.map(Some),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
    }
}

/// Has a thread wait for the lock; `then` is called once it is sent.
fn lock_in_thread(
    path: &Path,
    then: impl FnOnce() + Send + 'static,
) -> io::Result<Receiver<io::Result<File>>> {
    let file = open(path)?;
    let (send, receive) = sync_channel(1);
    std::thread::Builder::new()
        .name("lock-wait".to_owned())
        .spawn(move || {
            let locked = loop {
                match FileExt::lock_exclusive(&file) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    locked => break locked,
                }
            };
            // Where the wait was abandoned, the descriptor is closed with the
            // message, which releases the lock.
            if send.send(locked.map(|()| file)).is_ok() {
                then();
            }
        })?;
    Ok(receive)
}

/// A wait for a lock that others hold, in a thread of its own. Dropping it gives
/// the wait up.
#[derive(Debug)]
pub struct LockWait<L> {
    path: PathBuf,
    granted: Receiver<io::Result<File>>,
    lock: fn(File) -> L,
}

impl<L> LockWait<L> {
    fn begin(
        path: PathBuf,
        granted: impl FnOnce() + Send + 'static,
        lock: fn(File) -> L,
    ) -> Result<Self, StoreError> {
        match lock_in_thread(&path, granted) {
            Ok(granted) => Ok(Self {
                path,
                granted,
                lock,
            }),
            Err(source) => Err(StoreError::LockIo { path, source }),
        }
    }

    /// Returns the lock if it has been granted, and `None` while others hold it.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn take(&self) -> Result<Option<L>, StoreError> {
        let failed = |source| StoreError::LockIo {
            path: self.path.clone(),
            source,
        };
        match self.granted.try_recv() {
            Ok(Ok(file)) => {
                sign(&file);
                Ok(Some((self.lock)(file)))
            }
            Ok(Err(source)) => Err(failed(source)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(failed(io::ErrorKind::BrokenPipe.into())),
        }
    }
}

/// The lock of a lane on its worktree, held for the lane's life.
///
/// The lane's supervisor process shares it: as long as a child of a dead
/// harness may live, no other process gets the worktree. It is in the
/// worktree's own git folder, out of the way of what works in the tree.
#[derive(Debug)]
pub struct WorktreeLock {
    file: File,
}

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
        let file = own(git_folder.join(LANE), wait)?;
        Ok(Self { file })
    }

    /// Returns a second descriptor of the same lock, for the supervisor.
    ///
    /// # Errors
    ///
    /// The process has no descriptor left.
    pub fn share(&self) -> io::Result<std::os::fd::OwnedFd> {
        Ok(self.file.try_clone()?.into())
    }
}

/// The lock of a gated command, held while it is tried; its supervisor process
/// shares it, as a lane's does.
#[derive(Debug)]
pub struct CommandLock {
    file: File,
}

impl CommandLock {
    /// Locks a command by the file of its lock, waiting at most `wait` for a
    /// dying predecessor.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockBusy`] where another process holds it,
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn acquire(path: PathBuf, wait: Duration) -> Result<Self, StoreError> {
        let file = own(path, wait)?;
        Ok(Self { file })
    }

    /// Returns a second descriptor of the same lock, for the supervisor.
    ///
    /// # Errors
    ///
    /// The process has no descriptor left.
    pub fn share(&self) -> io::Result<std::os::fd::OwnedFd> {
        Ok(self.file.try_clone()?.into())
    }
}

/// The right to make the build state that verifications begin with, against
/// every other harness of the repository; dropping it gives it back.
#[derive(Debug)]
pub struct WarmBuild {
    file: File,
}

impl WarmBuild {
    /// Takes the lock if it is free; `None` if it is held.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn try_acquire(common_folder: &Path) -> Result<Option<Self>, StoreError> {
        match own(common_folder.join(WARM_BUILD), Duration::ZERO) {
            Ok(file) => Ok(Some(Self { file })),
            Err(StoreError::LockBusy { .. }) => Ok(None),
            Err(error) => Err(error),
        }
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
        LockWait::begin(path, granted, |file| Self { file })
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

impl Drop for WarmBuild {
    fn drop(&mut self) {
        let _ = FileExt::unlock(&self.file);
    }
}

/// Held as long as the build state that verifications begin with is used.
#[derive(Debug)]
pub struct WarmUse {
    file: File,
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
            Ok(()) => Ok(Some(Self { file })),
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
        FileExt::lock_shared(&self.file)
    }
}

impl Drop for WarmUse {
    fn drop(&mut self) {
        let _ = FileExt::unlock(&self.file);
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

/// The right to move the branch that work lands on, against every other
/// harness of the repository; dropping it gives it back.
///
/// It is in the git folder that all worktrees share.
#[derive(Debug)]
pub struct LandingLock {
    file: File,
}

impl LandingLock {
    /// Takes the lock if it is free; `None` if it is held.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn try_acquire(common_folder: &Path) -> Result<Option<Self>, StoreError> {
        let path = common_folder.join(LANDING);
        match own(path, Duration::ZERO) {
            Ok(file) => Ok(Some(Self { file })),
            Err(StoreError::LockBusy { .. }) => Ok(None),
            Err(error) => Err(error),
        }
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
        LockWait::begin(path, granted, |file| Self { file })
    }
}

impl Drop for LandingLock {
    fn drop(&mut self) {
        // Explicitly: a child between fork and exec shares the descriptor.
        let _ = FileExt::unlock(&self.file);
    }
}

/// The right to make and remove worktrees of a repository, against every other
/// harness of it; dropping it gives it back.
#[derive(Debug)]
pub struct WorktreesLock {
    file: File,
}

impl WorktreesLock {
    /// Takes the lock, waiting at most `wait`.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockBusy`] where another process holds it,
    /// [`StoreError::LockIo`] where the lock file cannot be used.
    pub fn acquire(common_folder: &Path, wait: Duration) -> Result<Self, StoreError> {
        let file = own(common_folder.join("premath-worktrees.flock"), wait)?;
        Ok(Self { file })
    }
}

impl Drop for WorktreesLock {
    fn drop(&mut self) {
        let _ = FileExt::unlock(&self.file);
    }
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
        let wait = LandingLock::wait(folder.path(), || {}).unwrap();
        assert!(matches!(wait.granted.recv(), Ok(Ok(_))));
    }

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
}
