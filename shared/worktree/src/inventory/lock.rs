//! Git's lock files where the harness works: their existence is the lock, so a
//! file that a killed process left blocks every later command.

use super::Targets;
use jiff::Timestamp;
use premath_kernel::policy::inventory::{GitLockFile, LaneLockState, Worktree};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the harness's own branches and marks are.
const OURS: [&str; 4] = [
    "refs/harness",
    "refs/heads/harness",
    "refs/heads/harness-step",
    "refs/heads/harness-salvage",
];
/// What a worktree's own git folder is locked by.
const OWN: [&str; 2] = ["index.lock", "HEAD.lock"];
/// The lock on all packed references.
const PACKED: &str = "packed-refs.lock";

pub(super) fn find(common: &Path, targets: &Targets, worktrees: &[Worktree]) -> Vec<GitLockFile> {
    let mut paths = Vec::new();
    for folder in OURS {
        below(&common.join(folder), &mut paths);
    }
    for target in targets.keys() {
        paths.push((common.join(format!("refs/heads/{target}.lock")), false));
    }
    paths.push((common.join(PACKED), true));
    for worktree in worktrees {
        if worktree.lane == LaneLockState::Never && !worktree.is_provisioned {
            continue;
        }
        let folder = match &worktree.name {
            Some(name) => common.join("worktrees").join(name),
            None => common.to_path_buf(),
        };
        // In the main worktree a person may be at work.
        let is_shared = worktree.name.is_none();
        paths.extend(OWN.map(|name| (folder.join(name), is_shared)));
    }
    paths.sort();
    paths.dedup();
    let look = |(path, is_shared): (PathBuf, bool)| {
        let at = touched(&path)?;
        Some(GitLockFile {
            path,
            at,
            is_shared,
        })
    };
    paths.into_iter().filter_map(look).collect()
}

/// Returns when a file was last touched; `None` where it is not there.
pub(super) fn touched(path: &Path) -> Option<Timestamp> {
    let meta = fs::symlink_metadata(path).ok()?;
    Timestamp::try_from(meta.modified().ok()?).ok()
}

/// Lists the lock files below a folder; links are not followed, the folder
/// itself included.
fn below(folder: &Path, found: &mut Vec<(PathBuf, bool)>) {
    if !fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir()) {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below(&path, found);
        } else if path.extension().is_some_and(|end| end == "lock") {
            found.push((path, false));
        }
    }
}
