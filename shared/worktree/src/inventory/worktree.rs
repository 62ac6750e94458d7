//! The worktrees of a repository, whatever state they are in.

use super::holder::Holders;
use super::{Inventory, InventoryError, salvage};
use crate::ownership::is_provisioned;
use crate::tree::Tree;
use git2::Oid;
use premath_kernel::policy::inventory::{CutStep, Head, LaneLockState, Loss, Worktree};
use premath_kernel::record::session::SessionState;
use premath_memory::cause::chain;
use premath_memory::roots::LaneState;
use premath_memory::{LockState, lane_lock, projection};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

impl Inventory {
    /// Lists the main worktree, then the linked ones by name.
    pub(super) fn worktrees(&self, holders: &Holders) -> Result<Vec<Worktree>, InventoryError> {
        let common = self.common_folder();
        let mut found = Vec::new();
        if let Some(root) = self.git.workdir() {
            found.push(self.worktree(None, common, root, holders)?);
        }
        let mut linked: Vec<PathBuf> = fs::read_dir(common.join("worktrees"))
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .collect();
        linked.sort();
        for folder in linked {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let place = place_of(&folder).unwrap_or_else(|| folder.clone());
            found.push(self.worktree(Some(name.into_owned()), &folder, &place, holders)?);
        }
        Ok(found)
    }

    fn worktree(
        &self,
        name: Option<String>,
        folder: &Path,
        place: &Path,
        holders: &Holders,
    ) -> Result<Worktree, InventoryError> {
        let lane = match lane_lock(folder)? {
            LockState::Never => LaneLockState::Never,
            LockState::Free => LaneLockState::Free,
            LockState::Held(by) => LaneLockState::Held(by),
        };
        let mut found = Worktree {
            is_there: place.is_dir(),
            path: components(place),
            locked: fs::read_to_string(folder.join("locked"))
                .ok()
                .map(|reason| reason.trim().to_owned()),
            head: self.head_of(folder),
            returns_to: returns_to(folder),
            lane,
            is_provisioned: is_provisioned(folder),
            changes: None,
            step: None,
            session_fault: None,
            loses: None,
            name,
        };
        if !found.is_there {
            found.loses = self.loss(folder, &found.head, holders)?;
            return Ok(found);
        }
        let is_lane = found.is_provisioned || found.lane != LaneLockState::Never;
        if is_lane {
            self.look_at_session(&mut found);
        }
        // Of a lane that works, or was cut, the `.git` file may lead to the
        // step's own git folder; the next batch puts it back.
        let is_at_work = found.step.is_some() || matches!(found.lane, LaneLockState::Held(_));
        if found.name.is_some() && !is_at_work && !is_linked_to(place, folder) {
            found.head = Head::Unreadable("its .git file does not lead here".to_owned());
            return Ok(found);
        }
        let is_settled = matches!(found.head, Head::Branch(_) | Head::Detached(_));
        // What a lane is at is its own affair, and changes under the look.
        if is_lane && is_settled && !matches!(found.lane, LaneLockState::Held(_)) {
            let tree = Tree::open_in(self.common_folder(), place);
            match tree.and_then(|tree| tree.changes()) {
                Ok(changes) => found.changes = Some(changes.len()),
                Err(error) => found.head = Head::Unreadable(error.to_string()),
            }
        }
        Ok(found)
    }

    fn head_of(&self, folder: &Path) -> Head {
        let text = match fs::read_to_string(folder.join("HEAD")) {
            Ok(text) => text,
            Err(error) => return Head::Unreadable(error.to_string()),
        };
        let text = text.trim();
        if let Some(reference) = text.strip_prefix("ref:").map(str::trim) {
            let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference);
            return match self.git.find_reference(reference) {
                Ok(found) => match found.peel_to_commit() {
                    Ok(_) => Head::Branch(branch.to_owned()),
                    Err(error) => Head::Unreadable(error.message().to_owned()),
                },
                Err(error) if error.code() == git2::ErrorCode::NotFound => Head::Unborn,
                Err(error) => Head::Unreadable(error.message().to_owned()),
            };
        }
        match Oid::from_str(text).and_then(|id| self.git.find_commit(id)) {
            Ok(commit) => Head::Detached(commit.id().to_string()),
            Err(error) => Head::Unreadable(error.message().to_owned()),
        }
    }

    fn loss(
        &self,
        folder: &Path,
        head: &Head,
        holders: &Holders,
    ) -> Result<Option<Loss>, InventoryError> {
        if !salvage::places(&folder.join(salvage::FOLDER)).is_empty() {
            return Ok(Some(Loss::Salvage));
        }
        let Head::Detached(commit) = head else {
            return Ok(None);
        };
        let commit = Oid::from_str(commit).map_err(InventoryError::git("read HEAD"))?;
        let is_held = holders.of_commit(&self.git, commit)?.is_some();
        Ok((!is_held).then_some(Loss::Commits))
    }
}

/// Reads which branch a rebase or bisection goes back to: HEAD is off it until
/// then, and it is in use all the same.
fn returns_to(folder: &Path) -> Option<String> {
    let records = [
        "rebase-merge/head-name",
        "rebase-apply/head-name",
        "BISECT_START",
    ];
    let texts = records.map(|record| fs::read_to_string(folder.join(record)).ok());
    let text = texts.into_iter().flatten().next()?;
    let name = text.trim();
    Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned())
}

/// Reads where a registration's worktree is.
fn place_of(folder: &Path) -> Option<PathBuf> {
    let link = fs::read_to_string(folder.join("gitdir")).ok()?;
    // Newer gits may write it relative to the registration.
    let link = folder.join(link.trim());
    link.parent().map(Path::to_path_buf)
}

/// Returns whether a worktree's `.git` file names its registration.
fn is_linked_to(place: &Path, folder: &Path) -> bool {
    let read = || -> io::Result<bool> {
        let text = fs::read_to_string(place.join(".git"))?;
        let link = text.trim().strip_prefix("gitdir:").unwrap_or_default();
        let link = fs::canonicalize(place.join(link.trim()))?;
        Ok(link == fs::canonicalize(folder)?)
    };
    read().unwrap_or(false)
}

/// Takes trailing slashes and dots out of a path, as far as it can be
/// determined without the file system.
fn components(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.components().collect())
}

impl Inventory {
    fn look_at_session(&self, found: &mut Worktree) {
        let Some(main) = self.git.workdir() else {
            return;
        };
        let main = fs::canonicalize(main).unwrap_or_else(|_| main.to_path_buf());
        let place = fs::canonicalize(&found.path).unwrap_or_else(|_| found.path.clone());
        match projection::read_session(&LaneState::at(&main, &place).session) {
            Ok(Some(session)) if session.state == SessionState::Active => {
                found.step = session.step.map(|step| CutStep {
                    step_id: step.step_id,
                    issue: step.issue_id,
                    generation: step.generation,
                });
            }
            Ok(_) => {}
            Err(error) => found.session_fault = Some(chain(&error)),
        }
    }
}
