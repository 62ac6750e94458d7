//! What was judged removable is removed, if it still is as it was then.

use super::{Inventory, InventoryError, checkout, lock, salvage};
use crate::provision::{LaneWork, clear_lane};
use crate::reference_deletion::{delete, delete_by};
use crate::removal::{self, Guard, Occupant, occupant, parent_of};
use git2::{BranchType, ErrorCode, Repository};
use premath_kernel::policy::inventory::{GitLockFile, Thing, role};
use premath_memory::roots::LaneState;
use premath_memory::{CacheLock, LockState, WorktreesLock, lane_lock, leftover};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long another harness that makes worktrees is waited for.
const WAIT: Duration = Duration::from_secs(10);

impl Inventory {
    /// Removes a thing. One that is already gone is not an error.
    ///
    /// # Errors
    ///
    /// [`InventoryError`]; a branch or mark that moved, a worktree that came
    /// back and a lock that was touched stay.
    pub fn remove(&self, thing: &Thing) -> Result<(), InventoryError> {
        self.remove_with(thing, LaneWork::Kept)
    }

    /// Removes a thing as [`Inventory::remove`] does; a lane with its commits, where
    /// that is asked for.
    ///
    /// # Errors
    ///
    /// As [`Inventory::remove`].
    pub fn remove_with(&self, thing: &Thing, work: LaneWork) -> Result<(), InventoryError> {
        match thing {
            Thing::Branch { name, tip } => self.remove_branch(name, tip),
            Thing::Mark { name, tip } => self.remove_mark(name, tip),
            Thing::Registration(name) => self.remove_registration(name),
            Thing::Lane(worktree) => {
                let root = self.git.workdir().unwrap_or(self.common_folder());
                clear_lane(root, worktree, work).map_err(|reason| InventoryError::Lane { reason })
            }
            Thing::Checkout(path) => self.remove_checkout(path),
            Thing::Lock(file) => self.remove_lock(file),
            Thing::Salvage(folder) => self.remove_salvage(folder),
            Thing::Image { folders, lock } => self.remove_image(folders, lock),
            Thing::Files(paths) => {
                let guard = self.guard()?;
                paths.iter().try_for_each(|path| {
                    leftover::refuse_locked(path)?;
                    Ok(removal::remove_owned(path, &guard)?)
                })
            }
        }
    }

    /// Removes a checkout for verifications, what the harness keeps of its lane, and
    /// the folder of checkouts where it is empty then. No lane is made meanwhile.
    fn remove_checkout(&self, path: &Path) -> Result<(), InventoryError> {
        let changed = || changed(&path.display().to_string());
        let _alone = WorktreesLock::acquire(self.common_folder(), WAIT)?;
        let main = checkout::main_of(&self.git).ok_or_else(changed)?;
        let name = path.file_name().and_then(OsStr::to_str);
        let name = name.ok_or_else(changed)?;
        let state = LaneState::named(&main, name);
        let has_lane = checkout::lanes(&main)?.contains(name);
        if state.checkout != path || has_lane || !checkout::is_ours(&state) {
            return Err(changed());
        }
        removal::remove_lane_files(&state, &self.guard()?)?;
        // A folder that has anything else in it stays.
        if let Some(above) = path.parent() {
            let _ = std::fs::remove_dir(above);
        }
        Ok(())
    }

    /// Guards the main worktree and the git folder, but not what is in them.
    fn guard(&self) -> Result<Guard, InventoryError> {
        let common = self.common_folder();
        let folders = self.git.workdir().into_iter().chain([common]);
        Guard::around(folders).map_err(|source| InventoryError::File {
            path: common.to_path_buf(),
            source,
        })
    }

    /// Removes the folders of an image, which no process can begin to use in the
    /// meantime. The lock file stays: another process may wait for it.
    fn remove_image(&self, folders: &[PathBuf], lock: &Path) -> Result<(), InventoryError> {
        let changed = |path: &Path| changed(&path.display().to_string());
        let _alone = CacheLock::try_acquire(lock)?.ok_or_else(|| changed(lock))?;
        let guard = self.guard()?;
        for folder in folders {
            if folder.parent() != lock.parent() {
                return Err(changed(folder));
            }
            removal::remove_owned(folder, &guard)?;
        }
        Ok(())
    }

    /// Removes a lock file that is still the one that was found.
    fn remove_lock(&self, file: &GitLockFile) -> Result<(), InventoryError> {
        let changed = || InventoryError::Changed {
            name: file.path.display().to_string(),
        };
        if file.path.extension() != Some(OsStr::new("lock")) {
            return Err(changed());
        }
        // Links on the way are refused.
        if let Some((parent, name)) = parent_of(&file.path)?
            && let Ok(Occupant::Folder(_)) = occupant(parent.as_fd(), name)
        {
            return Err(changed());
        }
        match lock::touched(&file.path) {
            None => Ok(()),
            Some(at) if at == file.at => Ok(removal::remove_owned(&file.path, &self.guard()?)?),
            Some(_) => Err(changed()),
        }
    }

    /// Removes `<issue>/<generation>` of a salvage folder, and the folders above
    /// it with the last one in them.
    fn remove_salvage(&self, folder: &Path) -> Result<(), InventoryError> {
        let is_place = folder
            .ancestors()
            .nth(2)
            .is_some_and(|place| place.ends_with(salvage::FOLDER));
        if !is_place {
            return Err(InventoryError::Changed {
                name: folder.display().to_string(),
            });
        }
        removal::remove_owned(folder, &self.guard()?)?;
        for empty in folder.ancestors().skip(1).take(2) {
            let Some((parent, name)) = parent_of(empty)? else {
                break;
            };
            if unlinkat(&parent, name, AtFlags::REMOVEDIR).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Deletes a branch that is at a commit. Git refuses one that is checked out.
    pub(super) fn delete_branch(&self, name: &str, tip: &str) -> Result<(), InventoryError> {
        let delete = |git: &Repository| {
            let mut branch = match git.find_branch(name, BranchType::Local) {
                Ok(branch) => branch,
                Err(error) if error.code() == ErrorCode::NotFound => return Ok(()),
                Err(error) => return Err(InventoryError::git("find the branch")(error)),
            };
            must_be(name, branch.get().target(), tip)?;
            let deleted = branch.delete();
            deleted.map_err(InventoryError::git("delete the branch"))
        };
        let reference = format!("refs/heads/{name}");
        delete_by(&self.git, &reference, |git| Ok(delete(git)))
            .map_err(InventoryError::git("open the repository"))?
    }

    fn remove_branch(&self, name: &str, tip: &str) -> Result<(), InventoryError> {
        if role(name, &super::Targets::new()).is_none() {
            return Err(changed(name));
        }
        self.delete_branch(name, tip)
    }

    fn remove_mark(&self, name: &str, tip: &str) -> Result<(), InventoryError> {
        if !name.starts_with("refs/harness/landing/") {
            return Err(changed(name));
        }
        let mark = match self.git.find_reference(name) {
            Ok(mark) => mark,
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(()),
            Err(error) => return Err(InventoryError::git("find the mark")(error)),
        };
        must_be(name, mark.target(), tip)?;
        delete(&self.git, mark).map_err(InventoryError::git("delete the mark"))
    }

    fn remove_registration(&self, name: &str) -> Result<(), InventoryError> {
        let registrations: PathBuf = self.common_folder().join("worktrees");
        let failed = |source: std::io::Error| InventoryError::File {
            path: registrations.join(name),
            source,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let above = openat(CWD, &registrations, flags, Mode::empty())
            .map_err(|errno| failed(errno.into()))?;
        match occupant(above.as_fd(), OsStr::new(name)).map_err(failed)? {
            Occupant::Nothing => return Ok(()),
            Occupant::Other => return Err(changed(name)),
            Occupant::Folder(_) => {}
        }
        let folder = registrations.join(name);
        if let LockState::Held(_) = lane_lock(&folder)? {
            return Err(changed(name));
        }
        let is_prunable = self
            .git
            .find_worktree(name)
            .and_then(|worktree| worktree.is_prunable(None))
            .map_err(InventoryError::git("look at the worktree"))?;
        if !is_prunable {
            return Err(changed(name));
        }
        removal::remove_entry(above.as_fd(), OsStr::new(name)).map_err(failed)
    }
}

fn changed(name: &str) -> InventoryError {
    InventoryError::Changed {
        name: name.to_owned(),
    }
}

fn must_be(name: &str, found: Option<git2::Oid>, tip: &str) -> Result<(), InventoryError> {
    match found {
        Some(found) if found.to_string() == tip => Ok(()),
        _ => Err(changed(name)),
    }
}
