//! Every branch and reference of the harness, for an uninstallation.

use super::{Inventory, InventoryError, Targets};
use crate::provision::is_branch_of_lane;
use crate::reference_deletion::delete;
use crate::tree::index_file;
use git2::{ErrorCode, Oid, Repository};
use premath_kernel::policy::inventory::{Role, role};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The folder of the references that are not branches.
const REFERENCES: &str = "refs/harness/";
/// The folder of branches.
const BRANCHES: &str = "refs/heads/";

/// A reference of the harness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnRef {
    /// Its full name.
    pub name: String,
    /// The object that it is at.
    pub tip: String,
    /// Whether a reference that is not the harness's has all of its commits too.
    pub is_elsewhere: bool,
}

/// Returns whether the harness makes references of this name. A branch that it did
/// not make, or that it moved aside for its owner, is not its own.
fn is_own(name: &str) -> bool {
    let Some(branch) = name.strip_prefix(BRANCHES) else {
        return name.starts_with(REFERENCES);
    };
    let role = role(branch, &Targets::new());
    matches!(role, Some(Role::Target | Role::Step { .. } | Role::Salvage))
        || is_branch_of_lane(branch)
}

/// Returns whether references that are not the harness's have all commits of one
/// that is.
fn is_elsewhere(git: &Repository, tip: Oid, others: &[Oid]) -> Result<bool, git2::Error> {
    let mut walk = git.revwalk()?;
    walk.push(tip)?;
    for other in others {
        walk.hide(*other)?;
    }
    Ok(walk.next().is_none())
}

impl Inventory {
    /// Lists the branches and references of the harness, by name.
    ///
    /// # Errors
    ///
    /// [`InventoryError::Git`].
    pub fn own_refs(&self) -> Result<Vec<OwnRef>, InventoryError> {
        let list = || -> Result<Vec<OwnRef>, git2::Error> {
            let (mut own, mut others) = (Vec::new(), Vec::new());
            for reference in self.git.references()? {
                let reference = reference?;
                let (Ok(name), commit) = (reference.name(), reference.peel_to_commit()) else {
                    continue;
                };
                match (is_own(name), reference.target()) {
                    (true, Some(tip)) => own.push((name.to_owned(), tip, commit.is_ok())),
                    // A symbolic one has no commits of its own, and stays.
                    (_, None) => {}
                    (false, Some(_)) => others.extend(commit.ok().map(|commit| commit.id())),
                }
            }
            own.sort();
            let own = own.into_iter().map(|(name, tip, is_commit)| {
                Ok(OwnRef {
                    name,
                    tip: tip.to_string(),
                    is_elsewhere: !is_commit || is_elsewhere(&self.git, tip, &others)?,
                })
            });
            own.collect()
        };
        list().map_err(InventoryError::git("list the references"))
    }

    /// Deletes a reference of the harness that is still where it was.
    ///
    /// # Errors
    ///
    /// [`InventoryError`]; one that moved or is checked out stays.
    pub fn remove_ref(&self, own: &OwnRef) -> Result<(), InventoryError> {
        let reference = match self.git.find_reference(&own.name) {
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(()),
            found => found.map_err(InventoryError::git("find the reference"))?,
        };
        let is_there = reference
            .target()
            .is_some_and(|tip| tip.to_string() == own.tip);
        if !is_own(&own.name) || !is_there {
            return Err(InventoryError::Changed {
                name: own.name.clone(),
            });
        }
        match own.name.strip_prefix(BRANCHES) {
            Some(branch) => self.delete_branch(branch, &own.tip),
            None => {
                delete(&self.git, reference).map_err(InventoryError::git("delete the reference"))
            }
        }
    }

    /// Returns whether git tracks a file of the main worktree, or anything in a
    /// folder of it.
    ///
    /// # Errors
    ///
    /// [`InventoryError::Git`].
    pub fn is_tracked(&self, path: &Path) -> Result<bool, InventoryError> {
        let Some(within) = self
            .git
            .workdir()
            .and_then(|root| path.strip_prefix(root).ok())
        else {
            return Ok(false);
        };
        let index = index_file::open_of(&self.git);
        let index = index.map_err(InventoryError::git("read the index"))?;
        let is_below = |entry: &[u8]| {
            let rest = entry.strip_prefix(within.as_os_str().as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        Ok(index.iter().any(|entry| is_below(&entry.path)))
    }
}
