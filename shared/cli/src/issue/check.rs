//! `premath issue check`: what is wrong with issue memory, as far as it can be
//! read.

use crate::answer::{Answer, CheckVerdict};
use crate::error::CliError;
use crate::paths;
use crate::terminal::plain;
use clap::Args;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::graph::{Diagnosis, Scope};
use premath_kernel::issue::lease::{self, LeaseState, Observation};
use premath_kernel::issue::word::is_known;
use premath_kernel::issue::{Status, contract};
use premath_memory::{IssueMemory, IssueRow, clock};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// The arguments of `premath issue check`.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Warn of notes longer than this many characters
    #[arg(long, default_value_t = NOTE_WARN_THRESHOLD, value_name = "CHARS")]
    note_warn_threshold: usize,
}

/// The default length from which notes are warned of.
pub(crate) const NOTE_WARN_THRESHOLD: usize = 2000;

impl CheckArgs {
    pub(super) fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let memory = paths::open(path, false)?;
        let (answer, failed) = checked(&memory, self.note_warn_threshold)?;
        Ok(answer.refused(failed))
    }
}

/// Checks issue memory; returns whether there are errors.
pub(crate) fn checked(
    memory: &IssueMemory,
    note_warn_threshold: usize,
) -> Result<(Answer, bool), CliError> {
    let diagnosis = memory.diagnose(Scope::Active)?;
    let seen = clock::observe();
    Ok(memory.view(|view| {
        let mut errors = errors(&diagnosis);
        let mut warnings = Vec::new();
        for row in view.rows() {
            refuse(row, &mut errors);
            warn(row, note_warn_threshold, &seen, &mut warnings);
        }
        let failed = !errors.is_empty();
        let count = view.rows().count();
        let answer = report(count, note_warn_threshold, errors, warnings);
        (answer, failed)
    })?)
}

/// One thing that a check found.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Finding {
    /// What is wrong or odd.
    class: FailureClass,
    /// The issue at fault; of a cycle, its smallest.
    issue_id: String,
    /// What is wrong, in a few words.
    message: String,
}

/// The kind of a check's answer.
const CHECK_KIND: &str = "premath.issue_graph.check.v1";

/// The answer of `premath issue check`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GraphCheckAnswer {
    #[schemars(extend("const" = CHECK_KIND))]
    check_kind: &'static str,
    /// Whether there are no errors.
    result: CheckVerdict,
    /// How many issues were looked at.
    check_count: usize,
    error_count: usize,
    warning_count: usize,
    /// The classes of the errors.
    failure_classes: BTreeSet<FailureClass>,
    /// The classes of the warnings.
    warning_classes: BTreeSet<FailureClass>,
    /// What keeps active issues from ever becoming ready, and what they do not
    /// say though they must.
    errors: Vec<Finding>,
    /// Findings that are not errors.
    warnings: Vec<Finding>,
    /// The same counts once more.
    summary: Summary,
}

/// How much a check found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CheckSummary")]
struct Summary {
    issue_count: usize,
    error_count: usize,
    warning_count: usize,
    /// Notes longer than this many characters are warned of.
    note_warn_threshold: usize,
}

impl Finding {
    fn new(class: FailureClass, issue_id: &str, message: String) -> Self {
        Self {
            class,
            issue_id: issue_id.to_owned(),
            message,
        }
    }
}

/// What keeps active issues from ever becoming ready.
fn errors(diagnosis: &Diagnosis) -> Vec<Finding> {
    let mut errors = Vec::new();
    for edge in &diagnosis.dangling {
        errors.push(Finding::new(
            FailureClass::IssueGraphDependencyDangling,
            &edge.issue_id,
            format!("waits for {}, which does not exist", edge.depends_on_id),
        ));
    }
    for id in &diagnosis.self_loops {
        errors.push(Finding::new(
            FailureClass::IssueGraphDependencySelfLoop,
            id,
            "waits for itself".to_owned(),
        ));
    }
    // A cycle of one is a self-loop, and named as such.
    for cycle in diagnosis.cycles.iter().filter(|cycle| cycle.len() > 1) {
        errors.push(Finding::new(
            FailureClass::DependencyCycle,
            &cycle[0],
            format!("depend on each other: {}", cycle.join(", ")),
        ));
    }
    errors
}

/// What an issue must say and does not.
fn refuse(row: &IssueRow, found: &mut Vec<Finding>) {
    let issue = &row.issue;
    let mut refuse =
        |class, message: &str| found.push(Finding::new(class, &issue.id, message.to_owned()));
    let title = row.text_of("title");
    if contract::is_titled_epic(&title) && !issue.issue_type.eq_ignore_ascii_case("epic") {
        refuse(
            FailureClass::IssueGraphEpicMismatch,
            "the title begins with [EPIC], but issue_type is not `epic`",
        );
    }
    if !matches!(issue.status, Status::Open | Status::InProgress) || row.is_set("ephemeral") {
        return;
    }
    let [description, notes, acceptance] =
        ["description", "notes", "acceptance_criteria"].map(|field| row.text_of(field));
    if acceptance.trim().is_empty() && !contract::has_acceptance_section(&description) {
        refuse(
            FailureClass::IssueGraphAcceptanceMissing,
            "no acceptance_criteria and no `Acceptance:` section in the description",
        );
    }
    let texts = [&description, &notes, &acceptance];
    let mut texts = texts.into_iter();
    if row.own_check().is_none() && !texts.any(|text| contract::has_verification_command(text)) {
        refuse(
            FailureClass::IssueGraphVerificationCommandMissing,
            "no command that verifies it, for example `cargo test`",
        );
    }
}

/// What is odd about one issue.
fn warn(row: &IssueRow, threshold: usize, seen: &Observation<'_>, found: &mut Vec<Finding>) {
    let issue = &row.issue;
    let mut warn = |class, message| found.push(Finding::new(class, &issue.id, message));
    let length = row.text_of("notes").chars().count();
    if length > threshold {
        warn(
            FailureClass::IssueGraphNotesLarge,
            format!("notes are {length} characters long, over the threshold of {threshold}"),
        );
    }
    if !is_known(&issue.status) {
        let word = issue.status.as_str();
        warn(
            FailureClass::IssueGraphStatusUnknown,
            format!("unknown status `{word}`: the issue is never ready"),
        );
    }
    let until = issue.lease.as_ref().map_or("", |lease| &lease.expires_at);
    match lease::state(Some(issue), seen) {
        LeaseState::Unleased if issue.status == Status::InProgress => warn(
            FailureClass::LeaseMissing,
            "in progress without a lease: it cannot be claimed".to_owned(),
        ),
        LeaseState::Stale => warn(
            FailureClass::LeaseStale,
            format!("the lease expired at {until}"),
        ),
        LeaseState::InvalidExpiresAt => warn(
            FailureClass::LeaseInvalidExpiresAt,
            format!("the lease has an invalid expiry `{until}`: the issue cannot be claimed"),
        ),
        LeaseState::Contended => warn(
            FailureClass::LeaseContentionActive,
            "the lease contradicts the issue's status or assignee".to_owned(),
        ),
        // No rule looks at the lease of a closed issue.
        LeaseState::ClosedWithLease
        | LeaseState::MissingIssue
        | LeaseState::Released
        | LeaseState::Unleased
        | LeaseState::Active => {}
    }
}

fn report(
    issues: usize,
    note_warn_threshold: usize,
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
) -> Answer {
    let classes = |findings: &[Finding]| -> BTreeSet<FailureClass> {
        findings.iter().map(|finding| finding.class).collect()
    };
    let mut text = format!(
        "{}: {issues} issues, {} errors, {} warnings\n",
        if errors.is_empty() { "ok" } else { "failed" },
        errors.len(),
        warnings.len()
    );
    for (word, findings) in [("error", &errors), ("warning", &warnings)] {
        for finding in findings {
            let _ = writeln!(
                text,
                "  {word} {} {}: {}",
                finding.class,
                plain(&finding.issue_id),
                plain(&finding.message)
            );
        }
    }
    let failed = !errors.is_empty();
    let document = GraphCheckAnswer {
        check_kind: CHECK_KIND,
        result: CheckVerdict::of(!failed),
        check_count: issues,
        error_count: errors.len(),
        warning_count: warnings.len(),
        failure_classes: classes(&errors),
        warning_classes: classes(&warnings),
        summary: Summary {
            issue_count: issues,
            error_count: errors.len(),
            warning_count: warnings.len(),
            note_warn_threshold,
        },
        errors,
        warnings,
    };
    Answer::new(document, text)
}
