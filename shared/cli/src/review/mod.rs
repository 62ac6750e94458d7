//! `premath review`: goes through what landed or was salvaged, one at a time.

mod desk;
mod git;
mod talk;

use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::operator::Reason;
use crate::paths;
use crate::report::{BatchChoice, Sources};
use crate::terminal::{columns, table};
use clap::Args;
use desk::OperatorsDesk;
use harness_worker::stderr::local_zone;
use premath_kernel::json::plain::plain;
use premath_memory::roots::MemoryRoots;
use premath_view::report::{Reader, ReportView, ReviewItem};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::Path;
use talk::{Decisions, go_through};

/// Arguments of `premath review`.
///
/// On a terminal it shows each change by git and asks: accept, reopen with a note, revert, skip
/// or quit. Elsewhere, and with `--json`, it lists what there is to review.
#[derive(Debug, Args)]
pub(crate) struct ReviewArgs {
    /// Review these issues alone
    #[arg(value_name = "ISSUE")]
    ids: Vec<String>,
    #[command(flatten)]
    which: BatchChoice,
    /// Also what was accepted, reopened or reverted before
    #[arg(long)]
    all: bool,
    /// List what there is to review, and ask nothing
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    reason: Reason,
}

/// The answer of `premath review`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReviewAnswer {
    /// How many changes there were to review.
    count: usize,
    /// How many more were decided about before, and are left out.
    decided_before: usize,
    /// What there was to review, in this order.
    items: Vec<ReviewItem>,
    /// What was decided now, by issue: `accepted`, `reopened` or `reverted`.
    decisions: BTreeMap<String, String>,
}

impl ReviewArgs {
    pub(crate) fn run(self, json: bool) -> Finished {
        let roots = match paths::roots() {
            Ok(roots) => roots,
            Err(error) => return Finished::new("review", Err(error)),
        };
        Finished::on("review", "path", Ok(roots.trajectory.clone()), |_| {
            self.perform(&roots, json)
        })
    }

    fn perform(self, roots: &MemoryRoots, json: bool) -> Result<Answer, CliError> {
        let issues = paths::issues(None)?;
        let sources = Sources::of(roots, &issues);
        let named = !self.ids.is_empty();
        let input = sources.input(&self.which.which(named), None)?;
        let input = input.ok_or_else(|| self.which.missing(&roots.trajectory))?;
        let report = input.report();
        let (items, decided_before) = self.items(&report)?;
        let asks = !json && !self.list && !items.is_empty() && is_terminal();
        let decisions = match asks {
            true => self.ask(&report, &items, (roots, &issues))?,
            false => Decisions::default(),
        };
        let text = match asks {
            true => decisions.text(),
            false => listing(&items),
        };
        let answer = ReviewAnswer {
            count: items.len(),
            decided_before,
            decisions: decisions.made,
            items,
        };
        Ok(Answer::new(answer, text).note(note(decided_before, &report)))
    }

    /// Returns what is to be reviewed, and how much was decided about before.
    fn items(&self, report: &ReportView) -> Result<(Vec<ReviewItem>, usize), CliError> {
        for id in &self.ids {
            if !report.review.iter().any(|item| *item.issue_id == **id) {
                return Err(CliError::NoReport(format!(
                    "nothing of issue {id} landed or was salvaged"
                )));
            }
        }
        let is_named = |item: &&ReviewItem| {
            self.ids.is_empty() || self.ids.iter().any(|id| *item.issue_id == **id)
        };
        let named: Vec<&ReviewItem> = report.review.iter().filter(is_named).collect();
        let is_open = |item: &&&ReviewItem| self.all || item.reviewed.is_none();
        let open: Vec<ReviewItem> = named
            .iter()
            .filter(is_open)
            .map(|item| (*item).clone())
            .collect();
        let before = named.len() - open.len();
        Ok((open, before))
    }

    fn ask(
        self,
        report: &ReportView,
        items: &[ReviewItem],
        (roots, issues): (&MemoryRoots, &Path),
    ) -> Result<Decisions, CliError> {
        let reader = Reader {
            zone: local_zone(),
            width: columns(None),
        };
        let authority = self.reason.clone().authority()?;
        let mut desk =
            OperatorsDesk::new(report, &reader, (roots, issues), &self.reason, authority)?;
        let (mut input, mut output) = (io::stdin().lock(), io::stderr());
        go_through(items, &mut input, &mut output, &mut desk)
    }
}

fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn note(before: usize, report: &ReportView) -> String {
    let batches = report.batches.iter().map(|batch| batch.batch_id.as_str());
    let batches: Vec<&str> = batches.collect();
    let shown = batches.join(", ");
    match before {
        0 => format!("batches: {}", plain(&shown)),
        _ => format!(
            "batches: {}; {before} decided about before; --all shows them",
            plain(&shown)
        ),
    }
}

/// Lists what is to be reviewed.
fn listing(items: &[ReviewItem]) -> String {
    if items.is_empty() {
        return "nothing to review\n".to_owned();
    }
    let rows: Vec<[String; 5]> = items
        .iter()
        .map(|item| {
            let title = item.title.clone().unwrap_or_default();
            [
                item.place.to_string(),
                item.score.to_string(),
                item.issue_id.to_string(),
                item.command.clone(),
                title,
            ]
        })
        .collect();
    table(["#", "SCORE", "ISSUE", "SHOW IT", "TITLE"], &rows)
}
