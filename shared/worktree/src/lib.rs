//! What the harness does with git: a lane's worktree, its branches, and the
//! branch that work lands on.
//!
//! Invariant: no process is started here, and no file of anybody's checkout is
//! touched but the lane's own.

#![warn(clippy::too_many_lines)]

pub mod checkout;
pub mod diff;
mod entry_lookup;
mod file_stamp;
pub mod governing;
pub mod history;
mod index_entry;
pub mod inventory;
pub mod landing;
mod merged_index;
mod mode;
pub mod ownership;
mod packed_refs;
pub mod provision;
mod reference_deletion;
mod reference_write;
pub mod removal;
pub mod setup;
pub mod signing;
pub mod tree;

use git2::{Repository, Signature};

/// Returns who commits: the person of git's configuration, where there is one.
fn signature(repository: &Repository) -> Result<Signature<'static>, git2::Error> {
    repository.signature().or_else(|_| harness_signature())
}

/// Returns who commits where git's configuration names no person.
fn harness_signature() -> Result<Signature<'static>, git2::Error> {
    Signature::now("Premath Harness", "premath-harness@localhost")
}
