//! What holds commits: refs that no clean-up removes because of commits that
//! are elsewhere too.

use super::{InventoryError, Targets};
use git2::{Oid, Repository};
use premath_kernel::policy::inventory::{Role, role};

/// The refs that count, the landing targets first, then by name.
pub(super) struct Holders(Vec<(String, Oid)>);

impl Holders {
    /// Takes every branch but those of steps, remote branches and tags.
    pub(super) fn of(git: &Repository, targets: &Targets) -> Result<Self, InventoryError> {
        let failed = "list the references";
        let mut found = Vec::new();
        for reference in git.references().map_err(InventoryError::git(failed))? {
            let reference = reference.map_err(InventoryError::git(failed))?;
            let (Ok(name), Ok(commit)) = (reference.name(), reference.peel_to_commit()) else {
                continue;
            };
            let (rank, name) = if let Some(branch) = name.strip_prefix("refs/heads/") {
                match role(branch, targets) {
                    Some(Role::Step { .. }) => continue,
                    Some(Role::Target) => (0, branch),
                    Some(Role::Salvage | Role::Moved | Role::Other) => (3, branch),
                    None => (1, branch),
                }
            } else if let Some(remote) = name.strip_prefix("refs/remotes/") {
                (2, remote)
            } else if let Some(tag) = name.strip_prefix("refs/tags/") {
                (2, tag)
            } else {
                continue;
            };
            found.push((rank, name.to_owned(), commit.id()));
        }
        found.sort();
        let holders = found.into_iter().map(|(_, name, tip)| (name, tip));
        Ok(Self(holders.collect()))
    }

    /// Names what holds a commit and all before it.
    pub(super) fn of_commit(
        &self,
        git: &Repository,
        commit: Oid,
    ) -> Result<Option<String>, InventoryError> {
        let failed = "compare commits";
        let mut walk = git.revwalk().map_err(InventoryError::git(failed))?;
        walk.push(commit).map_err(InventoryError::git(failed))?;
        for (_, tip) in &self.0 {
            walk.hide(*tip).map_err(InventoryError::git(failed))?;
        }
        if walk.next().is_some() {
            return Ok(None);
        }
        for (name, tip) in &self.0 {
            let is_ancestor = git.graph_descendant_of(*tip, commit);
            if *tip == commit || is_ancestor.map_err(InventoryError::git(failed))? {
                return Ok(Some(name.clone()));
            }
        }
        Ok(None)
    }
}
