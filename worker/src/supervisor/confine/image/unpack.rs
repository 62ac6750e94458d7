//! The files of an archive, put into a folder and nowhere else.
//!
//! Each is made relative to a descriptor of the folder above it, and no link is
//! followed on the way. Owners, devices, pipes and the set-user-ID bits are left
//! out; everything belongs to the user, who can read it.

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, fchmod, futimens, linkat,
    mkdirat, openat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use tar::{Archive, Entry, EntryType};

/// Folders of the archive that are the kernel's, whatever is in them.
const OF_THE_KERNEL: [&[u8]; 3] = [b"dev", b"proc", b"sys"];

/// An archive was not unpacked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnpackError {
    /// It cannot be read to its end.
    #[error("the archive cannot be read: {0}")]
    Read(#[source] io::Error),
    /// An entry leads out of the folder.
    #[error("the entry `{entry}` leads out of the image: {target}")]
    Outside {
        /// The path of the archive's entry.
        entry: String,
        /// The path outside of the folder.
        target: String,
    },
    /// An entry cannot be made.
    #[error("cannot make `{entry}`: {source}")]
    Make {
        /// The path of the archive's entry.
        entry: String,
        /// The cause.
        source: io::Error,
    },
}

/// Unpacks a tar archive into an empty folder.
///
/// # Errors
///
/// [`UnpackError`]; what was unpacked before it is left.
pub(super) fn unpack(archive: &mut dyn Read, folder: &Path) -> Result<(), UnpackError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = openat(CWD, folder, flags, Mode::empty());
    let root = root.map_err(|errno| UnpackError::Make {
        entry: folder.display().to_string(),
        source: errno.into(),
    })?;
    let mut unpacking = Unpacking { root, last: None };
    let mut archive = Archive::new(archive);
    for entry in archive.entries().map_err(UnpackError::Read)? {
        unpacking.add(&mut entry.map_err(UnpackError::Read)?)?;
    }
    Ok(())
}

/// The names of a path, from the folder that is unpacked to.
type Names = Vec<Vec<u8>>;

struct Unpacking {
    root: OwnedFd,
    /// The folder of the entry before, where the next one is as a rule.
    last: Option<(Names, OwnedFd)>,
}

impl Unpacking {
    fn add<R: Read>(&mut self, entry: &mut Entry<'_, R>) -> Result<(), UnpackError> {
        let path = entry.path_bytes().into_owned();
        let shown = String::from_utf8_lossy(&path).into_owned();
        let outside = |target: &[u8]| UnpackError::Outside {
            entry: shown.clone(),
            target: String::from_utf8_lossy(target).into_owned(),
        };
        let mut above = names(&path).ok_or_else(|| outside(&path))?;
        let is_kernels = above
            .first()
            .is_some_and(|first| OF_THE_KERNEL.contains(&first.as_slice()));
        let Some(name) = above.pop().filter(|_| !is_kernels) else {
            return Ok(());
        };
        let link = entry.link_name_bytes().map(|link| link.into_owned());
        let link = link.unwrap_or_default();
        let kind = entry.header().entry_type();
        let made = match kind {
            EntryType::Directory => self.folder_at(above, name, mode_of(entry)),
            EntryType::Symlink => self
                .above(above)
                .and_then(|folder| put_link(folder, &name, &link)),
            EntryType::Link => {
                let target = names(&link).ok_or_else(|| outside(&link))?;
                self.hard_link(above, &name, target)
            }
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => self
                .above(above)
                .and_then(|folder| put_file(folder, &name, entry)),
            // Devices, pipes, and headers of the archive's own.
            _ => Ok(()),
        };
        made.map_err(|source| UnpackError::Make {
            entry: shown,
            source,
        })
    }

    /// Opens the folder of an entry; the archive may leave folders out.
    fn above(&mut self, names: Names) -> io::Result<&OwnedFd> {
        if self.last.as_ref().is_none_or(|(last, _)| *last != names) {
            let folder = self.open(&names)?;
            self.last = Some((names, folder));
        }
        match &self.last {
            Some((_, folder)) => Ok(folder),
            None => Ok(&self.root),
        }
    }

    fn open(&self, names: &Names) -> io::Result<OwnedFd> {
        let mut here = self.root.as_fd().try_clone_to_owned()?;
        for name in names {
            here = enter(&here, name)?;
        }
        Ok(here)
    }

    fn folder_at(&mut self, above: Names, name: Vec<u8>, mode: Mode) -> io::Result<()> {
        let folder = enter(self.above(above)?, &name)?;
        // By a path of its own: what `enter` opens has no mode to change.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(&folder, c".", flags, Mode::empty())?;
        Ok(fchmod(folder, mode | Mode::RWXU)?)
    }

    fn hard_link(&mut self, above: Names, name: &[u8], mut target: Names) -> io::Result<()> {
        let Some(of) = target.pop() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let from = self.open(&target)?;
        let folder = self.above(above)?;
        remove_old(folder, name)?;
        Ok(linkat(from, of, folder, name, AtFlags::empty())?)
    }
}

/// Opens a folder by its name, and makes it where it is missing.
fn enter(above: &OwnedFd, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || openat(above, name, flags, Mode::empty());
    match open() {
        Err(Errno::NOENT) => {
            mkdirat(above, name, Mode::from_raw_mode(0o755))?;
            Ok(open()?)
        }
        Err(Errno::NOTDIR | Errno::LOOP) => Err(io::Error::other("it is below a link or a file")),
        opened => Ok(opened?),
    }
}

fn put_link(folder: &OwnedFd, name: &[u8], target: &[u8]) -> io::Result<()> {
    remove_old(folder, name)?;
    Ok(symlinkat(target, folder, name)?)
}

fn put_file<R: Read>(folder: &OwnedFd, name: &[u8], entry: &mut Entry<'_, R>) -> io::Result<()> {
    remove_old(folder, name)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?;
    let mut file = File::from(file);
    let written = io::copy(entry, &mut file)?;
    if written < entry.size() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    fchmod(&file, mode_of(entry) | Mode::RUSR)?;
    // Some interpreters compare it with what they keep beside the file.
    let seconds = entry.header().mtime().ok();
    let seconds = seconds.and_then(|seconds| i64::try_from(seconds).ok());
    let last_modification = seconds.map(|tv_sec| Timespec { tv_sec, tv_nsec: 0 });
    if let Some(last_modification) = last_modification {
        let times = Timestamps {
            last_access: Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_OMIT,
            },
            last_modification,
        };
        futimens(&file, &times)?;
    }
    Ok(())
}

/// Removes what an earlier entry made by the same name. A folder stays, and
/// the entry fails.
fn remove_old(folder: &OwnedFd, name: &[u8]) -> io::Result<()> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Returns the rights of an entry, without the bits that change the user.
fn mode_of<R: Read>(entry: &Entry<'_, R>) -> Mode {
    let mode = entry.header().mode().unwrap_or(0o644);
    Mode::from_raw_mode(mode & 0o777)
}

/// Returns the names of a path; none where it leads up.
fn names(path: &[u8]) -> Option<Names> {
    let names = path.split(|byte| *byte == b'/');
    names
        .filter(|name| !name.is_empty() && *name != b".")
        .map(|name| (name != b"..").then(|| name.to_vec()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use tar::{Builder, Header};

    /// Adds an entry whose names are taken as they are.
    fn add(builder: &mut Builder<Vec<u8>>, kind: EntryType, names: [&str; 2], mode: u32) {
        let mut header = Header::new_gnu();
        let [path, link] = names;
        let fields = header.as_old_mut();
        fields.name[..path.len()].copy_from_slice(path.as_bytes());
        fields.linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_mtime(1_000_000_000);
        let content: &[u8] = match kind {
            EntryType::Regular => b"content",
            _ => b"",
        };
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, content).unwrap();
    }

    /// Unpacks entries into `root` of a folder of its own.
    fn unpacked(
        entries: &[(EntryType, [&str; 2], u32)],
    ) -> (tempfile::TempDir, Result<(), UnpackError>) {
        let mut builder = Builder::new(Vec::new());
        for (kind, names, mode) in entries {
            add(&mut builder, *kind, *names, *mode);
        }
        let bytes = builder.into_inner().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir(&root).unwrap();
        let unpacked = unpack(&mut bytes.as_slice(), &root);
        (folder, unpacked)
    }

    const FILE: EntryType = EntryType::Regular;
    const LINK: EntryType = EntryType::Symlink;

    #[test]
    fn files_folders_and_links_are_unpacked_with_their_rights_and_times() {
        let (folder, done) = unpacked(&[
            (EntryType::Directory, ["usr/", ""], 0o555),
            (FILE, ["usr/bin/tool", ""], 0o4755),
            (FILE, ["etc/shadow", ""], 0o000),
            (EntryType::Link, ["usr/bin/same", "usr/bin/tool"], 0o755),
            (LINK, ["bin", "usr/bin"], 0o777),
            (LINK, ["etc/mtab", "/proc/mounts"], 0o777),
            (EntryType::Char, ["usr/tty", ""], 0o666),
            (EntryType::Fifo, ["usr/pipe", ""], 0o666),
            (FILE, ["dev/null", ""], 0o666),
        ]);
        done.unwrap();
        let at = |name: &str| folder.path().join("root").join(name);
        let meta = |name: &str| fs::symlink_metadata(at(name)).unwrap();
        assert_eq!(meta("usr").permissions().mode() & 0o7777, 0o755);
        assert_eq!(meta("usr/bin/tool").permissions().mode() & 0o7777, 0o755);
        assert_eq!(meta("usr/bin/tool").mtime(), 1_000_000_000);
        assert_eq!(meta("usr/bin/tool").ino(), meta("usr/bin/same").ino());
        assert_eq!(fs::read(at("etc/shadow")).unwrap(), b"content");
        assert_eq!(fs::read_link(at("bin")).unwrap(), Path::new("usr/bin"));
        assert_eq!(
            fs::read_link(at("etc/mtab")).unwrap(),
            Path::new("/proc/mounts")
        );
        for absent in ["usr/tty", "usr/pipe", "dev"] {
            assert!(fs::symlink_metadata(at(absent)).is_err(), "{absent}");
        }
    }

    #[test]
    fn no_entry_leaves_the_folder() {
        let attacks: [&[(EntryType, [&str; 2], u32)]; 6] = [
            &[(FILE, ["../evil", ""], 0o644)],
            &[(FILE, ["usr/../../evil", ""], 0o644)],
            &[
                (LINK, ["out", ".."], 0o777),
                (FILE, ["out/evil", ""], 0o644),
            ],
            &[
                (LINK, ["out", "/"], 0o777),
                (EntryType::Directory, ["out/tmp/", ""], 0o777),
            ],
            &[(EntryType::Link, ["evil", "../secret"], 0o644)],
            &[
                (LINK, ["out", ".."], 0o777),
                (EntryType::Link, ["evil", "out/secret"], 0o644),
            ],
        ];
        for attack in attacks {
            let (folder, done) = unpacked(attack);
            let error = done.unwrap_err();
            assert!(!folder.path().join("evil").exists(), "{error}");
            let names: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
            assert_eq!(names.len(), 1, "{error}: {names:?}");
        }
    }

    #[test]
    fn a_file_replaces_a_link_and_is_not_written_through_it() {
        let (folder, done) = unpacked(&[
            (LINK, ["file", "../outside"], 0o777),
            (FILE, ["file", ""], 0o644),
            (FILE, ["/absolute", ""], 0o644),
        ]);
        done.unwrap();
        assert!(!folder.path().join("outside").exists());
        let at = |name: &str| folder.path().join("root").join(name);
        assert!(fs::symlink_metadata(at("file")).unwrap().is_file());
        assert!(at("absolute").is_file());
    }

    #[test]
    fn an_archive_that_ends_early_is_an_error() {
        let mut builder = Builder::new(Vec::new());
        add(&mut builder, FILE, ["file", ""], 0o644);
        let mut bytes = builder.into_inner().unwrap();
        bytes.truncate(515);
        let folder = tempfile::tempdir().unwrap();
        assert!(unpack(&mut bytes.as_slice(), folder.path()).is_err());
        assert!(unpack(&mut &b"not an archive"[..], folder.path()).is_err());
    }
}
