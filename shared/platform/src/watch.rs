//! Changes of the entries of a folder, as the system reports them.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::{Errno, Result};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// How many bytes of events are read at once.
const BATCH: usize = 8 << 10;

/// A folder whose entries are watched.
#[derive(Debug)]
pub struct FolderWatch {
    events: OwnedFd,
}

impl FolderWatch {
    /// Begins to watch a folder: entries that are written, made, moved or removed.
    ///
    /// # Errors
    ///
    /// As the system reports it, for example where it has no watches left.
    pub fn begin(folder: &Path) -> Result<Self> {
        let events = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let wanted = WatchFlags::MODIFY
            | WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::DELETE
            | WatchFlags::ONLYDIR;
        add_watch(&events, folder, wanted)?;
        Ok(Self { events })
    }

    /// Waits for a change of an entry of this name; returns whether there was one
    /// in that time. Where events were lost there may have been one.
    ///
    /// # Errors
    ///
    /// As the system reports it.
    pub fn changed(&self, name: &OsStr, within: Duration) -> Result<bool> {
        let mut watched = [PollFd::new(&self.events, PollFlags::IN)];
        let within = Timespec::try_from(within).map_err(|_| Errno::INVAL)?;
        match poll(&mut watched, Some(&within)) {
            Ok(0) | Err(Errno::INTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(error),
        }
        let mut buffer = [MaybeUninit::uninit(); BATCH];
        let mut reader = Reader::new(&self.events, &mut buffer);
        let mut is_changed = false;
        loop {
            match reader.next() {
                Ok(event) => {
                    let of = event
                        .file_name()
                        .map(|name| OsStr::from_bytes(name.to_bytes()));
                    is_changed |= of == Some(name);
                    is_changed |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                }
                Err(Errno::AGAIN) => return Ok(is_changed),
                Err(error) => return Err(error),
            }
        }
    }
}
