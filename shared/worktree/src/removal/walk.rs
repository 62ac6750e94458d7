//! The walk that empties a folder, without recursion: one descriptor is open at
//! a time, however deep the folders go.

use super::error::Stop;
use super::node::{self, Node};
use super::{Guard, RemovalBounds};
use premath_memory::lane_record::FolderId;
use premath_platform::file::read_entries;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

/// One removal and what is left of its bounds.
pub(super) struct Walk<'g> {
    guard: &'g Guard,
    most: u64,
    removed: u64,
    /// Entries looked at; they bound a walk that removes nothing.
    seen: u64,
    until: Instant,
    /// Which folder the target must be, where that is known.
    expected: Option<FolderId>,
}

/// A folder on the way down to the open one.
struct Above {
    node: Node,
    /// The name in it of the folder below.
    name: OsString,
    /// Folders that were read and are still there.
    pending: Vec<OsString>,
}

/// What comes next in a folder.
enum Next {
    Folder(OsString),
    Empty,
}

impl<'g> Walk<'g> {
    pub(super) fn new(guard: &'g Guard, bounds: RemovalBounds) -> Self {
        Self {
            guard,
            most: bounds.entries,
            removed: 0,
            seen: 0,
            until: Instant::now() + bounds.time,
            expected: None,
        }
    }

    /// Removes the target only while it is this folder.
    pub(super) const fn only(mut self, id: FolderId) -> Self {
        self.expected = Some(id);
        self
    }

    /// Removes an entry, a folder with all that is in it; a missing one is
    /// success.
    pub(super) fn remove(&mut self, parent: BorrowedFd<'_>, name: &OsStr) -> Result<(), Stop> {
        if matches!(name.as_bytes(), b"" | b"." | b"..") || name.as_bytes().contains(&b'/') {
            return Err(stop(name)(io::ErrorKind::InvalidInput.into()));
        }
        let from = Node::of(parent).map_err(stop(name))?;
        // A second process may refill it; the bounds end that.
        loop {
            if self.expected.is_none() && self.remove_single(parent, name, None)? {
                return Ok(());
            }
            self.count()?;
            let (place, node) = match self.enter(parent, &from, name) {
                Ok(entered) => entered,
                // It is gone, or a file now.
                Err(Stop::Io { source, .. }) if is_replaced(&source) => match self.expected {
                    Some(_) => return Err(Stop::Changed { at: text(name) }),
                    None => continue,
                },
                Err(other) => return Err(other),
            };
            if let Some(expected) = self.expected {
                let found = node::look(place.as_fd(), OsStr::new("")).map_err(stop(name))?;
                if !node::id(&found).is(&expected) {
                    return Err(Stop::Changed { at: text(name) });
                }
            }
            self.empty(place.as_fd(), &node)?;
            if self.expected.is_some() && self.remove_single(parent, name, Some(true))? {
                return Ok(());
            }
        }
    }

    /// Removes what a folder contains.
    fn empty(&mut self, top: BorrowedFd<'_>, node: &Node) -> Result<(), Stop> {
        let mut here = node::read(top, node).map_err(stop(OsStr::new(".")))?;
        let mut at = *node;
        let mut pending = Vec::new();
        let mut way: Vec<Above> = Vec::new();
        loop {
            match self.next(&here, &mut pending)? {
                Next::Folder(name) => {
                    let (place, below) = match self.enter(here.as_fd(), &at, &name) {
                        Ok(entered) => entered,
                        Err(Stop::Io { source, .. }) if is_replaced(&source) => continue,
                        Err(other) => return Err(other),
                    };
                    here = node::read(place.as_fd(), &below).map_err(stop(&name))?;
                    way.push(Above {
                        node: at,
                        name,
                        pending: std::mem::take(&mut pending),
                    });
                    at = below;
                }
                Next::Empty => {
                    let Some(above) = way.pop() else {
                        return Ok(());
                    };
                    here = return_to(&here, &above)?;
                    at = above.node;
                    pending = above.pending;
                    if !self.remove_single(here.as_fd(), &above.name, Some(true))? {
                        // It was filled again, or the listing missed an entry
                        // because others were removed meanwhile.
                        pending.push(above.name);
                    }
                }
            }
        }
    }

    /// Removes files and empty folders until a folder with content is found, or
    /// the listing ends.
    fn next(&mut self, folder: &OwnedFd, pending: &mut Vec<OsString>) -> Result<Next, Stop> {
        loop {
            while let Some(name) = pending.pop() {
                if !self.remove_single(folder.as_fd(), &name, Some(true))? {
                    return Ok(Next::Folder(name));
                }
            }
            let names = read_batch(folder)?;
            if names.is_empty() {
                return Ok(Next::Empty);
            }
            for (name, is_folder) in names {
                if matches!(name.as_bytes(), b"." | b"..") {
                    continue;
                }
                if is_folder == Some(true)
                    || !self.remove_single(folder.as_fd(), &name, is_folder)?
                {
                    pending.push(name);
                }
            }
        }
    }

    fn enter(
        &mut self,
        parent: BorrowedFd<'_>,
        from: &Node,
        name: &OsStr,
    ) -> Result<(OwnedFd, Node), Stop> {
        let (place, node) = match node::enter(parent, from, name) {
            Ok(entered) => entered,
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                return Err(Stop::Mount { at: text(name) });
            }
            Err(error) => return Err(stop(name)(error)),
        };
        self.guard.pass(&node, name)?;
        Ok((place, node))
    }

    /// Removes a file, a link or an empty folder; returns whether it is gone.
    fn remove_single(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &OsStr,
        is_folder: Option<bool>,
    ) -> Result<bool, Stop> {
        self.count()?;
        let outcome = match unlink(parent, name, is_folder) {
            Err(Errno::ACCESS | Errno::PERM) => {
                node::release(parent, name);
                unlink(parent, name, is_folder)
            }
            other => other,
        };
        match outcome {
            Ok(()) => {
                self.removed += 1;
                Ok(true)
            }
            Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(Errno::BUSY) => Err(Stop::Mount { at: text(name) }),
            Err(errno) => Err(stop(name)(errno.into())),
        }
    }

    fn count(&mut self) -> Result<(), Stop> {
        self.seen += 1;
        let is_over = self.removed >= self.most
            || self.seen / 4 > self.most
            || (self.seen.is_multiple_of(64) && Instant::now() > self.until);
        if is_over {
            return Err(Stop::Endless {
                removed: self.removed,
            });
        }
        Ok(())
    }
}

/// Opens the folder above and makes sure that it is the one that was left.
fn return_to(below: &OwnedFd, above: &Above) -> Result<OwnedFd, Stop> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(below, "..", flags, Mode::empty())
        .map_err(|errno| stop(&above.name)(errno.into()))?;
    let node = Node::of(folder.as_fd()).map_err(stop(&above.name))?;
    if !node.is(&above.node) || !node.is_beside(&above.node) {
        return Err(Stop::Changed {
            at: text(&above.name),
        });
    }
    Ok(folder)
}

/// Unlinks by what the entry is; where that is not known or not true any more,
/// by trying.
fn unlink(parent: BorrowedFd<'_>, name: &OsStr, is_folder: Option<bool>) -> Result<(), Errno> {
    let folder = || unlinkat(parent, name, AtFlags::REMOVEDIR);
    let file = || unlinkat(parent, name, AtFlags::empty());
    if is_folder == Some(true) {
        return match folder() {
            Err(Errno::NOTDIR) => file(),
            other => other,
        };
    }
    match file() {
        Err(Errno::ISDIR) => folder(),
        // Some file systems answer so for a folder.
        Err(Errno::PERM) => match folder() {
            Err(Errno::NOTDIR) => Err(Errno::PERM),
            other => other,
        },
        other => other,
    }
}

fn is_replaced(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || node::is_not_a_folder(error)
}

/// Reads some entries from where the last call ended: each name, and whether it
/// is a folder if the file system reports that. Empty at the end.
fn read_batch(folder: &OwnedFd) -> Result<Vec<(OsString, Option<bool>)>, Stop> {
    let mut names = Vec::new();
    let read = read_entries(folder.as_fd(), |name, kind| {
        let is_folder = match kind {
            FileType::Directory => Some(true),
            FileType::Unknown => None,
            _ => Some(false),
        };
        names.push((name.to_os_string(), is_folder));
    });
    match read {
        // Another process removed the folder itself.
        Ok(_) | Err(Errno::NOENT) => Ok(names),
        Err(errno) => Err(stop(OsStr::new("."))(errno.into())),
    }
}

fn text(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

fn stop(name: &OsStr) -> impl FnOnce(io::Error) -> Stop + use<> {
    let at = text(name);
    move |source| Stop::Io { at, source }
}
