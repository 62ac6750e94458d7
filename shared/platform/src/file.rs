//! Files below a folder, by descriptors.

use rustix::fs::{
    AtFlags, CWD, FileType, IFlags, MemfdFlags, Mode, OFlags, RawDir, RenameFlags, ResolveFlags,
    Statx, StatxFlags, chmod, ioctl_getflags, ioctl_setflags, memfd_create, openat, openat2,
    renameat_with, statx,
};
use rustix::io::{Errno, Result};
use rustix::path::Arg;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A folder as a place: it can be passed through and looked at, not read.
const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// How many bytes of entries are read at once.
const BATCH: usize = 16 << 10;

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

/// Opens a folder some components below another one: no link is followed.
///
/// # Errors
///
/// As the system reports it; `NOENT` where a component is missing and all before it are
/// folders, `NOSYS` or `PERM` where the kernel is old, or a container's filter refuses
/// the call.
pub fn open_folder_beneath(folder: BorrowedFd<'_>, path: impl Arg) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(folder, path, flags, Mode::empty(), resolve)
}

/// Opens a regular file of the operator's to be read, which may be a link of theirs.
/// Nothing is waited for.
///
/// # Errors
///
/// As the system reports it, and where it is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, path, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// Reads a file as [`open_regular`] opens it; `None` where there is none.
///
/// # Errors
///
/// As [`open_regular`].
pub fn read_regular(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    match open_regular(path) {
        Ok(mut file) => file.read_to_end(&mut text).map(|_| Some(text)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => match is_null(path) {
            true => Ok(Some(text)),
            false => Err(error),
        },
    }
}

/// Returns whether a path leads to the device that is empty, by which users say that
/// they have no such file.
pub fn is_null(path: &Path) -> bool {
    std::fs::canonicalize(path).is_ok_and(|path| path == Path::new("/dev/null"))
}

/// Returns whether an error says that nothing has a path.
pub fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
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

/// Exchanges the names of two entries of a folder.
///
/// # Errors
///
/// `NOENT` where one of them is missing, `INVAL` or `NOSYS` where the file system or the
/// kernel cannot do it; else as the system reports it.
pub fn exchange_names(folder: BorrowedFd<'_>, one: impl Arg, other: impl Arg) -> Result<()> {
    renameat_with(folder, one, folder, other, RenameFlags::EXCHANGE)
}

/// Makes a file in memory; this process opens it again by the path, as long as the
/// file is open.
///
/// # Errors
///
/// As the system reports it.
pub fn in_memory(content: &[u8]) -> io::Result<(File, PathBuf)> {
    let mut file = File::from(memfd_create("copy", MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    let path = path_of(file.as_fd());
    Ok((file, path))
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
    open_place_in(CWD, path)
}

/// Opens a folder within a folder as a place, across mounts.
///
/// # Errors
///
/// As the system reports it; `NOTDIR` or `LOOP` for anything but a folder.
pub fn open_place_in(folder: impl AsFd, name: impl Arg) -> Result<OwnedFd> {
    openat(folder, name, PLACE | OFlags::NOFOLLOW, Mode::empty())
}

/// Opens whatever is in a folder under a name as a place: a link is not followed, and a
/// file, a pipe or a device is not opened itself.
///
/// # Errors
///
/// As the system reports it.
pub fn open_entry_in(folder: impl AsFd, name: impl Arg) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty())
}

/// Opens a folder within a folder as a place, as [`open_beneath`] does.
///
/// # Errors
///
/// As for [`open_beneath`].
pub fn open_place_beneath(folder: BorrowedFd<'_>, name: impl Arg + Copy) -> Result<Opened> {
    open_beneath(folder, name, PLACE, Mode::empty())
}

/// Opens a folder as a place, also where its path ends in a link.
///
/// # Errors
///
/// As the system reports it; `NOTDIR` for anything but a folder.
pub fn open_place_through_links(path: impl Arg) -> Result<OwnedFd> {
    openat(CWD, path, PLACE, Mode::empty())
}

/// Reads some entries of a folder from where the last call ended, and passes
/// each name with its kind, which is unknown on some file systems. Returns
/// whether there were any: at the end there are none.
///
/// # Errors
///
/// As the system reports it; `NOENT` where the folder itself was removed.
pub fn read_entries(
    folder: BorrowedFd<'_>,
    mut take: impl FnMut(&OsStr, FileType),
) -> Result<bool> {
    let mut buffer: Vec<u8> = Vec::with_capacity(BATCH);
    let mut entries = RawDir::new(folder, buffer.spare_capacity_mut());
    let mut has_any = false;
    while let Some(entry) = entries.next() {
        let entry = entry?;
        has_any = true;
        take(
            OsStr::from_bytes(entry.file_name().to_bytes()),
            entry.file_type(),
        );
        // The next entry would be read from the disk.
        if entries.is_buffer_empty() {
            break;
        }
    }
    Ok(has_any)
}

/// Clears the flags of an open file or folder that forbid its removal, as far as
/// the rights of this process reach.
pub fn allow_removal(file: BorrowedFd<'_>) {
    let forbidding = IFlags::IMMUTABLE | IFlags::APPEND;
    if let Ok(flags) = ioctl_getflags(file)
        && flags.intersects(forbidding)
    {
        let _ = ioctl_setflags(file, flags.difference(forbidding));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::os::fd::AsFd;

    #[test]
    fn every_entry_is_read_once_in_several_calls() {
        let name = format!("premath-platform-entries-{}", std::process::id());
        let at = std::env::temp_dir().join(name);
        std::fs::create_dir(&at).unwrap();
        let names: BTreeSet<String> = (0..500).map(|number| format!("{number:0>100}")).collect();
        for name in &names {
            std::fs::write(at.join(name), "").unwrap();
        }
        let folder = std::fs::File::open(&at).unwrap();
        let mut found = Vec::new();
        let mut calls = 0;
        while read_entries(folder.as_fd(), |name, _| {
            found.push(name.to_str().unwrap().to_owned());
        })
        .unwrap()
        {
            calls += 1;
        }
        std::fs::remove_dir_all(&at).unwrap();
        assert!(calls > 1);
        found.retain(|name| name != "." && name != "..");
        assert_eq!(found.len(), names.len());
        assert_eq!(BTreeSet::from_iter(found), names);
    }

    #[test]
    fn a_link_is_not_a_place_unless_it_may_be() {
        let name = format!("premath-platform-link-{}", std::process::id());
        let at = std::env::temp_dir().join(name);
        std::os::unix::fs::symlink("/", &at).unwrap();
        let (direct, through) = (open_place(&at), open_place_through_links(&at));
        std::fs::remove_file(&at).unwrap();
        assert!(matches!(direct, Err(Errno::NOTDIR | Errno::LOOP)));
        let root = through.unwrap();
        assert_eq!(
            status(root.as_fd(), OsStr::new("")).unwrap().inode,
            status(CWD, OsStr::new("/")).unwrap().inode
        );
        // The folder is only a place: it cannot be read.
        assert_eq!(read_entries(root.as_fd(), |_, _| {}), Err(Errno::BADF));
    }
}
