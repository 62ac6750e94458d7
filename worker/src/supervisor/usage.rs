//! What all processes of a command together use of the machine.
//!
//! The kernel bounds one process or one user; these bounds are the command's.
//! They are looked at now and then, so that a command may be over one for a
//! moment.

use super::descendants::living;
use super::message::{OsText, Resource};
use rustix::fs::{AtFlags, CWD};
use rustix::fs::{Dir, FileType, Mode, OFlags, openat, statat, statvfs};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often memory and processes are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How often the disk is looked at.
const LOOK_AT_DISK: Duration = Duration::from_millis(500);
/// How deep folders are measured; what is deeper counts as too much.
const DEPTH: usize = 400;
/// The bytes of a block in a file's numbers (stat(2)).
const BLOCK: u64 = 512;

/// What all processes of a command together may use; no bound where absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ceilings {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Processes at once.
    pub processes: Option<u64>,
    /// Bytes of files in `folders` that it wrote.
    pub disk: Option<u64>,
    /// The folders that it can write to.
    folders: Vec<OsText>,
}

impl Ceilings {
    /// Names the folders that the bound of the disk is about.
    pub fn measure<'a>(&mut self, folders: impl IntoIterator<Item = &'a Path>) {
        self.folders = folders.into_iter().map(OsText::from).collect();
    }

    fn is_any(&self) -> bool {
        self.memory.is_some() || self.processes.is_some() || self.disk.is_some()
    }
}

/// What a command was seen to use.
#[derive(Debug)]
pub(super) struct Usage {
    ceilings: Ceilings,
    look: Instant,
    look_at_disk: Instant,
    /// The free bytes at the start, of each folder's file system.
    free: Vec<u64>,
    /// When the command began, in seconds and nanoseconds: what changed since
    /// is its own. A file's time of change cannot be set.
    began: (i64, i64),
}

impl Usage {
    pub(super) fn of(ceilings: Ceilings, now: Instant) -> Self {
        let folders = ceilings.folders.iter();
        let free = match ceilings.disk {
            Some(_) => folders.map(|folder| free(Path::new(&folder.0))).collect(),
            None => Vec::new(),
        };
        Self {
            ceilings,
            look: now,
            look_at_disk: now,
            free,
            began: now_by_files(),
        }
    }

    /// Returns when to look again.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.ceilings.is_any().then_some(self.look)
    }

    /// Looks, where it is time, and says what is used up.
    pub(super) fn exceeded(&mut self, now: Instant) -> Option<Resource> {
        if now < self.look || !self.ceilings.is_any() {
            return None;
        }
        self.look = now + LOOK;
        let processes = living();
        let is_over = |used: u64, bound: Option<u64>| bound.is_some_and(|bound| used > bound);
        if is_over(processes.len() as u64, self.ceilings.processes) {
            return Some(Resource::Processes);
        }
        if let Some(bound) = self.ceilings.memory {
            let numbers = processes
                .iter()
                .map(|process| process.pid.as_raw_nonzero().get());
            let resident: u64 = numbers.clone().map(resident).sum();
            // Pages that processes share are counted in each of them; where
            // that is too much, they are counted once.
            if resident > bound && numbers.map(proportional).sum::<u64>() > bound {
                return Some(Resource::Memory);
            }
        }
        if now >= self.look_at_disk && self.fills_the_disk() {
            return Some(Resource::Disk);
        }
        None
    }

    fn fills_the_disk(&mut self) -> bool {
        self.look_at_disk = Instant::now() + LOOK_AT_DISK;
        let Some(bound) = self.ceilings.disk else {
            return false;
        };
        // As long as the disks have about as much room as at the start, nothing
        // has to be measured.
        let folders = self.ceilings.folders.iter().zip(&self.free);
        let taken =
            |(folder, before): (&OsText, &u64)| before.saturating_sub(free(Path::new(&folder.0)));
        if folders.map(taken).max().unwrap_or_default() < bound {
            return false;
        }
        let is_over = self.measured().is_none_or(|written| written > bound);
        self.look_at_disk = Instant::now() + LOOK_AT_DISK;
        is_over
    }

    /// Measures the folders; none where they are too deep.
    fn measured(&self) -> Option<u64> {
        let folders = self.ceilings.folders.iter();
        folders
            .map(|folder| size(Path::new(&folder.0), self.began))
            .sum()
    }
}

/// Returns the time as the kernel writes it into files: by a clock that is some
/// milliseconds behind.
fn now_by_files() -> (i64, i64) {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    (now.tv_sec, now.tv_nsec)
}

/// Returns the free bytes of a file system.
fn free(folder: &Path) -> u64 {
    statvfs(folder).map_or(0, |told| told.f_bavail.saturating_mul(told.f_frsize))
}

/// Returns the bytes of a process's pages.
fn resident(pid: i32) -> u64 {
    let read = || {
        let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
        Some(pages * rustix::param::page_size() as u64)
    };
    read().unwrap_or_default()
}

/// Returns the bytes of a process's pages, each divided by its users.
fn proportional(pid: i32) -> u64 {
    let read = || {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kilobytes * 1_024)
    };
    read().unwrap_or_else(|| resident(pid))
}

/// Returns the bytes of the files below a folder that changed since a moment, as
/// far as they can be read; none where it is too deep. Links are not followed.
fn size(folder: &Path, since: (i64, i64)) -> Option<u64> {
    let Some(top) = open(CWD, folder) else {
        return Some(0);
    };
    let mut total = 0;
    let mut folders = vec![top];
    while let Some(mut entries) = folders.pop() {
        let mut inner = None;
        while let Some(Ok(entry)) = entries.read() {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let Ok(below) = entries.fd() else { continue };
            let Ok(told) = statat(below, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if (told.st_ctime, told.st_ctime_nsec as i64) >= since {
                total += u64::try_from(told.st_blocks).unwrap_or_default() * BLOCK;
            }
            if FileType::from_raw_mode(told.st_mode) == FileType::Directory {
                inner = open(below, name);
                if inner.is_some() {
                    break;
                }
            }
        }
        if let Some(inner) = inner {
            folders.push(entries);
            folders.push(inner);
            if folders.len() > DEPTH {
                return None;
            }
        }
    }
    Some(total)
}

fn open(above: impl std::os::fd::AsFd, name: impl rustix::path::Arg) -> Option<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder: OwnedFd = openat(above, name, flags, Mode::empty()).ok()?;
    Dir::new(folder).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_measured_and_links_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("file"), vec![1; 1 << 20]).unwrap();
        fs::write(folder.path().join("other"), vec![1; 1 << 19]).unwrap();
        std::os::unix::fs::symlink("/usr", inner.join("link")).unwrap();
        let measured = size(folder.path(), (0, 0)).unwrap();
        assert!((3 << 19..2 << 20).contains(&measured), "{measured}");
        assert_eq!(size(folder.path(), (i64::MAX, 0)), Some(0));
        assert_eq!(size(Path::new("/nowhere"), (0, 0)), Some(0));
    }

    #[test]
    fn a_tree_without_end_counts_as_too_much() {
        let folder = tempfile::tempdir().unwrap();
        let mut inner = folder.path().to_path_buf();
        for _ in 0..DEPTH {
            inner.push("d");
        }
        fs::create_dir_all(inner).unwrap();
        assert_eq!(size(folder.path(), (0, 0)), None);
    }
}
