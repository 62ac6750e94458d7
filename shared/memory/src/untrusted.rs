//! Files in folders that a step can write. Every read and write of the harness
//! there goes through [`UntrustedFolder`]: relative to a descriptor, never
//! through a link, out of the folder or onto another file system, regular
//! files only, of a bounded size, without waiting.

use crate::error::StoreError;
use premath_platform::file::{
    change_mode, exchange_names, open_beneath, open_place_beneath, open_place_through_links,
};
use rustix::fs::{AtFlags, Dir, Mode, OFlags, fchmod, fstat, mkdirat, renameat, unlinkat};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The most bytes of a step's outbox.
pub const OUTBOX_MAX: u64 = 1 << 20;
/// The most bytes of the evidence that a work command writes down.
pub const EVIDENCE_MAX: u64 = 16 << 20;
/// The most bytes of a settings or policy file.
pub const SETTINGS_MAX: u64 = 4 << 20;
/// How the name of a temporary file begins.
const TEMPORARY: &str = ".premath-new-";
/// How often a folder that is filled meanwhile is emptied again.
const EMPTY_ROUNDS: usize = 16;

/// A file in a folder that a step can write was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum UntrustedError {
    /// It is a link, a pipe, a device or a folder.
    #[error("{path} is {found}, not a regular file")]
    NotRegular {
        /// The file.
        path: PathBuf,
        /// The kind of file that was found.
        found: &'static str,
    },
    /// It is also known by another name, which may be outside of the folder.
    #[error("{path} has {links} hard links; expected one")]
    Linked {
        /// The file.
        path: PathBuf,
        /// How many names it has.
        links: u64,
    },
    /// The file is too large.
    #[error("{path} is larger than {limit} bytes")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The bound.
        limit: u64,
    },
    /// A file operation failed.
    #[error("cannot {operation} {path}")]
    Io {
        /// What was tried, as in `read`.
        operation: &'static str,
        /// The file of the operation.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl From<UntrustedError> for StoreError {
    fn from(error: UntrustedError) -> Self {
        match error {
            UntrustedError::Io {
                operation,
                path,
                source,
            } => Self::Io {
                operation,
                path,
                source,
            },
            UntrustedError::NotRegular { ref path, .. }
            | UntrustedError::Linked { ref path, .. }
            | UntrustedError::TooLarge { ref path, .. } => Self::Io {
                operation: "use",
                path: path.clone(),
                source: io::Error::other(error.to_string()),
            },
        }
    }
}

/// Reads a file of a repository's checkout, which a step may write: never
/// through a link below the root, regular files only, at most `limit` bytes,
/// without waiting. `None` where there is none.
///
/// # Errors
///
/// [`UntrustedError`].
pub fn read_in_checkout(
    root: &Path,
    file: &Path,
    limit: u64,
) -> Result<Option<Vec<u8>>, UntrustedError> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    match UntrustedFolder::open(root, folder) {
        Ok(folder) => folder.read(&name, limit),
        Err(UntrustedError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns whether a folder below a root, or one on the way to it, is a link.
pub(crate) fn is_linked(root: &Path, folder: &Path) -> bool {
    let Ok(below) = folder.strip_prefix(root) else {
        return std::fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_symlink());
    };
    let mut path = root.to_path_buf();
    below.components().any(|part| {
        path.push(part);
        std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink())
    })
}

/// Reads a file of at most `limit` bytes below a root, in a folder that steps may
/// write; `None` where there is none, where it is anything but a regular file of that
/// size, and where a folder on the way is a link.
pub fn read_file(root: &Path, path: &Path, limit: u64) -> Option<Vec<u8>> {
    let (folder, name) = opened(root, path)?;
    folder.read(name, limit).ok()?
}

/// Opens the folder of a file, which is below a root, or is itself the harness's
/// choice where it is elsewhere.
fn opened<'p>(root: &Path, path: &'p Path) -> Option<(UntrustedFolder, &'p str)> {
    let (folder, name) = (path.parent()?, path.file_name()?.to_str()?);
    let folder = match folder.strip_prefix(root) {
        Ok(below) => UntrustedFolder::open(root, below),
        Err(_) => UntrustedFolder::open(folder, Path::new("")),
    };
    Some((folder.ok()?, name))
}

/// Reads the last bytes of such a file, `most` of them; `None` where there is none.
pub fn read_end(root: &Path, path: &Path, most: u64) -> Option<Vec<u8>> {
    let (folder, name) = opened(root, path)?;
    folder.read_end(name, most).ok()?
}

/// A folder that a step can write, by its descriptor.
#[derive(Debug)]
pub struct UntrustedFolder {
    folder: OwnedFd,
    path: PathBuf,
}

impl UntrustedFolder {
    /// Opens a folder below a root. The root is the harness's own choice;
    /// nothing below it is followed out of it.
    ///
    /// # Errors
    ///
    /// [`UntrustedError::Io`], also where a component is a link.
    pub fn open(root: &Path, below: &Path) -> Result<Self, UntrustedError> {
        let path = root.join(below);
        let opened = open_place_through_links(root).and_then(|root| {
            let mut folder = root;
            for name in names(below)? {
                folder = enter(&folder, &name)?;
            }
            Ok(folder)
        });
        opened
            .map(|folder| Self {
                folder,
                path: path.clone(),
            })
            .map_err(failed("open", &path))
    }

    /// Opens a folder below a root as [`UntrustedFolder::open`] does, and makes
    /// what is missing. A component that is not a folder is replaced by one.
    ///
    /// # Errors
    ///
    /// [`UntrustedError::Io`].
    pub fn make(root: &Path, below: &Path) -> Result<Self, UntrustedError> {
        let path = root.join(below);
        let made = open_place_through_links(root).and_then(|root| {
            let mut folder = root;
            for name in names(below)? {
                let_owner_in(&folder)?;
                folder = match enter(&folder, &name) {
                    Err(Errno::ACCESS) => {
                        make_writable(&folder, &name)?;
                        enter(&folder, &name)?
                    }
                    Err(Errno::NOTDIR | Errno::LOOP) => {
                        unlinkat(&folder, &name, AtFlags::empty())?;
                        make_folder(&folder, &name)?
                    }
                    Err(Errno::NOENT) => make_folder(&folder, &name)?,
                    entered => entered?,
                };
            }
            let_owner_in(&folder)?;
            Ok(folder)
        });
        made.map(|folder| Self {
            folder,
            path: path.clone(),
        })
        .map_err(failed("make", &path))
    }

    /// Returns the path that the folder was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a file of at most `limit` bytes; `None` where there is none.
    ///
    /// # Errors
    ///
    /// [`UntrustedError`].
    pub fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, UntrustedError> {
        let path = self.path.join(name);
        let Some((file, length)) = self.open_file(name)? else {
            return Ok(None);
        };
        if length > limit {
            return Err(UntrustedError::TooLarge { path, limit });
        }
        let mut bytes = Vec::new();
        // It may grow meanwhile.
        let mut file = file.take(limit.saturating_add(1));
        file.read_to_end(&mut bytes)
            .map_err(|source| UntrustedError::Io {
                operation: "read",
                path: path.clone(),
                source,
            })?;
        if bytes.len() as u64 > limit {
            return Err(UntrustedError::TooLarge { path, limit });
        }
        Ok(Some(bytes))
    }

    /// Reads the last bytes of a file, `most` of them; `None` where there is none.
    ///
    /// # Errors
    ///
    /// [`UntrustedError`].
    pub fn read_end(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, UntrustedError> {
        let Some((mut file, length)) = self.open_file(name)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        let read = file
            .seek(SeekFrom::Start(length.saturating_sub(most)))
            .and_then(|_| file.take(most).read_to_end(&mut bytes));
        match read {
            Ok(_) => Ok(Some(bytes)),
            Err(source) => Err(UntrustedError::Io {
                operation: "read",
                path: self.path.join(name),
                source,
            }),
        }
    }

    /// Opens a file to read it, and returns its length; `None` where there is none.
    pub(crate) fn open_file(&self, name: &str) -> Result<Option<(File, u64)>, UntrustedError> {
        let path = self.path.join(name);
        let name = self.name(name, "read")?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = match beneath(&self.folder, &name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(not_regular(path, "a link")),
            // A socket, or a device without a driver.
            Err(Errno::NXIO) => return Err(not_regular(path, "a socket or device")),
            Err(error) => return Err(failed("read", &path)(error)),
        };
        let file = File::from(file);
        let meta = file.metadata().map_err(|source| UntrustedError::Io {
            operation: "read",
            path: path.clone(),
            source,
        })?;
        if !meta.is_file() {
            let found = if meta.is_dir() {
                "a folder"
            } else if meta.file_type().is_fifo() {
                "a pipe"
            } else {
                "a device"
            };
            return Err(not_regular(path, found));
        }
        match meta.nlink() {
            1 => Ok(Some((file, meta.len()))),
            links => Err(UntrustedError::Linked { path, links }),
        }
    }

    /// Returns the names of what is in the folder.
    ///
    /// # Errors
    ///
    /// [`UntrustedError::Io`].
    pub(crate) fn names(&self) -> Result<Vec<String>, UntrustedError> {
        let names = entries(&self.folder).map_err(failed("list", &self.path))?;
        let names = names.into_iter();
        Ok(names.filter_map(|name| name.into_string().ok()).collect())
    }

    /// Writes a file whole, in the place of whatever has its name.
    ///
    /// # Errors
    ///
    /// [`UntrustedError::Io`]; what was there may be gone then.
    pub fn write(&self, name: &str, bytes: &[u8], mode: u32) -> Result<(), UntrustedError> {
        self.write_by(Self::replace, name, bytes, mode)
    }

    /// Does the same for a file that is written again whenever it is needed: after a
    /// loss of power it may be empty. Some file systems (ext4) write a file to the disk
    /// when it is renamed over another one; here the two exchange their names.
    ///
    /// # Errors
    ///
    /// As [`UntrustedFolder::write`].
    pub(crate) fn write_copy(
        &self,
        name: &str,
        bytes: &[u8],
        mode: u32,
    ) -> Result<(), UntrustedError> {
        self.write_by(Self::exchange, name, bytes, mode)
    }

    fn write_by(
        &self,
        put: impl Fn(&Self, &CStr, &CStr) -> rustix::io::Result<()>,
        name: &str,
        bytes: &[u8],
        mode: u32,
    ) -> Result<(), UntrustedError> {
        let path = self.path.join(name);
        let name = self.name(name, "write")?;
        let temporary = temporary();
        let mode = Mode::from_raw_mode(mode);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let written = beneath(&self.folder, &temporary, flags, mode)
            .and_then(|file| fchmod(&file, mode).map(|()| file))
            .map_err(io::Error::from)
            .and_then(|file| File::from(file).write_all(bytes))
            .and_then(|()| put(self, &temporary, &name).map_err(io::Error::from));
        written.map_err(|source| {
            let _ = unlinkat(&self.folder, &temporary, AtFlags::empty());
            UntrustedError::Io {
                operation: "write",
                path,
                source,
            }
        })
    }

    /// Gives a file the name of another, or of a folder, and removes what had it.
    fn exchange(&self, temporary: &CStr, name: &CStr) -> rustix::io::Result<()> {
        match exchange_names(self.folder.as_fd(), temporary, name) {
            Ok(()) => self.remove_all(temporary),
            Err(_) => self.replace(temporary, name),
        }
    }

    /// Gives a file the name of another, or of a folder.
    fn replace(&self, temporary: &CStr, name: &CStr) -> rustix::io::Result<()> {
        match renameat(&self.folder, temporary, &self.folder, name) {
            Err(Errno::ISDIR | Errno::EXIST | Errno::NOTEMPTY) => {
                self.remove_all(name)?;
                renameat(&self.folder, temporary, &self.folder, name)
            }
            renamed => renamed,
        }
    }

    /// Removes a file, or a folder with all that is in it; none there is fine.
    /// A link is removed, and not what it points to.
    ///
    /// # Errors
    ///
    /// [`UntrustedError::Io`].
    pub fn remove(&self, name: &str) -> Result<(), UntrustedError> {
        let path = self.path.join(name);
        let name = self.name(name, "remove")?;
        self.remove_all(&name).map_err(failed("remove", &path))
    }

    /// Removes the temporary files of a harness that was killed; no other one may write
    /// here meanwhile.
    ///
    /// # Errors
    ///
    /// [`UntrustedError::Io`].
    pub(crate) fn sweep(&self) -> Result<(), UntrustedError> {
        let is_number = |byte| matches!(byte, b'0'..=b'9' | b'-');
        let is_temporary = |name: &&String| {
            let number = name.strip_prefix(TEMPORARY);
            number.is_some_and(|number| number.bytes().all(is_number))
        };
        let names = self.names()?;
        let mut left = names.iter().filter(is_temporary);
        left.try_for_each(|name| self.remove(name))
    }

    /// Removes all that is in the folder.
    ///
    /// # Errors
    ///
    /// [`UntrustedError::Io`].
    pub fn clear(&self) -> Result<(), UntrustedError> {
        let clear = || -> rustix::io::Result<()> {
            for name in entries(&self.folder)? {
                self.remove_all(&name)?;
            }
            Ok(())
        };
        clear().map_err(failed("empty", &self.path))
    }

    /// Removes without recursion, however deep the folders are: each folder in
    /// a folder is first moved up.
    fn remove_all(&self, name: &CStr) -> rustix::io::Result<()> {
        let mut pending = vec![name.to_owned()];
        let mut rounds = 0;
        while let Some(name) = pending.pop() {
            match unlinkat(&self.folder, &name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => continue,
                Err(Errno::ISDIR | Errno::PERM) => {}
                Err(error) => return Err(error),
            }
            make_writable(&self.folder, &name)?;
            let folder = enter(&self.folder, &name)?;
            for entry in entries(&folder)? {
                match unlinkat(&folder, &entry, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(Errno::ISDIR | Errno::PERM) => {
                        make_writable(&folder, &entry)?;
                        let moved = temporary();
                        renameat(&folder, &entry, &self.folder, &moved)?;
                        pending.push(moved);
                    }
                    Err(error) => return Err(error),
                }
            }
            match unlinkat(&self.folder, &name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST) if rounds < EMPTY_ROUNDS => {
                    rounds += 1;
                    pending.push(name);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns a name as the system takes it: one component, and no way up.
    fn name(&self, name: &str, operation: &'static str) -> Result<CString, UntrustedError> {
        let mut names = names(Path::new(name)).unwrap_or_default();
        match (names.pop(), names.is_empty()) {
            (Some(name), true) => Ok(name),
            _ => Err(failed(operation, &self.path.join(name))(Errno::INVAL)),
        }
    }
}

fn not_regular(path: PathBuf, found: &'static str) -> UntrustedError {
    UntrustedError::NotRegular { path, found }
}

fn failed(operation: &'static str, path: &Path) -> impl FnOnce(Errno) -> UntrustedError + use<> {
    let path = path.to_path_buf();
    move |error| UntrustedError::Io {
        operation,
        path,
        source: error.into(),
    }
}

/// Returns the components of a relative path.
fn names(path: &Path) -> rustix::io::Result<Vec<CString>> {
    use std::os::unix::ffi::OsStrExt;
    path.components()
        .filter(|part| *part != Component::CurDir)
        .map(|part| match part {
            Component::Normal(name) => CString::new(name.as_bytes()).map_err(|_| Errno::INVAL),
            _ => Err(Errno::INVAL),
        })
        .collect()
}

/// Names a file of this process that is about to get another name.
fn temporary() -> CString {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{TEMPORARY}{}-{number}", std::process::id());
    CString::new(name).unwrap_or_default()
}

fn enter(folder: &OwnedFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    beneath(folder, name, flags, Mode::empty())
}

fn make_folder(folder: &OwnedFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    match mkdirat(folder, name, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => enter(folder, name),
        Err(error) => Err(error),
    }
}

/// Opens one component of a path below a folder. Where the kernel cannot check
/// its mount, as in some containers, it is opened all the same.
fn beneath(
    folder: &OwnedFd,
    name: &CStr,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    Ok(open_beneath(folder.as_fd(), name, flags, mode)?.file)
}

/// Returns the names in a folder.
fn entries(folder: &OwnedFd) -> rustix::io::Result<Vec<CString>> {
    let own = |name: &CStr| matches!(name.to_bytes(), b"." | b"..");
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        if !own(entry.file_name()) {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

/// Lets the owner of a folder empty and move it. Never through a link.
fn make_writable(folder: &OwnedFd, name: &CStr) -> rustix::io::Result<()> {
    let_owner_in(&open_place_beneath(folder.as_fd(), name)?.file)
}

/// Gives the owner of an open folder all rights to it.
fn let_owner_in(folder: &OwnedFd) -> rustix::io::Result<()> {
    let mode = Mode::from_raw_mode(fstat(folder)?.st_mode);
    if mode.contains(Mode::RWXU) {
        return Ok(());
    }
    change_mode(folder.as_fd(), Mode::RWXU)
}

#[cfg(test)]
mod tests;
