//! The flags on the lanes of a batch, of `harness-coordinator` and `premath plan`.

use super::{CoordinatorTable, SettingsError};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use premath_kernel::policy::until::Until;
use premath_kernel::policy::window::DayWindow;
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
    /// Set when the batch ends: done, idle or forever [default: done]
    ///
    /// `done` ends when no issue can run any more, also not after its retry time.
    /// `idle` ends as soon as nothing runs and no issue is ready. `forever` waits for
    /// new issues until the batch is drained or stopped.
    #[arg(long, value_name = "WHEN", conflicts_with = "until_done")]
    pub until: Option<Until>,
    /// Start attempts only between these local times, as 22:00-07:00
    ///
    /// Running attempts finish. Outside of the window the batch waits until it opens.
    /// At the end of the window the batch ends, or with `--until forever` waits again.
    #[arg(long, value_name = "HOURS")]
    pub window: Option<DayWindow>,
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

    /// Returns how many dispatches a lane gets; `None` without a bound. The number
    /// of the file does not hold where a flag says when the batch ends.
    pub fn rounds(&self, of_file: Option<u64>) -> Option<u64> {
        let of_file = of_file.filter(|_| !self.until_done && self.until.is_none());
        self.rounds.or(of_file)
    }

    /// Returns when the batch ends where nothing is left to do.
    pub fn until(&self, file: &CoordinatorTable) -> Until {
        match self.until_done {
            true => Until::Done,
            false => self.until.or(file.until).unwrap_or_default(),
        }
    }

    /// Returns the hours in which attempts begin.
    pub fn window(&self, file: &CoordinatorTable) -> Option<DayWindow> {
        self.window.or(file.window)
    }

    /// Returns when the batch ends by its window, by this machine's clocks.
    ///
    /// # Errors
    ///
    /// [`SettingsError::Value`] where the time zone is not known.
    pub fn window_end(
        &self,
        file: &CoordinatorTable,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, SettingsError> {
        let Some(window) = self.window(file) else {
            return Ok(None);
        };
        let zone = TimeZone::try_system().map_err(|error| SettingsError::Value {
            name: "--window",
            detail: format!("cannot determine the time zone ({error}); set TZ"),
        })?;
        let ends = self.until(file) != Until::Forever;
        Ok(ends.then(|| window.closes_next(&now.to_zoned(zone))))
    }

    /// Returns how many attempts a dispatch has.
    pub fn steps_per_dispatch(&self, of_file: Option<u64>) -> u64 {
        self.max_steps_per_worker.or(of_file).unwrap_or(1).max(1)
    }
}
