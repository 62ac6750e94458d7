//! `premath audit`: do rows, issues, witnesses, commits and signatures say the
//! same, by the files alone?

mod collect;
mod signers;

use crate::answer::{Answer, CheckVerdict, Finished};
use crate::error::CliError;
use crate::terminal::plain;
use clap::Args;
use premath_kernel::record::audit::{
    AuditFacts, AuditReport, Contradiction, ContradictionCode, audit,
};
use premath_memory::roots::MemoryRoots;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Arguments of `premath audit`.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Use the repository that contains this folder [default: .]
    #[arg(long, value_name = "DIR")]
    repo_root: Option<PathBuf>,
    /// Allow only these signing keys; the format is git's allowed signers file
    ///
    /// Every landing commit must then be signed by one of them. Without it, the key of `[signing]`
    /// in harness.toml is the only one; without that, the file that git's configuration names.
    #[arg(long, value_name = "FILE")]
    allowed_signers: Option<PathBuf>,
    /// Compare only commits after this one
    #[arg(long, value_name = "COMMIT")]
    since: Option<String>,
    /// List every contradiction, not only the first
    #[arg(long)]
    all: bool,
}

/// The answer of `premath audit`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditAnswer {
    /// Whether nothing contradicts anything.
    result: CheckVerdict,
    /// How many contradictions were found.
    lie_count: usize,
    /// The first contradiction, or all of them with `--all`.
    lies: Vec<ContradictionItem>,
    /// What could not be proven, or was not checked.
    notes: Vec<String>,
    /// How many issues were closed by steps.
    closed_count: usize,
    /// How many commits of landing targets are the harness's.
    landing_count: usize,
    /// How many lines of the trajectory its chain covers.
    anchored_line_count: usize,
    /// The end of the chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    chain_head: Option<String>,
}

/// Two things that cannot both be true.
#[derive(Debug, Serialize, JsonSchema)]
struct ContradictionItem {
    /// The kind of contradiction.
    code: ContradictionCode,
    /// The description of its kind.
    what: &'static str,
    /// The file and line, issue or commit where it was found.
    place: String,
    /// The value that would be consistent.
    expected: String,
    /// The value that was found.
    found: String,
}

impl From<&Contradiction> for ContradictionItem {
    fn from(found: &Contradiction) -> Self {
        Self {
            code: found.code,
            what: found.code.text(),
            place: found.place.clone(),
            expected: found.expected.clone(),
            found: found.found.clone(),
        }
    }
}

impl AuditArgs {
    pub(crate) fn run(self) -> Finished {
        let folder = self.repo_root.clone();
        let roots = MemoryRoots::discover(folder.as_deref().unwrap_or(Path::new(".")));
        let roots = match roots {
            Ok(roots) => roots,
            Err(error) => return Finished::new("audit", Err(error.into())),
        };
        let root = roots.repository.clone();
        Finished::on("audit", "repository", Ok(root), |_| self.perform(&roots))
    }

    fn perform(&self, roots: &MemoryRoots) -> Result<Answer, CliError> {
        let signers = signers::find(self.allowed_signers.as_deref(), roots)?;
        let (facts, unreadable) = collect::facts(roots, signers, self.since.as_deref())?;
        let report = audit(&facts);
        let unreadable = match unreadable {
            Some(error) if report.contradictions.is_empty() => return Err(error),
            // The contradictions may all result from that line.
            unreadable => unreadable.map(|error| format!("unreadable: {}", error.chain())),
        };
        Ok(answer(&facts, &report, unreadable, self.all))
    }
}

/// Answers with what was found; the line that cannot be read is printed first.
fn answer(
    facts: &AuditFacts,
    report: &AuditReport,
    unreadable: Option<String>,
    all: bool,
) -> Answer {
    let shown = if all { report.contradictions.len() } else { 1 };
    let mut text = String::new();
    if let Some(unreadable) = &unreadable {
        let _ = writeln!(text, "{}", plain(unreadable));
    }
    for found in report.contradictions.iter().take(shown) {
        let _ = writeln!(text, "false: {}", plain(&found.to_string()));
    }
    let more = report.contradictions.len().saturating_sub(shown);
    if more > 0 {
        let _ = writeln!(text, "{more} more; `premath audit --all` lists them");
    }
    if report.contradictions.is_empty() {
        let _ = writeln!(
            text,
            "consistent: {} issue(s) closed by steps, {} landing commit(s), {} trajectory row(s)",
            report.closed, report.landings, report.anchored_rows
        );
    }
    for note in &report.notes {
        let _ = writeln!(text, "note: {}", plain(note));
    }
    let document = AuditAnswer {
        result: CheckVerdict::of(report.contradictions.is_empty()),
        lie_count: report.contradictions.len(),
        lies: report
            .contradictions
            .iter()
            .take(shown)
            .map(ContradictionItem::from)
            .collect(),
        notes: unreadable
            .into_iter()
            .chain(report.notes.iter().cloned())
            .collect(),
        closed_count: report.closed,
        landing_count: report.landings,
        anchored_line_count: report.anchored_rows,
        chain_head: facts.chain.head().map(|value| value.to_string()),
    };
    Answer::new(document, text).refused(!report.contradictions.is_empty())
}
