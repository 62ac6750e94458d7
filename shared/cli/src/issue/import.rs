//! `premath issue import`: files the issues of another tracker.

use super::view::{IssueView, item, line};
use super::write::read_text;
use crate::answer::Answer;
use crate::error::CliError;
use crate::operator::Reason;
use crate::paths;
use crate::terminal::plain;
use clap::Args;
use premath_kernel::issue::dispatch::may_need_no_change;
use premath_kernel::issue::import::{self, ImportFault, ImportFormat};
use premath_kernel::issue::{EdgeKind, word};
use premath_memory::{Imported, IssueMemory};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Records that are named of those that do not fit.
const FAULTS_SHOWN: usize = 20;
/// Issues that a warning names.
const NAMED: usize = 5;

/// The file to import.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// The file; `-` reads stdin
    file: PathBuf,
    /// Set the format: beads, github, csv or markdown [default: detected]
    #[arg(long)]
    format: Option<ImportFormat>,
    /// Show what would be filed, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    reason: Reason,
}

/// The answer of `premath issue import`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImportAnswer<'a> {
    /// The file.
    file: String,
    /// The format that it was read as.
    format: String,
    /// Whether nothing was changed, because only a look was asked for.
    dry_run: bool,
    /// How many issues were filed.
    count: usize,
    /// The issues that were filed.
    items: Vec<IssueView<'a>>,
    /// The issues of the file that were there, and stay as they are.
    existing: Vec<String>,
    /// The records that do not fit; where there is one, nothing is filed.
    faults: Vec<FaultItem>,
}

/// A record that does not fit.
#[derive(Debug, Serialize, JsonSchema)]
struct FaultItem {
    /// The line of the file that it begins at.
    line: usize,
    /// What is wrong with it.
    detail: String,
}

impl ImportArgs {
    pub(super) fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let reason = format!("imported from {}", self.file.display());
        let authority = self.reason.or(&reason).authority()?;
        let text = read_text(&self.file)?;
        let format = match self.format.or_else(|| import::detect(&text)) {
            Some(format) => format,
            None => {
                return Err(CliError::Usage(format!(
                    "cannot determine the format of {}; give it with --format beads, github, csv \
                     or markdown",
                    self.file.display()
                )));
            }
        };
        let named = Source {
            file: self.file.display().to_string(),
            format,
            dry_run: self.dry_run,
        };
        let records = match import::read(&text, format) {
            Ok(records) => records,
            Err(faults) => return Ok(named.refused(faults)),
        };
        let memory = paths::open(path, !self.dry_run)?;
        let imported = match self.dry_run {
            true => memory.plan_import(&authority, &records)?,
            false => memory.import(authority, records)?,
        };
        match imported.faults.is_empty() {
            true => named.answer(&imported, &memory),
            false => Ok(named.refused(imported.faults)),
        }
    }
}

/// What was imported, and how.
struct Source {
    file: String,
    format: ImportFormat,
    dry_run: bool,
}

impl Source {
    fn document<'a>(&self) -> ImportAnswer<'a> {
        ImportAnswer {
            file: self.file.clone(),
            format: self.format.to_string(),
            dry_run: self.dry_run,
            count: 0,
            items: Vec::new(),
            existing: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// The answer where records do not fit: nothing is filed.
    fn refused(&self, faults: Vec<ImportFault>) -> Answer {
        let count = faults.len();
        let mut notes: Vec<String> = faults
            .iter()
            .take(FAULTS_SHOWN)
            .map(|fault| {
                let detail = plain(&fault.detail);
                format!("error: {}:{}: {detail}", plain(&self.file), fault.line)
            })
            .collect();
        if count > FAULTS_SHOWN {
            notes.push(format!("… and {} more", count - FAULTS_SHOWN));
        }
        notes.push(format!(
            "nothing was imported: {count} bad record(s) in {} (read as {})",
            plain(&self.file),
            self.format
        ));
        let faults = faults.into_iter().map(|fault| FaultItem {
            line: fault.line,
            detail: fault.detail,
        });
        let document = ImportAnswer {
            faults: faults.collect(),
            ..self.document()
        };
        let answer = Answer::new(document, "").refused(true);
        notes.into_iter().fold(answer, Answer::note)
    }

    fn answer(&self, imported: &Imported, memory: &IssueMemory) -> Result<Answer, CliError> {
        let new = imported.issues.iter().filter(|issue| issue.filed);
        let there = imported.issues.iter().filter(|issue| !issue.filed);
        let verb = if self.dry_run { "would add" } else { "added" };
        let mut text: String = new.clone().map(|issue| line(verb, &issue.row)).collect();
        let existing: Vec<String> = there.map(|issue| issue.row.issue.id.to_string()).collect();
        let items: Vec<_> = new.map(|issue| item(&issue.row)).collect();
        text.push_str(&format!(
            "{} {} issue(s) from {} ({}); {} already there\n",
            if self.dry_run {
                "would import"
            } else {
                "imported"
            },
            items.len(),
            plain(&self.file),
            self.format,
            existing.len()
        ));
        let document = ImportAnswer {
            count: items.len(),
            items,
            existing,
            ..self.document()
        };
        let notes = warnings(imported, memory)?;
        Ok(notes
            .into_iter()
            .fold(Answer::new(document, text), Answer::note))
    }
}

/// Warns about issues that no batch takes, or that the operator may not expect.
fn warnings(imported: &Imported, memory: &IssueMemory) -> Result<Vec<String>, CliError> {
    let new = || imported.issues.iter().filter(|issue| issue.filed);
    let ids: BTreeSet<&str> = new().map(|issue| &*issue.row.issue.id).collect();
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    memory.view(|view| {
        for issue in new().filter(|issue| !issue.row.issue.status.is_terminal()) {
            let row = &issue.row.issue;
            let dangles = row.dependencies.iter().any(|edge| {
                let there = ids.contains(&*edge.depends_on) || view.row(&edge.depends_on).is_some();
                matches!(edge.kind, EdgeKind::Holds(_)) && !there
            });
            for (applies, text) in [
                (
                    dangles,
                    "depend on an issue that does not exist, and are never ready",
                ),
                (
                    !word::is_known(&row.status),
                    "have a status that nothing here knows, and are never ready",
                ),
                (
                    may_need_no_change(row),
                    "have the label `no-change`, and close without a change of files",
                ),
                (
                    !row.assignee.is_empty(),
                    "have an assignee; a batch takes them only with --assignee any",
                ),
                (
                    issue.row.own_check().is_some(),
                    "have a verification of their own, which is not run until you set it with \
                     `premath issue update ID --verify COMMAND`",
                ),
            ] {
                if applies {
                    found.entry(text).or_default().push(&row.id);
                }
            }
        }
    })?;
    let warn = |(text, ids): (&str, Vec<&str>)| {
        let named: Vec<_> = ids.iter().take(NAMED).map(|id| plain(id)).collect();
        let more = if ids.len() > NAMED { ", …" } else { "" };
        format!(
            "warning: {} issue(s) {text}: {}{more}",
            ids.len(),
            named.join(", ")
        )
    };
    Ok(found.into_iter().map(warn).collect())
}
