//! `premath doctor`, `premath clean` and `premath uninstall`, on repositories with one thing wrong.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot continue ends, and says where"
)]

#[path = "../answer/mod.rs"]
mod answer;
mod command;
mod file;
mod gone;
mod landed;
mod memory;
mod scratch;
mod uninstall;
mod worktree;
