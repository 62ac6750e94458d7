//! `premath doctor`, `clean`, `uninstall` and others, on repositories with one thing wrong.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot continue ends, and says where"
)]

#[path = "../answer/mod.rs"]
mod answer;
mod audit;
mod command;
mod file;
mod gone;
mod landed;
mod memory;
mod scratch;
mod uninstall;
mod worktree;
