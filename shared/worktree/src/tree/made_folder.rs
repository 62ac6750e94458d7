//! A folder of files that the harness made and that commands may write: it is
//! used again while nothing but what the harness put there is in it.
//!
//! What a command left is neither followed nor kept. The folder counts as
//! unchanged only where every entry has the numbers, times and rights that it was
//! made with, no other entry and no attribute is there, and each file has the
//! bytes that it is to have. The bytes count because a change within one tick of
//! the kernel's clock need not show in the times.

use super::beneath::FOLDER;
use crate::file_stamp::FileStamp;
use premath_platform::file::{is_absent, is_null, open_regular, read_entries};
use rustix::fs::{CWD, Mode, OFlags, flistxattr, fstat, openat};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

/// How much of two files is compared at a time.
const CHUNK: usize = 16 << 10;

/// The content that a file is to have.
#[derive(Debug)]
pub(super) enum Source {
    Text(Cursor<Vec<u8>>),
    File(File),
}

impl Source {
    /// Returns the content of a regular file; `None` where there is none. Nothing is
    /// waited for.
    pub(super) fn of_file(path: &Path) -> io::Result<Option<Self>> {
        match open_regular(path) {
            Ok(file) => Ok(Some(Self::File(file))),
            Err(error) if is_absent(&error) || is_null(path) => Ok(None),
            Err(error) => Err(of_file(path, error)),
        }
    }

    fn length(&self) -> io::Result<u64> {
        match self {
            Self::Text(text) => Ok(text.get_ref().len() as u64),
            Self::File(file) => Ok(file.metadata()?.len()),
        }
    }

    /// Returns the content from its begin.
    fn reader(&mut self) -> io::Result<&mut dyn Read> {
        match self {
            Self::Text(text) => {
                text.set_position(0);
                Ok(text)
            }
            Self::File(file) => {
                file.seek(SeekFrom::Start(0))?;
                Ok(file)
            }
        }
    }

    /// Writes the content to a file, from where that is; returns its length.
    fn copy_to(&mut self, to: &mut File) -> io::Result<u64> {
        self.reader()?;
        match self {
            Self::Text(text) => {
                to.write_all(text.get_ref())?;
                Ok(text.get_ref().len() as u64)
            }
            Self::File(file) => io::copy(file, to),
        }
    }
}

impl<T: Into<Vec<u8>>> From<T> for Source {
    fn from(text: T) -> Self {
        Self::Text(Cursor::new(text.into()))
    }
}

/// Adds to an error what file it is about.
pub(super) fn of_file(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The content of files, by their paths below the folder.
pub(super) type Sources = BTreeMap<PathBuf, Source>;

/// What an entry was when the harness had made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    stamp: FileStamp,
    mode: u32,
    owner: (u32, u32),
    is_single: bool,
}

impl Entry {
    fn of(file: impl std::os::fd::AsFd) -> io::Result<Self> {
        let stat = fstat(file)?;
        Ok(Self {
            stamp: FileStamp::of(&stat),
            mode: stat.st_mode,
            owner: (stat.st_uid, stat.st_gid),
            is_single: stat.st_nlink == 1,
        })
    }
}

/// A folder that the harness made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MadeFolder {
    at: PathBuf,
    /// The folders by their paths below it, with itself.
    folders: BTreeMap<PathBuf, Entry>,
    files: BTreeMap<PathBuf, Entry>,
}

impl MadeFolder {
    /// Writes files into a folder that holds nothing but these folders.
    pub(super) fn fill(at: &Path, folders: &[&str], sources: &mut Sources) -> io::Result<Self> {
        let mut paths = BTreeSet::from([PathBuf::new()]);
        for folder in folders {
            paths.extend(Path::new(folder).ancestors().map(Path::to_path_buf));
        }
        let mut files = BTreeMap::new();
        for (path, source) in sources {
            let above = path.parent().unwrap_or(Path::new(""));
            if !paths.contains(above) {
                fs::create_dir_all(at.join(above))?;
                paths.extend(above.ancestors().map(Path::to_path_buf));
            }
            let mut file = File::create_new(at.join(path))?;
            source.copy_to(&mut file)?;
            files.insert(path.clone(), Entry::of(&file)?);
        }
        // Last: each file changes the times of its folder.
        let folders = paths.into_iter().map(|path| {
            let opened = openat(CWD, at.join(&path), FOLDER, Mode::empty())?;
            Ok((path, Entry::of(opened)?))
        });
        Ok(Self {
            at: at.to_path_buf(),
            folders: folders.collect::<io::Result<_>>()?,
            files,
        })
    }

    /// Gives the files the content that they are to have now. Returns `false`
    /// where something else is in the folder, or was done to it, or another file
    /// is to be there: it is then to be made again.
    ///
    /// The caller vouches that no command that may write it runs.
    pub(super) fn refill(&mut self, sources: &mut Sources) -> io::Result<bool> {
        if !self.files.keys().eq(sources.keys()) {
            return Ok(false);
        }
        let mut opened: BTreeMap<&Path, OwnedFd> = BTreeMap::new();
        for (path, entry) in &self.folders {
            let folder = match opened.get(path.parent().unwrap_or(path)) {
                Some(above) => openat(above, name(path), FOLDER, Mode::empty())?,
                None => openat(CWD, &self.at, FOLDER, Mode::empty())?,
            };
            if Entry::of(&folder)? != *entry || has_attribute(&folder)? {
                return Ok(false);
            }
            if !has_only(&folder, &self.names_in(path))? {
                return Ok(false);
            }
            opened.insert(path, folder);
        }
        for (path, source) in sources {
            let above = opened.get(path.parent().unwrap_or(path));
            let (Some(entry), Some(above)) = (self.files.get_mut(path), above) else {
                return Ok(false);
            };
            if !refill_file(above, name(path), entry, source)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the names that a folder has.
    fn names_in(&self, folder: &Path) -> BTreeSet<OsString> {
        let paths = self.folders.keys().chain(self.files.keys());
        paths
            .filter(|path| path.parent() == Some(folder))
            .map(|path| name(path).to_os_string())
            .collect()
    }
}

/// Gives a file the content that it is to have; returns whether nothing else was
/// done to it.
fn refill_file(
    above: &OwnedFd,
    name: &OsStr,
    entry: &mut Entry,
    source: &mut Source,
) -> io::Result<bool> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut file = File::from(openat(above, name, flags | OFlags::CLOEXEC, Mode::empty())?);
    if Entry::of(&file)? != *entry || !entry.is_single || has_attribute(&file)? {
        return Ok(false);
    }
    let length = source.length()?;
    if u64::try_from(entry.stamp.size) == Ok(length)
        && is_same(&mut file, source.reader()?, length)?
    {
        return Ok(true);
    }
    // Not emptied first: ext4 then waits for the disk when it is closed.
    file.seek(SeekFrom::Start(0))?;
    let length = source.copy_to(&mut file)?;
    file.set_len(length)?;
    *entry = Entry::of(&file)?;
    Ok(true)
}

/// Compares two contents of this length.
fn is_same(one: &mut File, other: &mut dyn Read, mut length: u64) -> io::Result<bool> {
    let (mut here, mut there) = ([0_u8; CHUNK], [0_u8; CHUNK]);
    while length > 0 {
        let size = usize::try_from(length).unwrap_or(CHUNK).min(CHUNK);
        let (here, there) = (&mut here[..size], &mut there[..size]);
        one.read_exact(here)?;
        other.read_exact(there)?;
        if here != there {
            return Ok(false);
        }
        length -= size as u64;
    }
    Ok(true)
}

/// Returns whether an entry has an attribute that a command may give it. Those of
/// the system, such as `security.selinux`, come from no command.
pub(super) fn has_attribute(file: impl std::os::fd::AsFd) -> io::Result<bool> {
    let mut names = [0_u8; 256];
    let length = match flistxattr(&file, &mut names) {
        Ok(length) => length,
        Err(Errno::NOTSUP) => return Ok(false),
        // More than the system's own.
        Err(Errno::RANGE) => return Ok(true),
        Err(error) => return Err(error.into()),
    };
    let names = names.get(..length).unwrap_or(&names);
    let mut names = names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    Ok(names.any(|name| !name.starts_with(b"security.")))
}

/// Returns whether a folder has these names and no other.
fn has_only(folder: &OwnedFd, names: &BTreeSet<OsString>) -> io::Result<bool> {
    let mut found = BTreeSet::new();
    loop {
        let has_more = read_entries(folder.as_fd(), |name, _| {
            if name != "." && name != ".." {
                found.insert(name.to_os_string());
            }
        })?;
        // A command may have left any number.
        if !has_more || found.len() > names.len() {
            return Ok(found == *names);
        }
    }
}

fn name(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    type Change = fn(&Path);

    fn sources(head: &str) -> Sources {
        Sources::from([
            (PathBuf::from("HEAD"), Source::from(head.to_owned())),
            (PathBuf::from("refs/heads/a/b"), "one\n".to_owned().into()),
            (PathBuf::from("index"), vec![7; 3 * CHUNK].into()),
        ])
    }

    fn made() -> (tempfile::TempDir, PathBuf, MadeFolder) {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("git");
        for name in ["refs/heads", "objects"] {
            fs::create_dir_all(at.join(name)).unwrap();
        }
        let folders = ["refs/heads", "objects"];
        let made = MadeFolder::fill(&at, &folders, &mut sources("before\n")).unwrap();
        (folder, at, made)
    }

    #[test]
    fn an_unchanged_folder_gets_the_new_content_again_and_again() {
        let (_folder, at, mut made) = made();
        for head in ["before\n", "longer than before\n", "short\n", ""] {
            assert!(made.refill(&mut sources(head)).unwrap());
            assert_eq!(fs::read_to_string(at.join("HEAD")).unwrap(), head);
            assert_eq!(fs::read(at.join("index")).unwrap(), [7; 3 * CHUNK]);
        }
    }

    #[test]
    fn whatever_a_command_did_to_it_the_folder_is_not_used_again() {
        let changes: [(&str, Change); 12] = [
            ("a file", |at| fs::write(at.join("config"), "x").unwrap()),
            ("a folder", |at| fs::create_dir(at.join("hooks")).unwrap()),
            ("a file below", |at| {
                fs::write(at.join("objects/x"), "").unwrap();
            }),
            ("content", |at| {
                fs::write(at.join("HEAD"), "other!\n").unwrap()
            }),
            ("a file less", |at| {
                fs::remove_file(at.join("HEAD")).unwrap()
            }),
            ("the same file again", |at| {
                fs::remove_file(at.join("HEAD")).unwrap();
                fs::write(at.join("HEAD"), "before\n").unwrap();
            }),
            ("a link for a file", |at| {
                fs::rename(at.join("HEAD"), at.with_extension("moved")).unwrap();
                symlink(at.with_extension("moved"), at.join("HEAD")).unwrap();
            }),
            ("a link for a folder", |at| {
                fs::rename(at.join("refs"), at.with_extension("moved")).unwrap();
                symlink(at.with_extension("moved"), at.join("refs")).unwrap();
            }),
            ("a second name", |at| {
                fs::hard_link(at.join("HEAD"), at.with_extension("moved")).unwrap();
            }),
            ("rights of a file", |at| {
                fs::set_permissions(at.join("HEAD"), Permissions::from_mode(0o755)).unwrap();
            }),
            ("rights of a folder", |at| {
                fs::set_permissions(at.join("refs"), Permissions::from_mode(0o700)).unwrap();
            }),
            ("another folder", |at| {
                fs::rename(at, at.with_extension("moved")).unwrap();
                fs::create_dir(at).unwrap();
            }),
        ];
        for (name, change) in changes {
            let (_folder, at, mut made) = made();
            change(&at);
            let again = made.refill(&mut sources("after\n"));
            assert!(!again.unwrap_or(false), "{name}");
        }
    }

    #[test]
    fn an_attribute_that_a_command_gave_a_file_or_folder_is_seen() {
        for name in ["HEAD", "refs"] {
            let (_folder, at, mut made) = made();
            let flags = rustix::fs::XattrFlags::empty();
            match rustix::fs::setxattr(at.join(name), "user.left", b"x", flags) {
                Err(Errno::NOTSUP) => return,
                set => set.unwrap(),
            }
            // As where the change does not show in the times.
            let now = |path: &Path| Entry::of(File::open(at.join(path)).unwrap()).unwrap();
            made.files
                .iter_mut()
                .for_each(|(path, entry)| *entry = now(path));
            made.folders
                .iter_mut()
                .for_each(|(path, entry)| *entry = now(path));
            assert!(!made.refill(&mut sources("before\n")).unwrap(), "{name}");
        }
    }

    #[test]
    fn what_was_done_within_one_tick_is_found_by_names_and_bytes() {
        let (_folder, at, mut made) = made();
        fs::write(at.join("refs/heads/a/b"), "two\n").unwrap();
        let file = File::open(at.join("refs/heads/a/b")).unwrap();
        made.files
            .insert("refs/heads/a/b".into(), Entry::of(&file).unwrap());
        assert!(made.refill(&mut sources("before\n")).unwrap());
        assert_eq!(fs::read(at.join("refs/heads/a/b")).unwrap(), b"one\n");

        fs::write(at.join("refs/heads/c"), "two\n").unwrap();
        let folder = File::open(at.join("refs/heads")).unwrap();
        made.folders
            .insert("refs/heads".into(), Entry::of(&folder).unwrap());
        assert!(!made.refill(&mut sources("before\n")).unwrap());
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("shallow");
        assert!(Source::of_file(&pipe).unwrap().is_none());
        rustix::fs::mkfifoat(CWD, &pipe, Mode::RWXU).unwrap();
        Source::of_file(&pipe).unwrap_err();
    }

    #[test]
    fn another_file_than_before_asks_for_a_new_folder() {
        let (_folder, _at, mut made) = made();
        let mut more = sources("before\n");
        more.insert("shallow".into(), "x".to_owned().into());
        assert!(!made.refill(&mut more).unwrap());
    }
}
