//! The command line of `harness-coordinator`.

use clap::{Parser, Subcommand};
use harness_worker::settings::LoopFlags;
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
    /// Use this worktree as a lane (repeatable)
    ///
    /// `--worktree-root` is the name of the same flag of `harness-worker`.
    /// [default: $PREMATH_WORKTREES, comma-separated]
    #[arg(long, visible_alias = "worktree-root", value_name = "DIR")]
    pub worktree: Vec<PathBuf>,
    /// Create N lanes
    ///
    /// They are created in the folder `root` of `[worktrees]`. [default:
    /// ../{repo}-lanes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000), conflicts_with = "worktree")]
    pub lanes: Option<u16>,
    /// Limit the dispatches per lane
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: Option<u64>,
    /// Run until no issue is ready, waiting or running (default without
    /// --rounds)
    #[arg(long, conflicts_with = "rounds")]
    pub until_done: bool,
    /// Set the prefix of worker ids [default: worker]
    #[arg(long, value_name = "PREFIX")]
    pub worker_prefix: Option<String>,
    /// Limit the attempts per dispatch [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_steps_per_worker: Option<u64>,
    /// Start a new batch instead of resuming the interrupted one
    #[arg(long)]
    pub new_batch: bool,
    /// Print events as JSON lines on stdout
    #[arg(long)]
    pub json: bool,
    /// Print only the report at the end
    ///
    /// Warnings and errors are printed on stderr as always.
    #[arg(long, conflicts_with = "json")]
    pub quiet: bool,
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
