//! The command line of `harness-coordinator`.

use clap::{Parser, Subcommand};
use harness_worker::settings::{CrewFlags, LoopFlags};
use std::path::PathBuf;

/// Run a batch: work on ready issues in several git worktrees
///
/// Exit codes: 0 every attempted issue succeeded, or none was ready; 1 at least
/// one failed, or a lane was disabled; 2 usage error, invalid configuration, or
/// unreadable input; 3 refused before dispatch (dependency cycle, policy
/// mismatch, startup verification); 4 issue store or trajectory became
/// unusable; 130/143 interrupted and drained.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// The command other than the loop.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The flags that both loops take.
    #[command(flatten)]
    pub flags: LoopFlags,
    /// Its lanes.
    #[command(flatten)]
    pub crew: CrewFlags,
    /// Print what the batch would do, and change nothing
    ///
    /// The lanes with their first issues, the order of the others, what would never
    /// run and why, the settings in force, and an estimate from earlier attempts.
    /// `premath plan` prints the same. With --json it is one document. Exit code 3
    /// if the batch would be refused.
    #[arg(long)]
    pub dry_run: bool,
    /// Print events as JSON lines on stdout
    #[arg(long)]
    pub json: bool,
    /// Print only the report at the end
    ///
    /// Warnings and errors are printed on stderr as always.
    #[arg(long, conflicts_with = "json")]
    pub quiet: bool,
    /// Print lines, also on a terminal
    ///
    /// Without it a terminal shows the live view, unless --json or --quiet is given, TERM is
    /// `dumb`, or NO_COLOR, CI or PREMATH_LOG is set.
    #[arg(long)]
    pub plain: bool,
}

/// A command other than the loop.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a small repository and run a batch on it
    Example {
        /// Create this folder [default: a temporary one]
        dir: Option<PathBuf>,
        /// Print events as JSON lines on stdout
        #[arg(long)]
        json: bool,
    },
}
