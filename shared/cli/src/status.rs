//! `premath status`: how the batches of a repository are.

use crate::answer::{Answer, Finished, put_again};
use crate::error::CliError;
use crate::exit;
use crate::paths;
use crate::terminal::columns;
use clap::Args;
use harness_worker::stderr::local_zone;
use premath_kernel::issue::Selection;
use premath_kernel::issue::lease::AssigneeRule;
use premath_kernel::json::time::Moment;
use premath_kernel::record::live::{LiveBatch, LiveQueue, QueueScope};
use premath_memory::live::{LiveFolder, store_stamp};
use premath_memory::roots::MemoryRoots;
use premath_memory::{IssueMemory, clock};
use premath_view::figures::Viewer;
use premath_view::metrics::metrics;
use premath_view::status::{StatusView, lines};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// How often a watched status is looked at.
const AGAIN: Duration = Duration::from_secs(1);

/// Arguments of `premath status`.
///
/// The figures are those that a running batch publishes, once a second at most. A
/// figure that is not known is `unknown`, `?` in a column, and null with `--json`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Use the repository that contains this folder [default: .]
    #[arg(long, value_name = "DIR")]
    repo_root: Option<PathBuf>,
    /// Show it again every second until interrupted
    #[arg(long)]
    watch: bool,
    /// Print the figures as metrics of Prometheus
    #[arg(long, conflicts_with_all = ["watch", "width"])]
    metrics: bool,
    /// Use lines of this many columns [default: those of the terminal, or 120]
    #[arg(long, value_name = "COLUMNS")]
    width: Option<u16>,
}

impl StatusArgs {
    pub(crate) fn run(self) -> Finished {
        self.look()
    }

    /// Shows the status until it is interrupted; `None` where it is to be shown
    /// once. With `json` each is a line.
    pub(crate) fn watch(&self, json: bool) -> Option<ExitCode> {
        if !self.watch {
            return None;
        }
        loop {
            match put_again(self.look(), json) {
                Ok(true) => std::thread::sleep(AGAIN),
                Ok(false) => return Some(ExitCode::from(exit::OK)),
                Err(code) => return Some(code),
            }
        }
    }

    fn look(&self) -> Finished {
        let folder = self.repo_root.as_deref().unwrap_or(Path::new("."));
        let roots = match MemoryRoots::discover(folder) {
            Ok(roots) => roots,
            Err(error) => return Finished::new("status", Err(error.into())),
        };
        Finished::on("status", "issuesPath", Ok(roots.issues.clone()), |_| {
            let view = current(&roots, || paths::open(&roots.issues, false))?;
            let viewer = Viewer {
                now: clock::now().wall,
                zone: local_zone(),
                width: columns(self.width),
            };
            if self.metrics {
                let name = roots.repository.file_name().unwrap_or_default();
                let text = metrics(&view, &name.to_string_lossy());
                return Ok(Answer::new(view, text));
            }
            let text = lines(&view, &viewer).join("\n");
            Ok(Answer::new(view, format!("{text}\n")))
        })
    }
}

/// Looks at how the batches of a repository are; `open` opens its issue store,
/// where issues are to be counted.
///
/// # Errors
///
/// What is published, or the issue store, cannot be read.
pub(crate) fn current<M: Deref<Target = IssueMemory>>(
    roots: &MemoryRoots,
    open: impl FnOnce() -> Result<M, CliError>,
) -> Result<StatusView, CliError> {
    status(roots, clock::now(), |roots, last| queue(roots, last, open))
}

/// Returns how the batches of a repository are; where none runs, with its issues as
/// `count` counts them.
///
/// # Errors
///
/// What is published cannot be read, or what `count` returns.
pub(crate) fn status(
    roots: &MemoryRoots,
    now: Moment,
    count: impl FnOnce(&MemoryRoots, Option<&LiveBatch>) -> Result<LiveQueue, CliError>,
) -> Result<StatusView, CliError> {
    let published = LiveFolder::of(roots).read()?;
    let runs = published.iter().any(is_running);
    let queue = match runs {
        true => None,
        false => Some(count(roots, published.first())?),
    };
    Ok(StatusView::of(&published, &is_alive, queue, now))
}

/// Returns whether the process of a batch runs, as far as can be seen.
pub(crate) fn is_alive(live: &LiveBatch) -> bool {
    let here = clock::this_process();
    live.holder.may_live(here.as_ref(), &clock::life)
}

/// Returns whether a batch runs.
pub(crate) fn is_running(live: &LiveBatch) -> bool {
    live.ended_at.is_none() && is_alive(live)
}

/// Counts the issues of a store that no batch works on: as the last one counted
/// them, where the file is as it was.
pub(crate) fn queue<M: Deref<Target = IssueMemory>>(
    roots: &MemoryRoots,
    last: Option<&LiveBatch>,
    open: impl FnOnce() -> Result<M, CliError>,
) -> Result<LiveQueue, CliError> {
    let stamp = store_stamp(&roots.issues);
    if let Some(counted) = last.and_then(|last| last.queue.as_ref())
        && counted.store.is_some()
        && counted.store == stamp
    {
        return Ok(counted.clone());
    }
    if stamp.is_none() {
        return Ok(LiveQueue::default());
    }
    let memory = open()?;
    let (selection, left_out) = (Selection::default(), BTreeSet::new());
    let scope = QueueScope {
        selection: &selection,
        assignees: &AssigneeRule::Unassigned,
        left_out: &left_out,
        now: clock::now().wall,
    };
    let counted = memory.view(|view| {
        let issues = view.rows().map(|row| &row.issue);
        LiveQueue::count(issues, view.graph(), &scope)
    })?;
    Ok(counted)
}
