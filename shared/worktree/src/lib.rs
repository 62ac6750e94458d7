//! What the harness does with git: a lane's worktree, its branches, and the
//! branch that work lands on.
//!
//! Invariant: no process is started here, and no file of anybody's checkout is
//! touched but the lane's own.

pub mod landing;
pub mod tree;
