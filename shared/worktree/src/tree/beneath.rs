//! Files below one folder, reached through real folders alone.
//!
//! Invariant: no link is followed on the way to a path, so nothing outside the
//! folder is read, moved or removed, whatever a step planted in it.

use crate::removal::remove_entry;
use premath_platform::file::{
    change_mode, open_entry_in, open_folder_beneath, open_place, read_entries,
};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, SeekFrom, Stat, chmodat, fstat, mkdirat, openat,
    readlinkat, renameat, seek, statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// A folder whose content is looked at and changed.
pub(super) struct Beneath {
    root: OwnedFd,
}

/// A folder on the way to a path.
enum Folder<'a> {
    Root(BorrowedFd<'a>),
    Below(OwnedFd),
}

impl AsFd for Folder<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Root(root) => *root,
            Self::Below(folder) => folder.as_fd(),
        }
    }
}

/// What is on the way to a path.
enum Way<'a> {
    /// Its folder, and its name there.
    Open(Folder<'a>, &'a OsStr),
    /// A folder on the way is not there.
    Missing,
    /// Something that is not a folder is on the way.
    Blocked(PathBuf),
}

/// What may be done on the way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Walk {
    Look,
    /// Folders that their owner may not enter are opened up.
    Reach,
    /// Folders that are missing are made as well.
    Make,
}

pub(super) const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// How many entries a folder may have that is searched by a listing: in a longer one each
/// name is looked at on its own.
const LISTED_MAX: usize = 1_000;

/// The rights of a file that is made, less those of the umask.
pub(super) const RIGHTS: Mode = Mode::RUSR
    .union(Mode::WUSR)
    .union(Mode::RGRP)
    .union(Mode::ROTH);

impl Beneath {
    /// Opens the folder; links on the way to the folder itself are followed.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, root, flags, Mode::empty())?;
        Ok(Self { root })
    }

    fn walk<'a>(&'a self, path: &'a Path, walk: Walk) -> io::Result<Way<'a>> {
        let mut names = Vec::new();
        for part in path.components() {
            match part {
                Component::Normal(name) => names.push(name),
                _ => return Err(io::ErrorKind::InvalidInput.into()),
            }
        }
        let name = names.pop().ok_or(io::ErrorKind::InvalidInput)?;
        if let Some(above) = path.parent().filter(|_| names.len() > 1) {
            match open_folder_beneath(self.root.as_fd(), above) {
                Ok(folder) => {
                    open_up_for(&folder, walk)?;
                    return Ok(Way::Open(Folder::Below(folder), name));
                }
                Err(Errno::NOENT) if walk != Walk::Make => return Ok(Way::Missing),
                // One by one, to do what the walk may do on the way.
                Err(_) => {}
            }
        }
        let mut folder = Folder::Root(self.root.as_fd());
        let mut at = PathBuf::new();
        for part in names {
            at.push(part);
            folder = match enter(folder.as_fd(), part, walk) {
                Ok(next) => Folder::Below(next),
                Err(Errno::NOENT) => return Ok(Way::Missing),
                Err(Errno::NOTDIR | Errno::LOOP) => return Ok(Way::Blocked(at)),
                Err(error) => return Err(error.into()),
            };
        }
        Ok(Way::Open(folder, name))
    }

    /// Returns what is at a path, links not followed; `None` where nothing is.
    pub(super) fn look(&self, path: &Path) -> io::Result<Option<Stat>> {
        match self.walk(path, Walk::Look)? {
            Way::Open(folder, name) => match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Ok(Some(stat)),
                Err(Errno::NOENT) => Ok(None),
                Err(error) => Err(error.into()),
            },
            Way::Missing | Way::Blocked(_) => Ok(None),
        }
    }

    /// Returns which of these names exist in the folder itself.
    ///
    /// # Errors
    ///
    /// As the system reports it, and where the folder has more than [`LISTED_MAX`]
    /// entries: a step may fill it, also while it is read.
    pub(super) fn names_among(&self, names: &[&'static str]) -> io::Result<Vec<&'static str>> {
        let (mut found, mut entries) = (Vec::new(), 0);
        seek(&self.root, SeekFrom::Start(0))?;
        while read_entries(self.root.as_fd(), |name, _| {
            entries += 1;
            found.extend(names.iter().find(|one| **one == name));
        })? {
            if entries > LISTED_MAX {
                return Err(io::Error::other("the folder has too many entries"));
            }
        }
        Ok(found)
    }

    /// Returns another descriptor of the open folder; both read its entries from where
    /// one of them ended.
    pub(super) fn folder(&self) -> io::Result<OwnedFd> {
        self.root.try_clone()
    }

    /// Opens a regular file to be read; `None` where nothing is there.
    ///
    /// # Errors
    ///
    /// What is there is no regular file, or cannot be opened.
    pub(super) fn open_file(&self, path: &Path) -> io::Result<Option<File>> {
        self.open_regular(path, OFlags::RDONLY)
    }

    /// Opens a regular file to be written over, as [`Beneath::open_file`].
    pub(super) fn open_to_write(&self, path: &Path) -> io::Result<Option<File>> {
        self.open_regular(path, OFlags::WRONLY)
    }

    fn open_regular(&self, path: &Path, access: OFlags) -> io::Result<Option<File>> {
        let Way::Open(folder, name) = self.walk(path, Walk::Look)? else {
            return Ok(None);
        };
        // A pipe without a writer would block for ever.
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&folder, name, flags | OFlags::NOCTTY, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if file.metadata()?.is_file() {
            return Ok(Some(file));
        }
        Err(io::Error::other("it is not a regular file"))
    }

    /// Reads a small regular file; `None` where nothing is there.
    ///
    /// # Errors
    ///
    /// As [`Beneath::open_file`], and where it holds more than `most` bytes.
    pub(super) fn read(&self, path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = self.open_file(path)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(Some(bytes))
    }

    /// Gives the folder's owner all rights to it.
    pub(super) fn open_root(&self) -> io::Result<()> {
        Ok(open_up(&self.root, OsStr::new("."))?)
    }

    /// Makes a file that is not there yet.
    pub(super) fn create(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let Way::Open(folder, name) = self.walk(path, Walk::Look)? else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = openat(&folder, name, flags | OFlags::CLOEXEC, RIGHTS)?;
        File::from(file).write_all(content)
    }

    /// Makes an empty folder, and those above it.
    pub(super) fn make_folder(&self, path: &Path) -> io::Result<()> {
        let Way::Open(folder, name) = self.walk(path, Walk::Make)? else {
            return Err(io::ErrorKind::NotADirectory.into());
        };
        match mkdirat(&folder, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
            Err(Errno::EXIST) => Ok(()),
            made => Ok(made?),
        }
    }

    /// Makes a file that is not there yet, with the content of another one.
    pub(super) fn create_from(
        &self,
        path: &Path,
        content: &mut impl io::Read,
        is_executable: bool,
    ) -> io::Result<()> {
        let Way::Open(folder, name) = self.walk(path, Walk::Look)? else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = if is_executable { 0o777 } else { 0o666 };
        let mode = Mode::from_raw_mode(mode);
        let file = openat(&folder, name, flags | OFlags::CLOEXEC, mode)?;
        io::copy(content, &mut File::from(file)).map(drop)
    }

    /// Returns what a link says.
    pub(super) fn read_link(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.walk(path, Walk::Look)? {
            Way::Open(folder, name) => Ok(readlinkat(&folder, name, Vec::new())?.into_bytes()),
            Way::Missing | Way::Blocked(_) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Returns what is on the way to a path and is not a folder.
    pub(super) fn blocker(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        match self.walk(path, Walk::Reach)? {
            Way::Blocked(at) => Ok(Some(at)),
            Way::Open(..) | Way::Missing => Ok(None),
        }
    }

    /// Removes a file or a link, and the folders that are empty then; returns
    /// whether a folder is in the place.
    pub(super) fn remove(&self, path: &Path) -> io::Result<bool> {
        let is_folder = self.remove_alone(path)?;
        if !is_folder {
            self.remove_empty_folders(path)?;
        }
        Ok(is_folder)
    }

    /// Removes what is at a path, a folder with all that is in it, and the
    /// folders above that are empty then.
    pub(super) fn delete(&self, path: &Path) -> io::Result<()> {
        match self.walk(path, Walk::Reach)? {
            Way::Open(folder, name) => remove_entry(folder.as_fd(), name)?,
            Way::Missing | Way::Blocked(_) => return Ok(()),
        }
        self.remove_empty_folders(path)
    }

    /// Removes a file or a link, and nothing else; returns whether a folder is
    /// in the place.
    pub(super) fn remove_alone(&self, path: &Path) -> io::Result<bool> {
        let Way::Open(folder, name) = self.walk(path, Walk::Reach)? else {
            return Ok(false);
        };
        match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if kind(&stat) == FileType::Directory => return Ok(true),
            Ok(_) => {}
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        match unlinkat(&folder, name, AtFlags::empty()) {
            Err(Errno::ACCESS | Errno::PERM) => {
                open_up(&folder, OsStr::new("."))?;
                unlinkat(&folder, name, AtFlags::empty())?;
            }
            other => other?,
        }
        Ok(false)
    }

    /// Removes the folders on the way to a path that are empty.
    pub(super) fn remove_empty_folders(&self, path: &Path) -> io::Result<()> {
        for above in path.ancestors().skip(1) {
            if above.as_os_str().is_empty() {
                break;
            }
            let Way::Open(folder, name) = self.walk(above, Walk::Look)? else {
                break;
            };
            if unlinkat(&folder, name, AtFlags::REMOVEDIR).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Moves what is at a path to a place beneath another folder, which is
    /// made; returns the place, with a number where the name is taken.
    pub(super) fn move_to(&self, path: &Path, there: &Self, place: &Path) -> io::Result<PathBuf> {
        let Way::Open(from, name) = self.walk(path, Walk::Reach)? else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let mut place = place.to_path_buf();
        if there.blocker(&place)?.is_some() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let stem = place.as_os_str().to_os_string();
        let mut number = 1_u32;
        while there.look(&place)?.is_some() {
            number += 1;
            let mut name = stem.clone();
            name.push(format!(".{number}"));
            place = PathBuf::from(name);
        }
        let Way::Open(to, new) = there.walk(&place, Walk::Make)? else {
            return Err(io::ErrorKind::NotFound.into());
        };
        match renameat(&from, name, &to, new) {
            // A folder is only moved by who may write in it.
            Err(Errno::ACCESS | Errno::PERM) => {
                open_up(&from, OsStr::new("."))?;
                open_up(&from, name)?;
                renameat(&from, name, &to, new)?;
            }
            other => other?,
        }
        self.remove_empty_folders(path)?;
        Ok(place)
    }

    /// Gives the owner the rights to read a file or a folder, and to the folders on the
    /// way; returns whether it lacked any. A file with other names may lie outside, too,
    /// and stays as it is.
    pub(super) fn open_up(&self, path: &Path) -> io::Result<bool> {
        let was_shut = self.look(path).is_err();
        let Way::Open(folder, name) = self.walk(path, Walk::Reach)? else {
            return Ok(false);
        };
        let found = open_entry_in(&folder, name)?;
        let stat = fstat(&found)?;
        let before = Mode::from_raw_mode(stat.st_mode);
        let after = match kind(&stat) {
            FileType::Directory => before | Mode::RWXU,
            FileType::RegularFile if stat.st_nlink == 1 => before | Mode::RUSR | Mode::WUSR,
            _ => before,
        };
        if before != after {
            change_mode(found.as_fd(), after)?;
        }
        Ok(was_shut || before != after)
    }

    /// Removes what is at a path where it is a link.
    pub(super) fn unlink_if_link(&self, path: &Path) -> io::Result<()> {
        let is_link = self
            .look(path)?
            .is_some_and(|stat| kind(&stat) == FileType::Symlink);
        if is_link {
            self.remove_alone(path)?;
        }
        Ok(())
    }
}

/// Returns what kind of file it is.
pub(super) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Returns a path of git's as the system's, byte for byte.
pub(super) fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

fn enter(folder: BorrowedFd<'_>, name: &OsStr, walk: Walk) -> Result<OwnedFd, Errno> {
    let opened = enter_as_it_is(folder, name, walk)?;
    open_up_for(&opened, walk)?;
    Ok(opened)
}

/// Gives the owner of an open folder all rights to it, where the walk may do that: one that
/// can be listed may have no right to what is in it.
fn open_up_for(folder: &OwnedFd, walk: Walk) -> Result<(), Errno> {
    if walk == Walk::Look {
        return Ok(());
    }
    let before = Mode::from_raw_mode(fstat(folder)?.st_mode);
    let after = before | Mode::RWXU;
    match before == after {
        true => Ok(()),
        false => change_mode(folder.as_fd(), after),
    }
}

fn enter_as_it_is(folder: BorrowedFd<'_>, name: &OsStr, walk: Walk) -> Result<OwnedFd, Errno> {
    match openat(folder, name, FOLDER, Mode::empty()) {
        Err(Errno::ACCESS) if walk != Walk::Look => {
            open_up(folder, name)?;
            openat(folder, name, FOLDER, Mode::empty())
        }
        Err(Errno::NOENT) if walk == Walk::Make => {
            mkdirat(folder, name, Mode::RWXU | Mode::RWXG | Mode::RWXO)?;
            openat(folder, name, FOLDER, Mode::empty())
        }
        other => other,
    }
}

/// Gives the owner of a folder all rights to it, also where it cannot be opened
/// without them; in a folder of the harness's own, others keep no more than to
/// read. A link in its place is refused.
pub(super) fn open_folder(folder: &Path, is_own: bool) -> io::Result<()> {
    let found = open_place(folder)?;
    let before = Mode::from_raw_mode(fstat(&found)?.st_mode);
    let mut after = before | Mode::RWXU;
    if is_own {
        after &= Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH;
    }
    if before == after {
        return Ok(());
    }
    Ok(change_mode(found.as_fd(), after)?)
}

/// Gives the owner of a folder all rights to it; no link is followed.
fn open_up(folder: impl AsFd, name: &OsStr) -> Result<(), Errno> {
    let stat = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if kind(&stat) != FileType::Directory {
        return Ok(());
    }
    let mode = Mode::from_raw_mode(stat.st_mode) | Mode::RWXU;
    chmodat(folder, name, mode, AtFlags::empty())
}
