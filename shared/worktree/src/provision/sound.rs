//! Whether a lane that the harness made can be worked in.

use super::make::{failed, replace};
use super::site::{ProvisionSite, text};
use crate::removal::{Occupant, RemovalBounds, occupant, probe};
use crate::tree::index_file;
use git2::Repository;
use premath_memory::lane_record::LaneFolder;
use premath_memory::{PREDECESSOR_WAIT, WorktreeLock};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// What git's own small files have at most.
const LONGEST: u64 = 64 << 10;

/// What may be in a lane, and how long looking at it may take.
const PROBE: RemovalBounds = RemovalBounds {
    entries: 10_000_000,
    time: Duration::from_secs(60),
};

/// Why a lane cannot be worked in.
#[derive(Debug)]
pub(super) enum Unsound {
    /// It cannot be put right.
    Broken(String),
    /// It could be put right, but its lock cannot be taken.
    Locked(String),
}

impl From<String> for Unsound {
    fn from(reason: String) -> Self {
        Self::Broken(reason)
    }
}

impl ProvisionSite<'_> {
    /// Looks at a lane and puts right what can be without touching its files.
    /// Returns what was put right; fails with what cannot be.
    pub(super) fn mend(&self, folder: &LaneFolder) -> Result<Option<&'static str>, Unsound> {
        let registration = self.registration(folder)?;
        let mut mended = None;
        let worktree = self.open(&folder.worktree, &folder.id)?;
        let link = self.link(&folder.registration);
        if small(worktree.as_fd(), ".git")?.as_deref() != Some(link.as_bytes()) {
            // While a step works in it, `.git` may lead to the step's own git folder. What
            // is written here is not taken from a step, and nothing is opened through what
            // a step left there.
            let own = self.common.join("worktrees").join(&folder.registration);
            let _lock = WorktreeLock::acquire_in(&own, PREDECESSOR_WAIT).map_err(|error| {
                let why = text(error);
                Unsound::Locked(format!("its .git file cannot be put right: {why}"))
            })?;
            replace(worktree.as_fd(), ".git", &link).map_err(failed("write its .git file"))?;
            mended = Some("its .git file was not that of this repository");
        }
        probe(worktree.as_fd(), PROBE)?;
        if self.repair_head(&registration, folder)? {
            mended = Some("its HEAD was at no commit");
        }
        Ok(mended)
    }

    /// Opens git's record of a lane and checks its files.
    fn registration(&self, folder: &LaneFolder) -> Result<OwnedFd, String> {
        let registrations = self.registrations()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = folder.registration.as_str();
        let registration = openat(&registrations, name, flags, Mode::empty())
            .map_err(|errno| format!("git's record of it cannot be opened: {errno}"))?;
        let is_ours = |name: &str, expected: &[&str]| -> Result<(), String> {
            let content = small(registration.as_fd(), name)?.unwrap_or_default();
            let content = String::from_utf8_lossy(&content);
            match expected.contains(&content.trim_end_matches('\n')) {
                true => Ok(()),
                false => Err(format!("{name} in git's record of it was changed")),
            }
        };
        let common = self.common.display().to_string();
        is_ours("commondir", &["../..", &common, &format!("{common}/")])?;
        let place = folder.worktree.join(".git").display().to_string();
        is_ours("gitdir", &[&place])?;
        small(registration.as_fd(), "HEAD")?;
        for name in ["index", "premath-lane.flock", "config.worktree", "locked"] {
            is_file(registration.as_fd(), name)?;
        }
        Ok(registration)
    }

    /// Puts HEAD at the lane's first commit where it is at none that can be
    /// read; returns whether it was.
    fn repair_head(&self, registration: &OwnedFd, folder: &LaneFolder) -> Result<bool, String> {
        let lane = Repository::open(&folder.worktree)
            .map_err(|error| format!("it cannot be opened: {}", error.message()))?;
        index_file::open_of(&lane)
            .map_err(|error| format!("its index cannot be read: {}", error.message()))?;
        let is_readable = lane
            .head()
            .and_then(|head| head.peel_to_commit())
            .and_then(|commit| commit.tree())
            .is_ok();
        if is_readable {
            return Ok(false);
        }
        replace(registration.as_fd(), "HEAD", &format!("{}\n", self.start))
            .map_err(failed("repair its HEAD"))?;
        Ok(true)
    }
}

/// Refuses an entry that is there and is not a regular file.
fn is_file(folder: BorrowedFd<'_>, name: &str) -> Result<(), String> {
    match occupant(folder, OsStr::new(name)) {
        Ok(Occupant::Nothing) => Ok(()),
        Ok(_) => open(folder, name).map(drop),
        Err(error) => Err(format!("{name} cannot be looked at: {error}")),
    }
}

/// Opens a regular file; nothing else is waited for or followed.
fn open(folder: BorrowedFd<'_>, name: &str) -> Result<Option<File>, String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(folder, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(format!("{name} cannot be opened: {errno}")),
    };
    let found = fstat(&file).map_err(|errno| format!("{name} cannot be looked at: {errno}"))?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Ok(Some(file.into())),
        _ => Err(format!("{name} is not a regular file")),
    }
}

/// Reads a small regular file; `None` where there is none.
pub(super) fn small(folder: BorrowedFd<'_>, name: &str) -> Result<Option<Vec<u8>>, String> {
    let Some(file) = open(folder, name)? else {
        return Ok(None);
    };
    let mut content = Vec::new();
    file.take(LONGEST + 1)
        .read_to_end(&mut content)
        .map_err(|error| format!("{name} cannot be read: {error}"))?;
    match content.len() as u64 > LONGEST {
        true => Err(format!("{name} is longer than {LONGEST} bytes")),
        false => Ok(Some(content)),
    }
}
