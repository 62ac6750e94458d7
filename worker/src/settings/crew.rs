//! The flags on the lanes of a batch, of `harness-coordinator` and `premath plan`.

use std::path::PathBuf;

/// Which lanes a batch has, and how long they continue.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct CrewFlags {
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
}

/// The prefix of worker ids where none is given.
const DEFAULT_PREFIX: &str = "worker";

impl CrewFlags {
    /// Returns the prefix of worker ids: the given one, or that of the file.
    pub fn prefix<'a>(&'a self, of_file: Option<&'a str>) -> &'a str {
        let given = self.worker_prefix.as_deref();
        given.or(of_file).unwrap_or(DEFAULT_PREFIX)
    }

    /// Returns how many dispatches a lane gets; `None` without a bound.
    pub fn rounds(&self, of_file: Option<u64>) -> Option<u64> {
        self.rounds.or(of_file).filter(|_| !self.until_done)
    }

    /// Returns how many attempts a dispatch has.
    pub fn steps_per_dispatch(&self, of_file: Option<u64>) -> u64 {
        self.max_steps_per_worker.or(of_file).unwrap_or(1).max(1)
    }
}
