//! Which files a command works on (`contracts.md` 6).

use crate::error::CliError;
use harness_worker::settings::FileSettings;
use premath_memory::roots::{LaneRoots, MemoryRoots, worktree_root};
use premath_memory::{IssueMemory, OpenOptions};
use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

/// Returns an environment variable that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns issue memory's path: the one given, `PREMATH_ISSUES_PATH`, or that
/// of the repository root.
pub(crate) fn issues(given: Option<PathBuf>) -> Result<PathBuf, CliError> {
    match given.or_else(|| variable("PREMATH_ISSUES_PATH").map(PathBuf::from)) {
        Some(path) => Ok(path),
        None => Ok(MemoryRoots::discover(Path::new("."))?.issues),
    }
}

/// Returns the roots of the repository's memory.
pub(crate) fn roots() -> Result<MemoryRoots, CliError> {
    Ok(MemoryRoots::discover(Path::new("."))?)
}

/// Returns the repository root.
pub(crate) fn repository() -> Result<PathBuf, CliError> {
    Ok(MemoryRoots::discover(Path::new("."))?.repository)
}

/// Returns the trajectory's path: the one given, or that of the repository root.
pub(crate) fn trajectory(given: Option<PathBuf>) -> Result<PathBuf, CliError> {
    match given {
        Some(path) => Ok(path),
        None => Ok(MemoryRoots::discover(Path::new("."))?.trajectory),
    }
}

/// Returns the session's path: the one given, `PREMATH_HARNESS_SESSION_PATH`,
/// or that of this worktree.
pub(crate) fn session(given: Option<PathBuf>) -> Result<PathBuf, CliError> {
    match given.or_else(|| variable("PREMATH_HARNESS_SESSION_PATH").map(PathBuf::from)) {
        Some(path) => Ok(path),
        None => Ok(lane()?.session),
    }
}

/// Returns the feature ledger's path: the one given, or that of this worktree.
pub(crate) fn ledger(given: Option<PathBuf>) -> Result<PathBuf, CliError> {
    match given {
        Some(path) => Ok(path),
        None => Ok(lane()?.ledger),
    }
}

/// Returns whether a step runs in this worktree.
pub(crate) fn step_runs() -> Result<bool, CliError> {
    Ok(lane()?.step.exists())
}

fn lane() -> Result<LaneRoots, CliError> {
    let here = Path::new(".");
    let root = match worktree_root(here)? {
        Some(root) => root,
        // Without a repository the folder is its own root.
        None => MemoryRoots::discover(here)?.repository,
    };
    Ok(LaneRoots::at(&root))
}

/// Returns whether issue memory is that of this folder, and no repository is here: an
/// issue that is added here by mistake would not be found again.
pub(crate) fn is_stray(issues: &Path) -> Result<bool, CliError> {
    let here = Path::new(".");
    match worktree_root(here) {
        Ok(None) => Ok(MemoryRoots::discover(here)?.issues == issues),
        _ => Ok(false),
    }
}

/// Opens issue memory for as long as a server runs.
pub(crate) fn open_to_share(path: &Path) -> Result<IssueMemory, CliError> {
    Ok(IssueMemory::open(path, &options(path, false))?)
}

/// Opens issue memory; `create` makes the file where it is not there.
///
/// It is never dropped: the process ends with its answer, and to take a
/// hundred thousand issues apart before would only delay that.
pub(crate) fn open(path: &Path, create: bool) -> Result<ManuallyDrop<IssueMemory>, CliError> {
    Ok(ManuallyDrop::new(IssueMemory::open(
        path,
        &options(path, create),
    )?))
}

fn options(path: &Path, create: bool) -> OpenOptions {
    let default = OpenOptions::default();
    OpenOptions {
        create,
        id_prefix: id_prefix(path).unwrap_or(default.id_prefix),
        insist_on_network_filesystem: variable("PREMATH_ALLOW_NETWORK_FS")
            .is_some_and(|value| value == "1"),
        ..default
    }
}

/// Returns the prefix of ids that the settings of an issue store's repository have,
/// where the store is empty. Settings that cannot be read have none: an issue can be
/// added all the same.
fn id_prefix(issues: &Path) -> Option<String> {
    if issues.metadata().is_ok_and(|meta| meta.len() > 0) {
        return None;
    }
    let folder = issues.parent().filter(|folder| folder.is_dir())?;
    let root = MemoryRoots::discover(folder).ok()?.repository;
    FileSettings::load(None, &root).ok()?.issue_prefix
}
