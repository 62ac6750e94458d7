//! `premath report`: the outcome of a batch, as it was reported at its end.

use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::terminal::{plain, table};
use clap::Args;
use premath_kernel::json::id::BatchId;
use premath_kernel::json::stamp::Stamp;
use premath_memory::report::{self, KeptReport};
use premath_memory::roots::MemoryRoots;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Arguments of `premath report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Use the repository that contains this folder [default: .]
    #[arg(long, value_name = "DIR")]
    repo_root: Option<PathBuf>,
    /// Print the report of this batch [default: the latest]
    #[arg(long, value_name = "ID")]
    batch: Option<String>,
    /// List the saved reports, latest first
    #[arg(long, conflicts_with = "batch")]
    list: bool,
}

/// The answer of `premath report`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReportAnswer {
    #[serde(flatten)]
    report: ReportItem,
    /// The report, as it was reported.
    text: String,
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
    pub(crate) fn run(self) -> Finished {
        let action = if self.list { "report.list" } else { "report" };
        let folder = self.repo_root.as_deref().unwrap_or(Path::new("."));
        let roots = match MemoryRoots::discover(folder) {
            Ok(roots) => roots,
            Err(error) => return Finished::new(action, Err(error.into())),
        };
        Finished::on(action, "reportsPath", Ok(roots.reports.clone()), |_| {
            let kept = report::list(&roots)?;
            if self.list {
                return Ok(listed(&kept));
            }
            self.shown(&kept, &roots.reports)
        })
    }

    fn shown(&self, kept: &[KeptReport], folder: &Path) -> Result<Answer, CliError> {
        let found = match &self.batch {
            Some(id) => kept.iter().find(|report| *report.batch_id == **id),
            None => kept.first(),
        };
        let Some(found) = found else {
            let folder = folder.display();
            return Err(CliError::NoReport(match &self.batch {
                Some(id) if !kept.is_empty() => format!(
                    "no report of batch {id} in {folder}; list them with `premath report --list`"
                ),
                _ => format!(
                    "no report in {folder}; `harness-coordinator` writes one at the end of each \
                    batch"
                ),
            }));
        };
        let text = report::read(found)?;
        let lines = text.lines().fold(String::new(), |mut lines, line| {
            let _ = writeln!(lines, "{}", plain(line));
            lines
        });
        let report = found.into();
        Ok(Answer::new(ReportAnswer { report, text }, lines))
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
