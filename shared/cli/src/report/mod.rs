//! `premath report`: what batches did, from the run log and the witnesses.

mod gather;

pub(crate) use gather::Sources;

use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::paths;
use crate::terminal::{columns, plain, table};
use clap::Args;
use harness_worker::stderr::local_zone;
use jiff::Timestamp;
use premath_kernel::json::id::BatchId;
use premath_kernel::json::stamp::Stamp;
use premath_memory::clock;
use premath_memory::report::{self, KeptReport};
use premath_memory::roots::MemoryRoots;
use premath_view::report::{Reader, ReportView, WhichBatches, html, lines, markdown};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Arguments of `premath report`.
///
/// The report is made from the run log, the witnesses, the issue store and git. The same files
/// give the same bytes.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Use the repository that contains this folder [default: .]
    #[arg(long, value_name = "DIR")]
    repo_root: Option<PathBuf>,
    #[command(flatten)]
    which: BatchChoice,
    /// Report on this issue alone; without a batch, over all batches
    #[arg(long, value_name = "ID")]
    issue: Option<String>,
    /// Print Markdown
    #[arg(long, conflicts_with = "html")]
    markdown: bool,
    /// Print one HTML page, without scripts
    #[arg(long)]
    html: bool,
    /// Use lines of this many columns [default: those of the terminal, or 120]
    #[arg(long, value_name = "COLUMNS")]
    width: Option<u16>,
    /// List the texts that batches saved at their end, latest first
    #[arg(long, conflicts_with_all = ["batch", "since", "issue", "markdown", "html"])]
    list: bool,
}

/// The batches that a command is about.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct BatchChoice {
    /// Take this batch [default: the last one that did work]
    #[arg(long, value_name = "ID", conflicts_with = "since")]
    batch: Option<String>,
    /// Take all batches since this time, or for this long, as in 12h or 7d
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Timestamp>,
}

impl BatchChoice {
    /// Returns the batches; `all` says whether it is all of them by default.
    pub(crate) fn which(&self, all: bool) -> WhichBatches {
        match (&self.batch, self.since) {
            (Some(id), _) => WhichBatches::Named(id.as_str().into()),
            (None, Some(since)) => WhichBatches::Since(since),
            (None, None) if all => WhichBatches::All,
            (None, None) => WhichBatches::LastWorking,
        }
    }

    /// Returns the error where there is no such batch, or none that did work.
    pub(crate) fn missing(&self, trajectory: &Path) -> CliError {
        let path = trajectory.display();
        CliError::NoReport(match &self.batch {
            Some(id) => {
                format!("no batch {id} in {path}; `premath report --since 7d` has the latest")
            }
            None => format!("no batch in {path} did work yet; `harness-coordinator` runs one"),
        })
    }
}

/// Reads a time, or a duration before now.
fn since(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    // A date is its first moment.
    if let Ok(local) = text.parse::<jiff::civil::DateTime>() {
        let zoned = local.to_zoned(local_zone());
        return Ok(zoned.map_err(|error| error.to_string())?.timestamp());
    }
    let ago = humantime::parse_duration(text).map_err(|_| {
        "expected a time such as 2026-03-05T22:00:00Z, a local one such as 2026-03-05 or \
         2026-03-05T22:00, or a duration such as 12h"
            .to_owned()
    })?;
    let ago = jiff::SignedDuration::try_from(ago).map_err(|error| error.to_string())?;
    let from = clock::now().wall.checked_sub(ago);
    from.map_err(|error| error.to_string())
}

/// The answer of `premath report`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReportAnswer {
    #[serde(flatten)]
    report: ReportView,
    /// The texts that its batches saved at their end.
    kept_texts: Vec<String>,
}

/// The answer of `premath report --list`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReportsAnswer {
    /// How many reports are kept.
    count: usize,
    /// The reports, the latest first.
    items: Vec<ReportItem>,
}

/// A report that is kept.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ReportItem {
    /// The batch.
    batch_id: BatchId,
    /// The file.
    path: String,
    /// The time at which the report was written.
    written_at: Stamp,
}

impl From<&KeptReport> for ReportItem {
    fn from(report: &KeptReport) -> Self {
        Self {
            batch_id: report.batch_id.clone(),
            path: report.path.display().to_string(),
            written_at: Stamp::at(report.at),
        }
    }
}

impl ReportArgs {
    pub(crate) fn run(self, json: bool) -> Finished {
        let action = if self.list { "report.list" } else { "report" };
        let folder = self.repo_root.as_deref().unwrap_or(Path::new("."));
        let roots = match MemoryRoots::discover(folder) {
            Ok(roots) => roots,
            Err(error) => return Finished::new(action, Err(error.into())),
        };
        if self.list {
            return Finished::on(action, "reportsPath", Ok(roots.reports.clone()), |_| {
                Ok(listed(&report::list(&roots)?))
            });
        }
        Finished::on(action, "path", Ok(roots.trajectory.clone()), |_| {
            self.made(&roots, json)
        })
    }

    /// Returns the error where nothing that was asked for is in the run log.
    fn nothing(&self, trajectory: &Path) -> CliError {
        let path = trajectory.display();
        CliError::NoReport(match &self.issue {
            Some(id) => format!(
                "no attempt of issue {} in {path}; `premath issue list` lists the issues",
                plain(id)
            ),
            None => format!(
                "no attempt since then in {path}; `premath report` has the last batch that did \
                 work"
            ),
        })
    }

    /// Makes the answer in the one form that is printed: either is large.
    fn made(&self, roots: &MemoryRoots, json: bool) -> Result<Answer, CliError> {
        let issues = match self.repo_root {
            Some(_) => roots.issues.clone(),
            None => paths::issues(None)?,
        };
        let sources = Sources::of(roots, &issues);
        let issue = self.issue.as_deref().map(Into::into);
        let input = sources.input(&self.which.which(issue.is_some()), issue)?;
        let input = input.ok_or_else(|| self.which.missing(&roots.trajectory))?;
        let report = input.report();
        let attempts = report.totals.attempts + report.totals.cut_attempts;
        let is_empty = attempts == 0 && report.lost_lanes().next().is_none();
        if is_empty && self.which.batch.is_none() {
            return Err(self.nothing(&roots.trajectory));
        }
        if json {
            let batches = report.batches.iter();
            let kept = batches.map(|batch| report::path(roots, &batch.batch_id));
            let kept = kept.filter(|path| path.is_file());
            let answer = ReportAnswer {
                kept_texts: kept.map(|path| sources.shown(&path)).collect(),
                report,
            };
            return Ok(Answer::new(answer, ""));
        }
        let reader = Reader {
            zone: local_zone(),
            width: columns(self.width),
        };
        let text = match (self.html, self.markdown) {
            (true, _) => html(&report, &reader),
            (_, true) => markdown(&report, &reader),
            _ => format!("{}\n", lines(&report, &reader).join("\n")),
        };
        Ok(Answer::new((), text))
    }
}

fn listed(kept: &[KeptReport]) -> Answer {
    let items: Vec<ReportItem> = kept.iter().map(ReportItem::from).collect();
    let rows: Vec<_> = items
        .iter()
        .map(|item| {
            [
                item.batch_id.to_string(),
                item.written_at.as_str().to_owned(),
                item.path.clone(),
            ]
        })
        .collect();
    let text = if rows.is_empty() {
        String::new()
    } else {
        table(["BATCH", "WRITTEN", "FILE"], &rows)
    };
    let count = items.len();
    Answer::new(ReportsAnswer { count, items }, text)
}
