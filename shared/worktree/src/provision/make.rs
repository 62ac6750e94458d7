//! How a lane is made: folder, record, git's record, files.

use super::site::{ProvisionSite, text};
use crate::ownership::MARK;
use crate::reference_deletion::delete;
use crate::removal::{Occupant, occupant};
use crate::tree::Tree;
use crate::tree::sparse::{PATTERNS, patterns_of};
use git2::{BranchType, Repository};
use jiff::Timestamp;
use premath_memory::clock;
use premath_memory::lane_record::{FolderState, LaneFolder, LaneRecord};
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat, renameat};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

/// The folder of the lanes' branches.
const BRANCHES: &str = "harness-lane/";

impl ProvisionSite<'_> {
    /// Makes the worktree of a lane and returns its path. The record names the
    /// folder before anything is put into it.
    pub(super) fn make(&self, record: &mut LaneRecord) -> Result<PathBuf, String> {
        let name = record.lane.clone();
        let worktree = self.free_place(&name)?;
        mkdirat(CWD, &worktree, Mode::from_raw_mode(0o777)).map_err(failed("make its folder"))?;
        let Occupant::Folder(id) = self.occupant(&worktree)? else {
            return Err("another process replaced its folder".to_owned());
        };
        let registration = self.free_registration(&name)?;
        record.folders.push(LaneFolder {
            worktree: worktree.clone(),
            id,
            registration: registration.clone(),
            made_at: now().to_string(),
            state: FolderState::InUse,
            moved_to: None,
        });
        record.write(&self.repository).map_err(text)?;
        self.register(&name, &worktree, &registration)?;
        let folder = self.open(&worktree, &id)?;
        let link = self.link(&registration);
        create(folder.as_fd(), ".git", &link).map_err(failed("write its .git file"))?;
        let lane = Repository::open(&worktree).map_err(git("open it"))?;
        let tree = Tree::open(&worktree).map_err(text)?;
        tree.fill_head().map_err(text)?;
        self.settle_branch(&lane, &name)?;
        Ok(worktree)
    }

    /// Returns what the `.git` file of a lane says.
    pub(super) fn link(&self, registration: &str) -> String {
        let folder = self.common.join("worktrees").join(registration);
        format!("gitdir: {}\n", folder.display())
    }

    /// Writes git's record of a worktree.
    fn register(&self, name: &str, worktree: &std::path::Path, to: &str) -> Result<(), String> {
        let registrations = self.registrations()?;
        mkdirat(&registrations, to, Mode::from_raw_mode(0o777))
            .map_err(failed("make git's record of it"))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(&registrations, to, flags, Mode::empty())
            .map_err(failed("open git's record of it"))?;
        let branch = branch_of(name);
        let has_branch = self.git.find_branch(&branch, BranchType::Local).is_ok();
        let head = match !self.lands && has_branch {
            true => format!("ref: refs/heads/{branch}\n"),
            false => format!("{}\n", self.start),
        };
        let place = format!("{}\n", worktree.join(".git").display());
        let write = |file, content: &str| {
            create(folder.as_fd(), file, content)
                .map_err(|error| format!("cannot write git's record of it: {error}"))
        };
        write("gitdir", &place)?;
        // Before the others: a record that is cut here is not taken for a whole one.
        self.leave_out_as_here(folder.as_fd())?;
        write("commondir", "../..\n")?;
        write("HEAD", &head)?;
        write(MARK, "")
    }

    /// Gives a lane the patterns of the main worktree, where that is sparse.
    fn leave_out_as_here(&self, registration: BorrowedFd<'_>) -> Result<(), String> {
        let is_set = |name| {
            let config = self.git.config();
            config
                .and_then(|config| config.get_bool(name))
                .unwrap_or(false)
        };
        if !is_set("core.sparseCheckout") {
            return Ok(());
        }
        let patterns = patterns_of(&self.common).map_err(|error| {
            let file = self.common.join(PATTERNS);
            format!(
                "cannot read the patterns of the sparse checkout in {}: {error}",
                file.display()
            )
        })?;
        let Some(patterns) = patterns else {
            return Ok(());
        };
        let write = || {
            if is_set("extensions.worktreeConfig") {
                let cone = is_set("core.sparseCheckoutCone");
                let text =
                    format!("[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = {cone}\n");
                create(registration, "config.worktree", &text)?;
            }
            mkdirat(registration, "info", Mode::from_raw_mode(0o777))?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let info = openat(registration, "info", flags, Mode::empty())?;
            create_bytes(info.as_fd(), "sparse-checkout", &patterns)
        };
        write().map_err(failed("write the patterns of its sparse checkout"))
    }

    /// Finds a name that git has no worktree record by.
    fn free_registration(&self, name: &str) -> Result<String, String> {
        let registrations = self.registrations()?;
        let mut free = format!("premath-{name}");
        for number in 2_u32..10_000 {
            match occupant(registrations.as_fd(), OsStr::new(&free)) {
                Ok(Occupant::Nothing) => return Ok(free),
                _ => free = format!("premath-{name}-{number}"),
            }
        }
        Err("no free name for git's record of it".to_owned())
    }

    /// A lane whose steps have branches of their own is on none; any other has
    /// one to commit to.
    pub(super) fn settle_branch(&self, lane: &Repository, name: &str) -> Result<(), String> {
        let head = lane.head().map_err(git("read its HEAD"))?;
        let commit = head.peel_to_commit().map_err(git("read its HEAD"))?;
        let branch = branch_of(name);
        let reference = format!("refs/heads/{branch}");
        if !self.lands {
            if head.is_branch() {
                return Ok(());
            }
            keep_branch(lane, &branch)?;
            return lane
                .branch(&branch, &commit, true)
                .and_then(|_| lane.set_head(&reference))
                .map_err(git("put it on its branch"));
        }
        if head.name().is_ok_and(|name| name == reference) {
            lane.set_head_detached(commit.id())
                .map_err(git("take it off its branch"))?;
            // What was committed to it while work did not land stays.
            let is_held = super::lane::held_elsewhere(lane, &reference, commit.id())
                .map_err(git("look at its branch"))?;
            if is_held && let Ok(left) = lane.find_reference(&reference) {
                delete(lane, left).map_err(git("remove its branch"))?;
            }
        }
        Ok(())
    }
}

/// Keeps the commits of a branch that is about to move, where no other branch has them.
fn keep_branch(lane: &Repository, branch: &str) -> Result<(), String> {
    let failed = git("keep the work of its branch");
    let kept = || -> Result<(), git2::Error> {
        let reference = format!("refs/heads/{branch}");
        let Ok(tip) = lane
            .find_reference(&reference)
            .and_then(|found| found.peel_to_commit())
        else {
            return Ok(());
        };
        if super::lane::held_elsewhere(lane, &reference, tip.id())? {
            return Ok(());
        }
        let name = format!("harness/salvage/{branch}/{:.10}", tip.id().to_string());
        lane.branch(&name, &tip, false)?;
        tracing::warn!(branch, kept = name, "the branch of the lane moved");
        Ok(())
    };
    kept().map_err(failed)
}

fn now() -> Timestamp {
    clock::now().wall
}

/// Names the branch of a lane.
pub(super) fn branch_of(name: &str) -> String {
    format!("{BRANCHES}{name}")
}

/// Returns whether a branch has the name that a lane's own has.
pub(crate) fn is_branch_of_lane(branch: &str) -> bool {
    let number = branch
        .strip_prefix(BRANCHES)
        .and_then(|lane| lane.strip_prefix("lane-"));
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Writes a file that must not be there yet.
pub(super) fn create(folder: BorrowedFd<'_>, name: &str, content: &str) -> io::Result<()> {
    create_bytes(folder, name, content.as_bytes())
}

fn create_bytes(folder: BorrowedFd<'_>, name: &str, content: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::from_raw_mode(0o666))?;
    File::from(file).write_all(content)
}

/// Replaces a file, links not followed.
pub(super) fn replace(folder: BorrowedFd<'_>, name: &str, content: &str) -> io::Result<()> {
    let new = format!("{name}.premath");
    crate::removal::remove_entry(folder, OsStr::new(&new))?;
    create(folder, &new, content)?;
    Ok(renameat(folder, &new, folder, name)?)
}

pub(super) fn failed<E: std::fmt::Display>(operation: &str) -> impl FnOnce(E) -> String + '_ {
    move |error| format!("cannot {operation}: {error}")
}

pub(super) fn git(operation: &str) -> impl FnOnce(git2::Error) -> String + '_ {
    move |error| format!("cannot {operation}: {}", error.message())
}
