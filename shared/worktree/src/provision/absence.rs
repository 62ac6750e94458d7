//! Files of the main worktree that new lanes do not have.

use super::{Provision, ProvisionError};
use crate::tree::Tree as TreeView;
use git2::{ObjectType, Repository, Tree};
use premath_kernel::policy::program::Absence;
use std::path::Path;

/// The operation that messages name.
const LOOK: &str = "read the commit that lanes begin at";

impl Provision {
    /// Returns why lanes will not have a file of the main worktree; `None` where they
    /// may have it, or where it is not there. A file in HEAD counts as theirs: the
    /// target may follow it when the batch begins.
    ///
    /// # Errors
    ///
    /// [`ProvisionError`] where a commit cannot be read.
    pub fn absence_of(&self, path: &Path) -> Result<Option<Absence>, ProvisionError> {
        if !self.repository.join(path).is_file() {
            return Ok(None);
        }
        let git = Repository::open(&self.repository)
            .map_err(ProvisionError::git("open the repository"))?;
        let start = self.start(&git)?;
        let head = git.head().and_then(|head| head.peel_to_commit()).ok();
        for commit in std::iter::once(start).chain(head.map(|head| head.id())) {
            let tree = git.find_commit(commit).and_then(|commit| commit.tree());
            if may_have(&tree.map_err(ProvisionError::git(LOOK))?, path) {
                return Ok(None);
            }
        }
        // The rules may be what a step left: they are read as those of a lane are.
        let ignored = TreeView::open(&self.repository).and_then(|main| main.ignored_files());
        let is_ignored =
            ignored.is_ok_and(|files| files.paths().any(|ignored| path.starts_with(ignored)));
        Ok(Some(match is_ignored {
            true => Absence::Ignored,
            false => Absence::Uncommitted,
        }))
    }
}

/// Returns whether a checkout of a tree may have a path: as an entry, or below a link
/// or a submodule.
fn may_have(tree: &Tree<'_>, path: &Path) -> bool {
    path.ancestors()
        .filter(|above| !above.as_os_str().is_empty())
        .any(|above| {
            let entry = tree.get_path(above);
            entry.is_ok_and(|entry| above == path || entry.kind() != Some(ObjectType::Tree))
        })
}
