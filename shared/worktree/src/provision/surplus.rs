//! Lanes that the harness made and that the batch does not use.
//!
//! Only a folder that the record names, that lies directly below the configured
//! root and that still is the folder of the record is removed. Git's worktree
//! records are listed, never followed.

use super::lane::{folder_of, held_elsewhere, registered, same_place};
use super::make::branch_of;
use super::site::{ProvisionSite, text};
use super::sound::Unsound;
use super::{LEFTOVER, LaneOutcome, LaneWork, ProvisionResult, SWEEP};
use crate::ownership::is_provisioned;
use crate::reference_deletion::delete;
use crate::removal::{Occupant, remove_exactly};
use crate::tree::Tree;
use premath_memory::WorktreeLock;
use premath_memory::lane_record::{FolderState, LaneFolder, LaneRecord};
use std::path::PathBuf;
use std::time::Duration;

impl ProvisionSite<'_> {
    /// Removes what the harness made beside the lanes that are wanted, and
    /// reports what stays.
    pub(super) fn clear_surplus(&self, wanted: &[PathBuf]) -> Vec<LaneOutcome> {
        let records = match LaneRecord::all(&self.repository) {
            Ok(records) => records,
            Err(error) => {
                return vec![LaneOutcome {
                    worktree: self.root.clone(),
                    result: ProvisionResult::Surplus(text(error)),
                }];
            }
        };
        let mut outcomes = Vec::new();
        let mut known: Vec<PathBuf> = wanted.to_vec();
        for mut record in records {
            let stays = self.sweep(&mut record);
            outcomes.extend(stays.into_iter().map(|(worktree, why)| LaneOutcome {
                worktree,
                result: ProvisionResult::Surplus(why),
            }));
            for folder in record.folders.clone() {
                known.push(folder.worktree.clone());
                // Worktrees below another root are for work from elsewhere.
                let is_surplus = folder.state == FolderState::InUse
                    && folder.worktree.parent() == Some(&*self.root)
                    && !wanted.contains(&folder.worktree);
                if is_surplus {
                    let removed = self.remove_surplus(&mut record, &folder, LaneWork::Kept);
                    let result = match removed {
                        Ok(()) => {
                            // What is left is found as a checkout without a lane.
                            if let Err(why) = self.remove_files_of(&folder) {
                                tracing::warn!(why, "the checkout of a removed lane is left");
                            }
                            ProvisionResult::Removed
                        }
                        Err(why) => ProvisionResult::Surplus(why),
                    };
                    outcomes.push(LaneOutcome {
                        worktree: folder.worktree,
                        result,
                    });
                }
            }
        }
        outcomes.extend(self.unrecorded(&known));
        outcomes
    }

    /// Lists worktrees with the mark of an earlier version that no record names.
    /// The mark and the path were open to steps: nothing is done about them.
    fn unrecorded(&self, known: &[PathBuf]) -> Vec<LaneOutcome> {
        registered(self.git)
            .into_iter()
            .filter(|worktree| is_provisioned(&folder_of(self.git, worktree)))
            .filter(|worktree| !known.iter().any(|path| same_place(path, worktree.path())))
            .map(|worktree| {
                let path = worktree.path().to_path_buf();
                let is_below = path
                    .parent()
                    .is_some_and(|above| same_place(above, &self.root));
                let advice = match is_below {
                    true => format!("remove it with `git worktree remove {}`", path.display()),
                    false => "find it with `git worktree list` and remove it there".to_owned(),
                };
                LaneOutcome {
                    result: ProvisionResult::Surplus(format!(
                        "the harness has no record of it; {advice}"
                    )),
                    worktree: path,
                }
            })
            .collect()
    }

    /// Removes a lane that holds nothing of its own, or nothing that is kept; says why
    /// it stays.
    pub(super) fn remove_surplus(
        &self,
        record: &mut LaneRecord,
        folder: &LaneFolder,
        work: LaneWork,
    ) -> Result<(), String> {
        match self.occupant(&folder.worktree)? {
            Occupant::Folder(id) if id.is(&folder.id) => {}
            Occupant::Nothing => {
                self.deregister(folder)?;
                return self.forget(record, folder);
            }
            Occupant::Folder(_) | Occupant::Other => {
                self.forget(record, folder)?;
                return Err("it is not the folder that the harness made".to_owned());
            }
        }
        let registration = self.common.join("worktrees").join(&folder.registration);
        if std::fs::symlink_metadata(registration.join("locked")).is_ok() {
            return Err("it is locked; `git worktree unlock` unlocks it".to_owned());
        }
        if let Some(holder) = self.holder(folder) {
            return Err(format!("it is in use by {holder}"));
        }
        self.mend(folder).map_err(|unsound| match unsound {
            Unsound::Locked(reason) => reason,
            Unsound::Broken(fault) => format!(
                "{fault}; `rm -rf {}` removes it with all that it holds",
                folder.worktree.display()
            ),
        })?;
        // Held until it is gone, so that no other harness begins to work in it.
        let _lock = WorktreeLock::acquire_in(&registration, Duration::ZERO).map_err(text)?;
        self.holds_nothing(record, folder, work)?;
        remove_exactly(&folder.worktree, &folder.id, &self.guard, SWEEP).map_err(text)?;
        self.deregister(folder)?;
        self.remove_branch(record, work);
        self.forget(record, folder)
    }

    /// Removes the branch of a lane that is gone. It stays where no other branch has
    /// its commits: the lane may have left it, with work of issues that are closed.
    fn remove_branch(&self, record: &LaneRecord, work: LaneWork) {
        let own = format!("refs/heads/{}", branch_of(&record.lane));
        let Ok(branch) = self.git.find_reference(&own) else {
            return;
        };
        let is_held = || {
            let tip = branch.peel_to_commit();
            tip.is_ok_and(|tip| held_elsewhere(self.git, &own, tip.id()).unwrap_or(false))
        };
        if work == LaneWork::Discarded || is_held() {
            let _ = delete(self.git, branch);
        }
    }

    fn holds_nothing(
        &self,
        record: &LaneRecord,
        folder: &LaneFolder,
        work: LaneWork,
    ) -> Result<(), String> {
        let tree = Tree::open(&folder.worktree).map_err(text)?;
        let changes = tree.changes().map_err(text)?;
        if let Some(first) = changes.first() {
            return Err(format!("it holds changes, such as {first}"));
        }
        let base = tree.base().map_err(text)?;
        let own = format!("refs/heads/{}", branch_of(&record.lane));
        let is_held = git2::Oid::from_str(&base.commit)
            .and_then(|commit| held_elsewhere(self.git, &own, commit))
            .map_err(|error| error.message().to_owned())?;
        if !is_held && work == LaneWork::Kept {
            return Err(match &base.branch {
                Some(branch) if *branch == own => format!(
                    "no other branch has the commits of {0}; `git merge {0}` takes them",
                    branch_of(&record.lane)
                ),
                _ => "it holds commits that no branch has".to_owned(),
            });
        }
        let salvage = tree.git_folder().join(LEFTOVER);
        if salvage.exists() {
            return Err(format!("work is kept in {}", salvage.display()));
        }
        Ok(())
    }
}
