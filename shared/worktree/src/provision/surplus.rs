//! Worktrees that the harness made and nobody wants any more.

use super::lane::{branch_of, folder_of, held_elsewhere, locked, prune, registered, same_place};
use super::{Fate, Outcome, is_provisioned};
use crate::tree::Tree;
use git2::{Repository, Worktree, WorktreePruneOptions};
use premath_memory::WorktreeLock;
use std::path::PathBuf;
use std::time::Duration;

/// Removes what the harness made beside the lanes that are wanted.
pub(super) fn cleared(git: &Repository, wanted: &[PathBuf]) -> Vec<Outcome> {
    registered(git)
        .into_iter()
        .filter(|worktree| is_provisioned(&folder_of(git, worktree)))
        .filter(|worktree| !wanted.iter().any(|lane| same_place(lane, worktree.path())))
        .map(|worktree| Outcome {
            fate: removed(git, &worktree).map_or_else(Fate::Surplus, |()| Fate::Removed),
            worktree: worktree.path().to_path_buf(),
        })
        .collect()
}

/// Removes a worktree that holds nothing of its own; says why it stays.
fn removed(git: &Repository, worktree: &Worktree) -> Result<(), String> {
    let path = worktree.path();
    if let Some(reason) = locked(worktree) {
        return Err(format!("it is locked{reason}"));
    }
    if !path.exists() {
        return prune(worktree);
    }
    // Held until it is gone: nobody begins to work in it.
    let _lock = WorktreeLock::acquire(path, Duration::ZERO).map_err(|error| error.to_string())?;
    let tree = Tree::open(path).map_err(|error| error.to_string())?;
    let changes = tree.changes().map_err(|error| error.to_string())?;
    if let Some(first) = changes.first() {
        return Err(format!("it holds changes, such as {first}"));
    }
    let base = tree.base().map_err(|error| error.to_string())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let own = format!("refs/heads/{}", branch_of(&name));
    let is_held = git2::Oid::from_str(&base.commit)
        .and_then(|commit| held_elsewhere(git, &own, commit))
        .map_err(|error| error.message().to_owned())?;
    if !is_held {
        return Err("it holds commits that no branch has".to_owned());
    }
    let salvage = tree.git_folder().join("premath-salvage");
    if salvage.exists() {
        return Err(format!("work is kept in {}", salvage.display()));
    }
    let mut options = WorktreePruneOptions::new();
    worktree
        .prune(Some(options.valid(true).working_tree(true)))
        .map_err(|error| error.message().to_owned())?;
    if let Ok(mut branch) = git.find_reference(&own) {
        let _ = branch.delete();
    }
    Ok(())
}
