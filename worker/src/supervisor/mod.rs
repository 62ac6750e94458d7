//! One small process a lane, which owns everything the lane runs.
//!
//! The lane holds a [`Supervisor`]; behind it runs [`hidden_mode`], of
//! whichever of our binaries the harness is, in a process of its own. That
//! process starts the commands, bounds and digests what they print, keeps their
//! limits, and leaves nothing of them behind. Its end of the control socket is
//! how it learns that the harness is gone, whatever the reason: it kills what
//! runs, and only then releases the lane's worktree lock.
//!
//! A command has the rights to stop or kill its supervisor. The lane therefore
//! keeps a clock of its own (`Supervisor::PATIENCE`), and kills what a
//! supervisor that hangs or has ended left behind.
//!
//! Invariants:
//!
//! - An [`Exit`] is sent only when no process of the command is left that the
//!   supervisor could end; the rest is counted in [`Exit::survivors`].
//! - The lock descriptor is never inherited by a command, so the lock is free
//!   exactly when the supervisor has ended.
//! - There is no runtime in the supervisor process: one poll loop, one child at
//!   a time. Its only other thread confines itself, starts a confined command
//!   and ends; the supervisor itself is never confined.
//! - Nothing that the harness opened reaches a command, its output goes through
//!   pipes: its environment is the list it was given and [`MARKER`], its input
//!   is `/dev/null`, and it has no terminal to ask anything of.

mod client;
mod command;
pub mod confine;
mod descendants;
mod job;
mod message;
mod orphans;
mod process;
mod stream;
mod usage;

pub use client::{Running, Supervisor, SupervisorError};
pub use command::{CommandSpec, shell};
pub use message::{Exit, ExitCause, Resource, SpawnFailure, StreamReport};
pub use orphans::MARKER;
pub use usage::Ceilings;

use std::process::ExitCode;

/// The first argument that turns a binary of ours into a lane's supervisor.
pub const MODE: &str = "supervise-lane";

/// Runs this process in a hidden mode, if its first argument names one: as the
/// supervisor of a lane, or as a process that confines a command. Every binary
/// that opens a lane or tries a sandbox begins with this.
pub fn hidden_mode() -> Option<ExitCode> {
    let mode = std::env::args_os().nth(1)?;
    match mode.to_str()? {
        MODE => Some(process::main()),
        premath_hook::MODE => Some(premath_hook::main(std::env::args_os().skip(2))),
        mode => confine::namespaces::main(mode),
    }
}
