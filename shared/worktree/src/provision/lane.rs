//! One lane: what is in its place, and what is done about it.

use super::make::git as failed_git;
use super::site::{ProvisionSite, text};
use super::sound::Unsound;
use super::{LaneOutcome, ProvisionResult};
use crate::ownership::is_provisioned;
use crate::removal::Occupant;
use git2::{Oid, Repository, Worktree};
use premath_memory::lane_record::{LaneFolder, LaneRecord};
use premath_memory::{LockState, lane_lock};
use std::fs;
use std::path::{Path, PathBuf};

impl ProvisionSite<'_> {
    /// Makes sure of a lane; one that cannot be had is refused.
    pub(super) fn lane(&self, name: &str) -> LaneOutcome {
        match self.ready(name) {
            Ok((worktree, result)) => LaneOutcome { worktree, result },
            Err(why) => LaneOutcome {
                worktree: self.root.join(name),
                result: ProvisionResult::Refused(why),
            },
        }
    }

    /// Returns whether the harness made a lane, by its record.
    pub(super) fn is_made(&self, name: &str) -> bool {
        let record = LaneRecord::read(&self.repository, name);
        record.is_ok_and(|record| record.in_use(&self.root).is_some())
    }

    /// Returns where a lane is, or would be made.
    pub(super) fn place_of(&self, name: &str) -> PathBuf {
        let record = LaneRecord::read(&self.repository, name).ok();
        let folder = record.as_ref().and_then(|record| record.in_use(&self.root));
        folder.map_or_else(|| self.root.join(name), |folder| folder.worktree.clone())
    }

    fn ready(&self, name: &str) -> Result<(PathBuf, ProvisionResult), String> {
        let mut record = LaneRecord::read(&self.repository, name).map_err(text)?;
        self.sweep(&mut record);
        let Some(folder) = record.in_use(&self.root).cloned() else {
            return self.without_record(&mut record);
        };
        match self.occupant(&folder.worktree)? {
            Occupant::Folder(id) if id.is(&folder.id) => self.recorded(&mut record, &folder),
            Occupant::Folder(_) => {
                self.forget(&mut record, &folder)?;
                let reason = "the folder was not created by the harness";
                Ok((
                    self.make(&mut record)?,
                    ProvisionResult::Remade(reason.to_owned()),
                ))
            }
            Occupant::Other => {
                // The entry itself, a link or file; what it leads to is not
                // touched.
                crate::removal::remove_owned(&folder.worktree, &self.guard).map_err(text)?;
                self.gone(&mut record, &folder)?;
                let reason = "a symlink or file was in its place";
                Ok((
                    self.make(&mut record)?,
                    ProvisionResult::Remade(reason.to_owned()),
                ))
            }
            Occupant::Nothing => {
                self.gone(&mut record, &folder)?;
                Ok((
                    self.make(&mut record)?,
                    ProvisionResult::Repaired("its folder was gone"),
                ))
            }
        }
    }

    /// Forgets a lane whose folder is gone, and git's record of it unless a
    /// person locked that.
    fn gone(&self, record: &mut LaneRecord, folder: &LaneFolder) -> Result<(), String> {
        let registration = self.common.join("worktrees").join(&folder.registration);
        if fs::symlink_metadata(registration.join("locked")).is_err() {
            self.deregister(folder)?;
        }
        self.forget(record, folder)
    }

    fn recorded(
        &self,
        record: &mut LaneRecord,
        folder: &LaneFolder,
    ) -> Result<(PathBuf, ProvisionResult), String> {
        let mended = self.mend(folder).and_then(|mended| {
            let lane = Repository::open(&folder.worktree).map_err(failed_git("open it"))?;
            self.settle_branch(&lane, &record.lane)?;
            Ok(mended)
        });
        match mended {
            // What it has may be unsaved.
            Err(Unsound::Locked(reason)) => Err(reason),
            Ok(None) => Ok((folder.worktree.clone(), ProvisionResult::Kept)),
            Ok(Some(what)) => Ok((folder.worktree.clone(), ProvisionResult::Repaired(what))),
            Err(Unsound::Broken(reason)) => {
                if let Some(holder) = self.holder(folder) {
                    return Err(format!("{reason}; it is in use by {holder}"));
                }
                self.renew(record, folder, reason)
            }
        }
    }

    /// Returns who works in a lane.
    pub(super) fn holder(&self, folder: &LaneFolder) -> Option<String> {
        let registration = self.common.join("worktrees").join(&folder.registration);
        let lock = registration.join("premath-lane.flock");
        // A pipe in its place would be waited for.
        let is_file = fs::symlink_metadata(&lock).is_ok_and(|found| found.is_file());
        match is_file.then(|| lane_lock(&registration)) {
            Some(Ok(LockState::Held(by))) => Some(by),
            _ => None,
        }
    }

    /// Decides about a place that no record names: it is made, used as it is,
    /// or refused, but never changed.
    fn without_record(
        &self,
        record: &mut LaneRecord,
    ) -> Result<(PathBuf, ProvisionResult), String> {
        let worktree = self.root.join(&record.lane);
        let is_free = match self.occupant(&worktree)? {
            Occupant::Nothing => true,
            Occupant::Folder(_) => {
                fs::read_dir(&worktree).is_ok_and(|mut entries| entries.next().is_none())
            }
            Occupant::Other => false,
        };
        if is_free {
            return Ok((self.make(record)?, ProvisionResult::Made));
        }
        let Some(registered) = registered_at(self.git, &worktree) else {
            return Err("the path is not a worktree of this repository; move it away".to_owned());
        };
        let lane = Repository::open(&worktree).map_err(failed_git("open it"))?;
        let common = fs::canonicalize(lane.commondir()).ok();
        if common.as_ref() != Some(&self.common) {
            return Err("its .git file belongs to another repository; move it away".to_owned());
        }
        lane.head()
            .and_then(|head| head.peel_to_commit())
            .map_err(failed_git("read its HEAD"))?;
        // One of an earlier version.
        if is_provisioned(&folder_of(self.git, &registered)) {
            self.settle_branch(&lane, &record.lane)?;
        }
        Ok((worktree, ProvisionResult::Kept))
    }
}

/// Returns whether another branch than one holds a commit.
pub(super) fn held_elsewhere(
    git: &Repository,
    branch: &str,
    commit: Oid,
) -> Result<bool, git2::Error> {
    for other in git.references_glob("refs/heads/*")? {
        let other = other?;
        if other.name() == Ok(branch) {
            continue;
        }
        let Ok(tip) = other.peel_to_commit() else {
            continue;
        };
        if tip.id() == commit || git.graph_descendant_of(tip.id(), commit)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the git folder of a registered worktree.
pub(super) fn folder_of(git: &Repository, worktree: &Worktree) -> PathBuf {
    let name = worktree.name().ok().flatten().unwrap_or_default();
    git.commondir().join("worktrees").join(name)
}

/// Returns every registered worktree, in the order of their names.
pub(super) fn registered(git: &Repository) -> Vec<Worktree> {
    let names = git.worktrees();
    let mut names: Vec<String> = names
        .iter()
        .flat_map(|names| names.iter())
        .filter_map(|name| name.ok().flatten().map(str::to_owned))
        .collect();
    names.sort();
    names
        .iter()
        .filter_map(|name| git.find_worktree(name).ok())
        .collect()
}

fn registered_at(git: &Repository, worktree: &Path) -> Option<Worktree> {
    registered(git)
        .into_iter()
        .find(|found| same_place(found.path(), worktree))
}

/// Returns whether two paths are one place, also where nothing is there now.
pub(super) fn same_place(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        let above = path.parent().and_then(|above| fs::canonicalize(above).ok());
        above
            .zip(path.file_name())
            .map(|(above, name)| above.join(name))
    };
    place(one).is_some_and(|one| Some(one) == place(other))
}
