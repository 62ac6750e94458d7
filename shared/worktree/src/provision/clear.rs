//! Removes a lane on request.

use super::Provision;
use super::site::{ProvisionSite, text};
use crate::removal::{Guard, remove_lane_files, remove_owned};
use git2::Repository;
use premath_memory::lane_record::{FolderState, LaneFolder, LaneRecord};
use premath_memory::roots::{LaneState, WarmRoots};
use std::fs;
use std::path::Path;

/// What happens to commits of a lane that no other branch has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneWork {
    /// The lane stays with them.
    Kept,
    /// They go with the lane and its branch.
    Discarded,
}

/// Removes a lane that the harness made, its checkout for verifications and its
/// files; with the last lane also what all of them share.
///
/// # Errors
///
/// Why it stays: another process uses it, it holds work, or it is not the folder
/// that the harness made.
pub(crate) fn clear_lane(repository: &Path, worktree: &Path, work: LaneWork) -> Result<(), String> {
    let provision = Provision {
        repository: repository.to_path_buf(),
        root: worktree.parent().unwrap_or(worktree).to_path_buf(),
        count: 0,
        spare: Vec::new(),
        target: None,
    };
    let git = Repository::open(repository).map_err(|error| error.message().to_owned())?;
    let root = provision.made_root(&git).map_err(text)?;
    let _alone = provision.alone(&git, || true).map_err(text)?;
    let site = provision.site(&git, root).map_err(text)?;
    let (mut record, folder) = find(&site, worktree)?;
    site.remove_surplus(&mut record, &folder, work)?;
    site.remove_files_of(&folder)?;
    let left = LaneRecord::all(&site.repository).map_err(text)?;
    if left.iter().all(|record| record.folders.is_empty()) {
        site.remove_shared()?;
    }
    Ok(())
}

/// Finds the record of a lane by its folder.
fn find(site: &ProvisionSite<'_>, worktree: &Path) -> Result<(LaneRecord, LaneFolder), String> {
    let records = LaneRecord::all(&site.repository).map_err(text)?;
    let found = records.into_iter().find_map(|record| {
        let mut folders = record.folders.iter();
        let folder = folders
            .find(|folder| folder.state == FolderState::InUse && folder.worktree == worktree)?;
        Some((folder.clone(), record.clone()))
    });
    match found {
        Some((folder, record)) => Ok((record, folder)),
        None => Err(format!(
            "the harness has no record of it; remove it with `git worktree remove {}`",
            worktree.display()
        )),
    }
}

impl ProvisionSite<'_> {
    /// Removes what the harness keeps of a lane elsewhere.
    pub(super) fn remove_files_of(&self, folder: &LaneFolder) -> Result<(), String> {
        let state = LaneState::at(&self.repository, &folder.worktree);
        // What shows whose they are is in the main worktree.
        let guard = Guard::around([&*self.repository, &*self.common]).map_err(text)?;
        remove_lane_files(&state, &guard).map_err(text)
    }

    /// Removes the build state of the base, and folders that are empty now.
    fn remove_shared(&self) -> Result<(), String> {
        let warm = WarmRoots::at(&self.repository);
        for path in [&warm.layer, &warm.at] {
            remove_owned(path, &self.guard).map_err(text)?;
        }
        for folder in [warm.at.parent(), Some(&*self.root)].into_iter().flatten() {
            // One that holds anything else is not only ours.
            let _ = fs::remove_dir(folder);
        }
        warm.forget().map_err(text)
    }
}
