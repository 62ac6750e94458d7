//! Files of the main worktree that new lanes do not have.

use super::{Provision, ProvisionError};
use git2::{ObjectType, Repository, Tree};
use std::path::Path;

/// The operation that messages name.
const LOOK: &str = "read the commit that lanes begin at";

/// Why lanes do not have a file of the main worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// It is not committed.
    Uncommitted,
    /// Git ignores it. A build may make it in lanes too.
    Ignored,
}

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
        let is_ignored = git
            .is_path_ignored(path)
            .map_err(ProvisionError::git(LOOK))?;
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
