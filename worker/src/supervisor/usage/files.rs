//! The files that a command wrote.

use rustix::fs::{AtFlags, CWD};
use rustix::fs::{Dir, FileType, Mode, OFlags, Stat, openat, statat, statvfs};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::os::fd::OwnedFd;
use std::path::Path;

/// How deep folders are measured; what is deeper counts as too much.
const DEPTH: usize = 400;
/// The bytes of a block in a file's numbers (stat(2)).
const BLOCK: u64 = 512;
/// What a file counts at least, in bytes: an empty one takes no block, but one of the
/// files that the file system can have.
const LEAST: u64 = 4_096;

/// A time of change of a file, in seconds and nanoseconds. A program cannot set
/// it.
pub(super) type Time = (i64, i64);

/// Returns the time as the kernel writes it into files: by a clock that is some
/// milliseconds behind.
pub(super) fn now() -> Time {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    (now.tv_sec, now.tv_nsec)
}

/// Returns the free bytes of a file system.
pub(super) fn free(folder: &Path) -> u64 {
    statvfs(folder).map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize))
}

/// Returns the bytes that a file takes, or [`LEAST`], where it changed since a moment.
pub(super) fn bytes_since(stat: &Stat, since: Time) -> u64 {
    if (stat.st_ctime, stat.st_ctime_nsec as i64) < since {
        return 0;
    }
    let bytes = u64::try_from(stat.st_blocks).unwrap_or_default() * BLOCK;
    bytes.max(LEAST)
}

/// What was found in folders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// The bytes of files that changed since the moment.
    pub(super) bytes: u64,
    /// A folder could not be opened.
    pub(super) is_partial: bool,
    /// Folders are deeper than any is measured.
    pub(super) is_too_deep: bool,
}

impl Written {
    /// Adds the files below a folder that changed since a moment. Links are not
    /// followed.
    pub(super) fn add(&mut self, folder: &Path, since: Time) {
        let mut folders = Vec::from_iter(self.open(CWD, folder));
        while let Some(mut entries) = folders.pop() {
            let mut inner = None;
            while let Some(Ok(entry)) = entries.read() {
                let name = entry.file_name();
                if matches!(name.to_bytes(), b"." | b"..") {
                    continue;
                }
                let Ok(below) = entries.fd() else { continue };
                let Ok(stat) = statat(below, name, AtFlags::SYMLINK_NOFOLLOW) else {
                    continue;
                };
                self.bytes += bytes_since(&stat, since);
                if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                    inner = self.open(below, name);
                    if inner.is_some() {
                        break;
                    }
                }
            }
            if let Some(inner) = inner {
                folders.push(entries);
                folders.push(inner);
                if folders.len() > DEPTH {
                    self.is_too_deep = true;
                    return;
                }
            }
        }
    }

    fn open(&mut self, above: impl std::os::fd::AsFd, name: impl rustix::path::Arg) -> Option<Dir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(above, name, flags, Mode::empty());
        // One that is gone meanwhile, or is something else, holds nothing.
        let is_shut = opened
            .as_ref()
            .is_err_and(|errno| !matches!(*errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP));
        self.is_partial |= is_shut;
        let folder: OwnedFd = opened.ok()?;
        Dir::new(folder).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn written(folder: &Path, since: Time) -> Written {
        let mut written = Written::default();
        written.add(folder, since);
        written
    }

    #[test]
    fn files_are_measured_and_links_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("file"), vec![1; 1 << 20]).unwrap();
        fs::write(folder.path().join("other"), vec![1; 1 << 19]).unwrap();
        std::os::unix::fs::symlink("/usr", inner.join("link")).unwrap();
        let all = written(folder.path(), (0, 0));
        assert!((3 << 19..2 << 20).contains(&all.bytes), "{all:?}");
        assert!(!all.is_partial && !all.is_too_deep);
        let none = Written::default();
        assert_eq!(written(folder.path(), (i64::MAX, 0)), none);
        assert_eq!(written(Path::new("/nowhere"), (0, 0)), none);
    }

    #[test]
    fn empty_files_count_too() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..100 {
            fs::write(folder.path().join(number.to_string()), "").unwrap();
        }
        assert_eq!(written(folder.path(), (0, 0)).bytes, 100 * LEAST);
    }

    #[test]
    fn a_tree_without_end_counts_as_too_much() {
        let folder = tempfile::tempdir().unwrap();
        let mut inner = folder.path().to_path_buf();
        for _ in 0..DEPTH {
            inner.push("d");
        }
        fs::create_dir_all(inner).unwrap();
        assert!(written(folder.path(), (0, 0)).is_too_deep);
    }
}
