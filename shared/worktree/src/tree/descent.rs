//! Opens the folders of a worktree one below the other, by descriptor.
//!
//! A step wrote these folders. A link is never followed, and a folder stays
//! open while paths below it are looked at, so that a sorted list of paths
//! costs one call a path.

use super::beneath::{FOLDER, kind, path};
use crate::removal::DEEPEST;
use premath_platform::file::read_entries;
use rustix::fs::{
    AtFlags, FileType, Mode, SeekFrom, Stat, Timespec, Timestamps, UTIME_OMIT, fstat, mkdirat,
    openat, seek, statat, utimensat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Component;

/// How deep folders may lie. Each level of the path in use holds a descriptor.
pub(super) const DEPTH_MAX: usize = DEEPEST;

/// The folders from the worktree's root down to the latest path.
pub(super) struct Descent {
    root: OwnedFd,
    below: Vec<(Vec<u8>, OwnedFd)>,
}

/// The content of a folder.
pub(super) struct Listing {
    /// Names with the kind that the folder itself gives, sorted.
    pub(super) names: Vec<(Vec<u8>, FileType)>,
}

impl Descent {
    pub(super) fn new(root: OwnedFd) -> Self {
        Self {
            root,
            below: Vec::new(),
        }
    }

    /// Returns what is at a path, links not followed; `None` where nothing is,
    /// or where something that is not a folder is on the way.
    ///
    /// # Errors
    ///
    /// A folder on the way that cannot be entered, or a path too deep.
    pub(super) fn look(&mut self, name: &[u8]) -> io::Result<Option<Stat>> {
        let (folder, file) = match name.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&name[..at], &name[at + 1..]),
            None => (&name[..0], name),
        };
        let Some(folder) = self.enter(folder)? else {
            return Ok(None);
        };
        match statat(folder, path(file), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether a folder's owner lacks a right to it.
    pub(super) fn is_shut(&mut self, folder: &[u8]) -> bool {
        let open = self.enter(folder).ok().flatten();
        let stat = open.and_then(|open| fstat(open).ok());
        stat.is_some_and(|stat| stat.st_mode & 0o700 != 0o700)
    }

    /// Lists a folder; `None` where there is none.
    ///
    /// # Errors
    ///
    /// As [`Descent::look`].
    pub(super) fn list(&mut self, folder: &[u8], most: usize) -> io::Result<Option<Listing>> {
        let Some(open) = self.enter(folder)? else {
            return Ok(None);
        };
        // It may have been listed before.
        seek(open, SeekFrom::Start(0))?;
        let mut names = Vec::new();
        let mut left = true;
        while left {
            let take = |name: &OsStr, kind| {
                if name != "." && name != ".." {
                    names.push((name.as_bytes().to_vec(), kind));
                }
            };
            left = match read_entries(open.as_fd(), take) {
                // A folder that was removed has no entries.
                Err(Errno::NOENT) => false,
                read => read?,
            };
            if names.len() > most {
                return Err(too_many());
            }
        }
        let open = self.enter(folder)?.ok_or(io::ErrorKind::NotFound)?;
        for (name, found) in &mut names {
            if *found == FileType::Unknown {
                *found = kind(&statat(open, path(name), AtFlags::SYMLINK_NOFOLLOW)?);
            }
        }
        names.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(Some(Listing { names }))
    }

    /// Sets when a file, a symlink or a folder was modified; returns whether
    /// there is one. The empty path is the root.
    pub(super) fn set_time(&mut self, name: &[u8], time: (i64, i64)) -> io::Result<bool> {
        let (folder, file) = match name.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&name[..at], &name[at + 1..]),
            None if name.is_empty() => (name, &b"."[..]),
            None => (&name[..0], name),
        };
        let Some(folder) = self.enter(folder)? else {
            return Ok(false);
        };
        let times = Timestamps {
            last_access: Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_OMIT,
            },
            last_modification: Timespec {
                tv_sec: time.0,
                tv_nsec: time.1,
            },
        };
        match utimensat(folder, path(file), &times, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns when a folder was modified; `None` where there is none.
    pub(super) fn folder_time(&mut self, folder: &[u8]) -> io::Result<Option<(i64, i64)>> {
        let Some(folder) = self.enter(folder)? else {
            return Ok(None);
        };
        let stat = fstat(folder)?;
        Ok(Some((stat.st_mtime, stat.st_mtime_nsec as i64)))
    }

    /// Opens a folder by its path from the root; `None` where there is none.
    fn enter(&mut self, folder: &[u8]) -> io::Result<Option<&OwnedFd>> {
        self.reach(folder, open_folder)
    }

    /// Opens a folder by its path from the root, and makes those that are
    /// missing; `None` where something else is on the way.
    ///
    /// # Errors
    ///
    /// As [`Descent::look`], and where a folder cannot be made.
    pub(super) fn make(&mut self, folder: &[u8]) -> io::Result<Option<&OwnedFd>> {
        self.reach(folder, made_folder)
    }

    fn reach(
        &mut self,
        folder: &[u8],
        open: impl Fn(&OwnedFd, &OsStr) -> Result<OwnedFd, Errno>,
    ) -> io::Result<Option<&OwnedFd>> {
        let mut names = Vec::new();
        for part in path(folder).components() {
            match part {
                Component::Normal(name) => names.push(name),
                _ => return Err(io::ErrorKind::InvalidInput.into()),
            }
        }
        if names.len() > DEPTH_MAX {
            return Err(too_deep());
        }
        let shared = self
            .below
            .iter()
            .zip(&names)
            .take_while(|((open, _), name)| open == name.as_encoded_bytes())
            .count();
        self.below.truncate(shared);
        for name in &names[shared..] {
            let above = self.below.last().map_or(&self.root, |(_, open)| open);
            match open(above, name) {
                Ok(open) => self.below.push((name.as_encoded_bytes().to_vec(), open)),
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(self.below.last().map_or(&self.root, |(_, open)| open)))
    }
}

fn open_folder(above: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    openat(above, name, FOLDER, Mode::empty())
}

fn made_folder(above: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    match open_folder(above, name) {
        Err(Errno::NOENT) => {
            mkdirat(above, name, Mode::from_raw_mode(0o755))?;
            open_folder(above, name)
        }
        other => other,
    }
}

pub(super) fn too_deep() -> io::Error {
    io::Error::other(format!("folders lie deeper than {DEPTH_MAX} levels"))
}

pub(super) fn too_many() -> io::Error {
    io::Error::other("there are more files than a worktree may hold")
}
