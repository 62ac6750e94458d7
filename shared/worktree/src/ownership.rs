//! Which worktrees the harness made.

use std::path::Path;

/// The file in a worktree's git folder that says that the harness made it.
pub(crate) const MARK: &str = "premath-provisioned";

/// Returns whether the harness made the worktree of a git folder.
pub fn is_provisioned(git_folder: &Path) -> bool {
    git_folder.join(MARK).exists()
}
