//! An open folder and what it is: device, inode and mount.

use premath_memory::lane_record::FolderId;
use premath_platform::file::{self, EntryStatus, Opened};
use rustix::fs::{FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Which folder it is. The mount is part of it: a bind mount shows the same
/// inode in another place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node(EntryStatus);

const READ: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl Node {
    /// Returns what an open folder is.
    pub(super) fn of(folder: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(Self(look(folder, OsStr::new(""))?))
    }

    /// Returns whether two are the same folder, through whichever mount.
    pub(super) fn is(&self, other: &Self) -> bool {
        (self.0.device, self.0.inode) == (other.0.device, other.0.inode)
    }

    /// Returns whether two are on one file system and one mount.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        self.0.device == other.0.device && self.0.mount == other.0.mount
    }

    const fn is_open_to_owner(&self) -> bool {
        self.0.mode & 0o700 == 0o700
    }
}

impl From<EntryStatus> for Node {
    fn from(found: EntryStatus) -> Self {
        Self(found)
    }
}

/// Returns what an entry is, links not followed; the folder itself for an empty
/// name.
pub(super) fn look(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<EntryStatus> {
    Ok(file::status(folder, name)?)
}

/// Returns which folder it is, to be written down.
pub(super) fn id(found: &EntryStatus) -> FolderId {
    let (major, minor) = found.device;
    FolderId {
        device: rustix::fs::makedev(major, minor),
        inode: found.inode,
        born_ns: found.born_ns,
    }
}

/// Returns whether an entry is a folder.
pub(super) fn is_folder(found: &EntryStatus) -> bool {
    FileType::from_raw_mode(found.mode) == FileType::Directory
}

/// Opens the root of the file system.
pub(super) fn root() -> io::Result<OwnedFd> {
    Ok(file::open_place("/")?)
}

/// Opens a folder within a folder as a place, across mounts, but not through a
/// link.
pub(super) fn step(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(file::open_place_in(folder, name)?)
}

/// Opens the folder above.
pub(super) fn above(folder: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    step(folder, OsStr::new(".."))
}

/// Returns whether something could not be opened because it is not a folder.
pub(super) fn is_not_a_folder(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [Errno::NOTDIR, Errno::LOOP]
        .iter()
        .any(|errno| code == Some(errno.raw_os_error()))
}

/// Opens a folder within a folder as a place; fails with `CrossesDevices` where
/// it is on another mount.
pub(super) fn enter(
    folder: BorrowedFd<'_>,
    from: &Node,
    name: &OsStr,
) -> io::Result<(OwnedFd, Node)> {
    let Opened { file, is_on_mount } = file::open_place_beneath(folder, name)?;
    let node = Node::of(file.as_fd())?;
    let is_known = is_on_mount || (node.0.mount.is_some() && from.0.mount.is_some());
    if !is_known || !node.is_beside(from) {
        return Err(Errno::XDEV.into());
    }
    Ok((file, node))
}

/// Opens a folder for reading its entries. One that its owner may not read,
/// write and search is made accessible first, by its descriptor.
pub(super) fn read(place: BorrowedFd<'_>, node: &Node) -> io::Result<OwnedFd> {
    if !node.is_open_to_owner() {
        let mode = Mode::from_raw_mode(node.0.mode & 0o7777) | Mode::RWXU;
        // Where this fails, opening it says why.
        let _ = file::change_mode(place, mode);
    }
    Ok(openat(place, ".", READ, Mode::empty())?)
}

/// Clears the flags that forbid removal from a folder and from a file or folder
/// in it, as far as the rights of this process reach.
pub(super) fn release(folder: BorrowedFd<'_>, name: &OsStr) {
    file::allow_removal(folder);
    let Ok(found) = look(folder, name) else {
        return;
    };
    let kind = FileType::from_raw_mode(found.mode);
    // Opening a device or a pipe may have an effect.
    if !matches!(kind, FileType::RegularFile | FileType::Directory) {
        return;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if let Ok(found) = openat(folder, name, flags, Mode::empty()) {
        file::allow_removal(found.as_fd());
    }
}
