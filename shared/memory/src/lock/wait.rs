//! A wait for a lock, in a thread.

use super::{OwnedLock, open, sign};
use crate::error::StoreError;
use fs2::FileExt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::Duration;

/// Has a thread wait for the lock on a descriptor of its own, so that an
/// abandoned wait can never release a lock that this process holds; `None`
/// where the time is over first.
pub(super) fn queue_for(path: &Path, wait: Duration) -> io::Result<Option<File>> {
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
    lock: fn(OwnedLock) -> L,
}

impl<L> LockWait<L> {
    pub(super) fn begin(
        path: PathBuf,
        granted: impl FnOnce() + Send + 'static,
        lock: fn(OwnedLock) -> L,
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
                Ok(Some((self.lock)(OwnedLock(file))))
            }
            Ok(Err(source)) => Err(failed(source)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(failed(io::ErrorKind::BrokenPipe.into())),
        }
    }
}
