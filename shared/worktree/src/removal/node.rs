//! An open folder and what it is: device, inode and mount.

use premath_memory::lane_record::FolderId;
use rustix::fs::{
    AtFlags, CWD, FileType, IFlags, Mode, OFlags, ResolveFlags, Statx, StatxFlags, chmodat,
    ioctl_getflags, ioctl_setflags, openat, openat2, statx,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// Which folder it is. The mount is part of it: a bind mount shows the same
/// inode in another place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    device: (u32, u32),
    inode: u64,
    /// `None` where the kernel does not say.
    mount: Option<u64>,
    mode: u32,
}

const PATH: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl Node {
    /// Returns what an open folder is.
    pub(super) fn of(folder: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(Self::from(&look(folder, OsStr::new(""))?))
    }

    /// Returns whether two are the same folder, through whichever mount.
    pub(super) fn is(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Returns whether two are on one file system and one mount.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        self.device == other.device && self.mount == other.mount
    }

    const fn is_open_to_owner(&self) -> bool {
        self.mode & 0o700 == 0o700
    }
}

impl From<&Statx> for Node {
    fn from(found: &Statx) -> Self {
        let has_mount = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        Self {
            device: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            mount: has_mount.then_some(found.stx_mnt_id),
            mode: u32::from(found.stx_mode),
        }
    }
}

/// Returns what an entry is, links not followed; the folder itself for an empty
/// name.
pub(super) fn look(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<Statx> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID;
    Ok(statx(folder, name, flags, wanted)?)
}

/// Returns which folder it is, to be written down.
pub(super) fn id(found: &Statx) -> FolderId {
    let has_birth = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    let born = || {
        let seconds = found.stx_btime.tv_sec.checked_mul(1_000_000_000)?;
        seconds.checked_add(i64::from(found.stx_btime.tv_nsec))
    };
    FolderId {
        device: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
        born_ns: has_birth.then(born).flatten(),
    }
}

/// Returns whether an entry is a folder.
pub(super) fn is_folder(found: &Statx) -> bool {
    FileType::from_raw_mode(u32::from(found.stx_mode)) == FileType::Directory
}

/// Opens the root of the file system.
pub(super) fn root() -> io::Result<OwnedFd> {
    Ok(openat(CWD, "/", PATH, Mode::empty())?)
}

/// Opens a folder within a folder as a place, across mounts, but not through a
/// link.
pub(super) fn step(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(openat(folder, name, PATH, Mode::empty())?)
}

/// Opens the folder above.
pub(super) fn above(folder: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    step(folder, OsStr::new(".."))
}

/// Returns whether something could not be opened because it is not a folder.
pub(super) fn is_no_folder(error: &io::Error) -> bool {
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
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let (place, is_checked) = match openat2(folder, name, PATH, Mode::empty(), resolve) {
        // An old kernel, or a filter of a container that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => (openat(folder, name, PATH, Mode::empty())?, false),
        opened => (opened?, true),
    };
    let node = Node::of(std::os::fd::AsFd::as_fd(&place))?;
    let is_known = is_checked || (node.mount.is_some() && from.mount.is_some());
    if !is_known || !node.is_beside(from) {
        return Err(Errno::XDEV.into());
    }
    Ok((place, node))
}

/// Opens a folder for reading its entries. One that its owner may not read,
/// write and search is made accessible first, by its descriptor.
pub(super) fn read(place: BorrowedFd<'_>, node: &Node) -> io::Result<OwnedFd> {
    if !node.is_open_to_owner() {
        let mode = Mode::from_raw_mode(node.mode & 0o7777) | Mode::RWXU;
        let itself = format!("/proc/self/fd/{}", place.as_raw_fd());
        // Where this fails, opening it says why.
        let _ = chmodat(CWD, itself, mode, AtFlags::empty());
    }
    Ok(openat(place, ".", READ, Mode::empty())?)
}

/// Clears the flags that forbid removal from a folder and from a file or folder
/// in it, as far as the rights of this process reach.
pub(super) fn release(folder: BorrowedFd<'_>, name: &OsStr) {
    clear_flags(folder);
    let Ok(found) = look(folder, name) else {
        return;
    };
    let kind = FileType::from_raw_mode(u32::from(found.stx_mode));
    // Opening a device or a pipe may have an effect.
    if !matches!(kind, FileType::RegularFile | FileType::Directory) {
        return;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if let Ok(file) = openat(folder, name, flags, Mode::empty()) {
        clear_flags(std::os::fd::AsFd::as_fd(&file));
    }
}

fn clear_flags(file: BorrowedFd<'_>) {
    let forbidding = IFlags::IMMUTABLE | IFlags::APPEND;
    if let Ok(flags) = ioctl_getflags(file)
        && flags.intersects(forbidding)
    {
        let _ = ioctl_setflags(file, flags.difference(forbidding));
    }
}
