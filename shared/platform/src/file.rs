//! Files below a folder, by descriptors.

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, ResolveFlags, Statx, StatxFlags, chmod, openat,
    openat2, renameat_with, statx,
};
use rustix::io::{Errno, Result};
use rustix::path::Arg;
use std::ffi::OsStr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// A file that was opened below a folder.
#[derive(Debug)]
pub struct Opened {
    /// The open file.
    pub file: OwnedFd,
    /// Whether the kernel checked that it is on the folder's mount. It is not
    /// checked where the kernel is old, or a container's filter refuses the call.
    pub is_on_mount: bool,
}

/// Opens one component of a path below a folder: no link is followed, and no
/// other mount is entered.
///
/// # Errors
///
/// As the system reports it; `XDEV` for another mount, `LOOP` for a link.
pub fn open_beneath(
    folder: BorrowedFd<'_>,
    name: impl Arg + Copy,
    flags: OFlags,
    mode: Mode,
) -> Result<Opened> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    let (file, is_on_mount) = match openat2(folder, name, flags, mode, resolve) {
        Err(Errno::NOSYS | Errno::PERM) => (openat(folder, name, flags, mode)?, false),
        opened => (opened?, true),
    };
    Ok(Opened { file, is_on_mount })
}

/// What an entry of a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryStatus {
    /// The numbers of its device.
    pub device: (u32, u32),
    /// Its number on the device.
    pub inode: u64,
    /// Its mount; `None` where the kernel does not say.
    pub mount: Option<u64>,
    /// Its kind and rights, as `st_mode`.
    pub mode: u32,
    /// When it was made, in nanoseconds since 1970; `None` where the file system
    /// does not know.
    pub born_ns: Option<i64>,
}

/// Looks at an entry, links not followed; at the folder itself for an empty name.
///
/// # Errors
///
/// As the system reports it.
pub fn status(folder: BorrowedFd<'_>, name: &OsStr) -> Result<EntryStatus> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID;
    Ok(EntryStatus::from(&statx(folder, name, flags, wanted)?))
}

impl From<&Statx> for EntryStatus {
    fn from(found: &Statx) -> Self {
        let has = |field: StatxFlags| found.stx_mask & field.bits() != 0;
        let born = || {
            let seconds = found.stx_btime.tv_sec.checked_mul(1_000_000_000)?;
            seconds.checked_add(i64::from(found.stx_btime.tv_nsec))
        };
        Self {
            device: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            mount: has(StatxFlags::MNT_ID).then_some(found.stx_mnt_id),
            mode: u32::from(found.stx_mode),
            born_ns: has(StatxFlags::BTIME).then(born).flatten(),
        }
    }
}

/// Renames an entry, unless its new name is taken.
///
/// # Errors
///
/// `EXIST` where the name is taken; else as the system reports it.
pub fn rename_to_free_name(
    (from, name): (BorrowedFd<'_>, &OsStr),
    (to, new_name): (BorrowedFd<'_>, &OsStr),
) -> Result<()> {
    renameat_with(from, name, to, new_name, RenameFlags::NOREPLACE)
}

/// Returns a path that leads to an open file, whatever its name is now.
pub(crate) fn path_of(file: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Changes the rights of an open file, also of one that was opened as a place
/// alone.
///
/// # Errors
///
/// As the system reports it.
pub fn change_mode(file: BorrowedFd<'_>, mode: Mode) -> Result<()> {
    // A descriptor of a place changes nothing itself; its path does.
    chmod(path_of(file), mode)
}

/// Opens a folder as a place: it can be passed through and looked at, not read.
///
/// # Errors
///
/// As the system reports it; `NOTDIR` or `LOOP` for anything but a folder.
pub fn open_place(path: impl Arg) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty())
}
