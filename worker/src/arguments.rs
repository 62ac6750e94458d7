//! The command line of `harness-worker`.

use crate::gate::GateArgs;
use crate::settings::LoopFlags;
use clap::{Parser, Subcommand};
use premath_kernel::json::id::WorkerName;
use std::path::PathBuf;

/// Work on ready issues in one git worktree
///
/// Exit codes: 0 every attempted issue succeeded or none was ready, 1 at least
/// one failed, 2 usage error or unreadable input, 3 refused before any change,
/// 4 issue store or trajectory became unusable, 130/143 interrupted and
/// drained.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// The command other than the loop.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The flags that both loops take.
    #[command(flatten)]
    pub flags: LoopFlags,
    /// Work in this worktree
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub worktree_root: PathBuf,
    /// Set the worker's id
    #[arg(
        long,
        value_name = "ID",
        env = "PREMATH_WORKER_ID",
        default_value = "worker.1"
    )]
    pub worker_id: WorkerName,
    /// Set the number of this lane among those that share the machine
    #[arg(long, value_name = "N", env = "PREMATH_LANE_INDEX", default_value_t = 1,
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub lane_index: usize,
    /// Limit the number of attempts
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub max_steps: u64,
    /// Print one JSON document on stdout at the end
    #[arg(long)]
    pub json: bool,
}

/// A command other than the loop.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[expect(missing_docs, reason = "the help is that of its arguments")]
    Gate(GateArgs),
}
