//! What was judged removable is taken away, if it still is as it was then.

use super::{Inventory, InventoryError, lock, salvage};
use git2::{BranchType, ErrorCode};
use premath_kernel::inventory::{LockFile, Thing};
use premath_memory::{Hold, lane_lock, leftover};
use std::fs;
use std::io;
use std::path::Path;

impl Inventory {
    /// Takes a thing away; one that is gone already is fine.
    ///
    /// # Errors
    ///
    /// [`InventoryError`]; a branch or mark that moved, a worktree that came
    /// back and a lock that was touched stay.
    pub fn remove(&self, thing: &Thing) -> Result<(), InventoryError> {
        match thing {
            Thing::Branch { name, tip } => self.remove_branch(name, tip),
            Thing::Mark { name, tip } => self.remove_mark(name, tip),
            Thing::Registration(name) => self.remove_registration(name),
            Thing::Lock(file) => remove_lock(file),
            Thing::Salvage(folder) => remove_salvage(folder),
            Thing::Files(paths) => paths
                .iter()
                .try_for_each(|path| Ok(leftover::remove(path)?)),
        }
    }

    fn remove_branch(&self, name: &str, tip: &str) -> Result<(), InventoryError> {
        let mut branch = match self.git.find_branch(name, BranchType::Local) {
            Ok(branch) => branch,
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(()),
            Err(error) => return Err(InventoryError::git("find the branch")(error)),
        };
        must_be(name, branch.get().target(), tip)?;
        // Git refuses where it is checked out, or moved since it was read.
        branch
            .delete()
            .map_err(InventoryError::git("delete the branch"))
    }

    fn remove_mark(&self, name: &str, tip: &str) -> Result<(), InventoryError> {
        let mut mark = match self.git.find_reference(name) {
            Ok(mark) => mark,
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(()),
            Err(error) => return Err(InventoryError::git("find the mark")(error)),
        };
        must_be(name, mark.target(), tip)?;
        mark.delete()
            .map_err(InventoryError::git("delete the mark"))
    }

    fn remove_registration(&self, name: &str) -> Result<(), InventoryError> {
        let folder = self.common_folder().join("worktrees").join(name);
        if let Hold::Held(_) = lane_lock(&folder)? {
            return Err(InventoryError::Changed {
                name: name.to_owned(),
            });
        }
        if !folder.is_dir() {
            return Ok(());
        }
        // Git refuses one that is valid or locked.
        self.git
            .find_worktree(name)
            .and_then(|worktree| worktree.prune(None))
            .map_err(InventoryError::git("prune the worktree"))
    }
}

fn must_be(name: &str, found: Option<git2::Oid>, tip: &str) -> Result<(), InventoryError> {
    match found {
        Some(found) if found.to_string() == tip => Ok(()),
        _ => Err(InventoryError::Changed {
            name: name.to_owned(),
        }),
    }
}

fn remove_lock(file: &LockFile) -> Result<(), InventoryError> {
    match lock::touched(&file.path) {
        None => Ok(()),
        Some(at) if at == file.at => match fs::remove_file(&file.path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(InventoryError::File {
                path: file.path.clone(),
                source,
            }),
            _ => Ok(()),
        },
        Some(_) => Err(InventoryError::Changed {
            name: file.path.display().to_string(),
        }),
    }
}

fn remove_salvage(folder: &Path) -> Result<(), InventoryError> {
    leftover::remove(folder)?;
    // The folders above go with the last one in them.
    let above = folder.ancestors().skip(1);
    for parent in above.take_while(|parent| !parent.ends_with(".git")) {
        if fs::remove_dir(parent).is_err() || parent.ends_with(salvage::FOLDER) {
            break;
        }
    }
    Ok(())
}
