//! `premath harness-feature …` (HARNESS-RUNTIME 5)

use crate::answer::{Answer, CheckVerdict, Finished};
use crate::error::CliError;
use crate::paths;
use crate::session::given;
use crate::terminal::{plain, table};
use clap::{Args, Subcommand, ValueEnum};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::IssueId;
use premath_kernel::record::feature::{FeatureLedger, FeatureStatus, FeatureWrite, LedgerFinding};
use premath_memory::{ProjectionLock, clock, projection};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Arguments of `premath harness-feature`.
#[derive(Debug, Args)]
pub(crate) struct FeatureArgs {
    /// Use this ledger [default: .premath/harness_feature_ledger.json of this worktree]
    #[arg(long, global = true, value_name = "FILE")]
    path: Option<PathBuf>,
    #[command(subcommand)]
    command: FeatureCommand,
}

#[derive(Debug, Subcommand)]
enum FeatureCommand {
    /// Show the ledger
    Read,
    /// Write one feature; omitted fields stay, an empty text clears a field
    Write(WriteArgs),
    /// Check the ledger's rules
    Check(CheckArgs),
    /// Print the next feature: in progress first, then pending, by id
    Next,
}

#[derive(Debug, Args)]
struct WriteArgs {
    /// Write this feature
    #[arg(long, value_name = "ID")]
    feature_id: String,
    /// Set the status [default for a new feature: pending]
    #[arg(long, value_enum)]
    status: Option<StatusArg>,
    /// Set the issue of the feature
    #[arg(long, value_name = "ID")]
    issue_id: Option<String>,
    /// Set the summary
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// Set the ledger's session
    #[arg(long, value_name = "REF")]
    session_ref: Option<String>,
    /// Set the instructions of the feature (repeatable; replaces the old ones)
    #[arg(long = "instruction-ref", value_name = "REF")]
    instruction_refs: Vec<String>,
    /// Set the verification witnesses (repeatable; replaces the old ones)
    #[arg(long = "verification-ref", value_name = "REF")]
    verification_refs: Vec<String>,
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// Also require that every feature is completed
    #[arg(long)]
    require_closure: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
enum StatusArg {
    Pending,
    #[value(alias = "in-progress")]
    InProgress,
    Blocked,
    Completed,
}

impl From<StatusArg> for FeatureStatus {
    fn from(status: StatusArg) -> Self {
        match status {
            StatusArg::Pending => Self::Pending,
            StatusArg::InProgress => Self::InProgress,
            StatusArg::Blocked => Self::Blocked,
            StatusArg::Completed => Self::Completed,
        }
    }
}

impl FeatureArgs {
    pub(crate) fn run(self) -> Finished {
        let command = self.command;
        let action = match command {
            FeatureCommand::Read => "harness-feature.read",
            FeatureCommand::Write(_) => "harness-feature.write",
            FeatureCommand::Check(_) => "harness-feature.check",
            FeatureCommand::Next => "harness-feature.next",
        };
        Finished::on(
            action,
            "path",
            paths::ledger(self.path),
            |path| match command {
                FeatureCommand::Read => read(path),
                FeatureCommand::Write(args) => args.perform(path),
                FeatureCommand::Check(args) => args.perform(path),
                FeatureCommand::Next => next(path),
            },
        )
    }
}

/// The kind of a check's answer.
const CHECK_KIND: &str = "premath.harness.feature_ledger.check.v1";

/// The answer of `premath harness-feature read`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LedgerAnswer<'a> {
    /// The ledger as it is.
    ledger: &'a FeatureLedger,
}

/// The answer of `premath harness-feature write`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FeatureAnswer<'a> {
    /// The feature that was written.
    feature_id: &'a str,
    /// The ledger in its current state.
    ledger: &'a FeatureLedger,
}

/// The answer of `premath harness-feature check`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CheckAnswer {
    #[schemars(extend("const" = CHECK_KIND))]
    check_kind: &'static str,
    /// Whether nothing is wrong.
    result: CheckVerdict,
    /// Whether every feature had to be completed.
    require_closure: bool,
    /// The classes of what is wrong.
    failure_classes: BTreeSet<FailureClass>,
    /// What is wrong, by class and feature.
    errors: Vec<FindingItem>,
    /// The summary of the ledger.
    summary: Summary,
    /// The feature to work on.
    next_feature_id: Option<String>,
}

/// One thing that is wrong with a ledger.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FindingItem {
    /// The class of the fault.
    class: FailureClass,
    /// What is there, in a few words.
    message: String,
    /// The feature at fault; absent where it is the ledger.
    #[serde(skip_serializing_if = "Option::is_none")]
    feature_id: Option<String>,
}

/// The summary of a ledger.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "LedgerSummary")]
struct Summary {
    feature_count: usize,
    pending_count: usize,
    in_progress_count: usize,
    blocked_count: usize,
    completed_count: usize,
    /// Whether there is a feature, and every one is completed and verified.
    closure_complete: bool,
}

/// The answer of `premath harness-feature next`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NextAnswer<'a> {
    /// Whether there is a ledger.
    exists: bool,
    /// The same as `nextFeatureId`.
    feature_id: Option<&'a str>,
    /// The feature to work on, null where there is none.
    next_feature_id: Option<&'a str>,
    /// Whether every feature is completed and verified; null without a ledger.
    closure_complete: Option<bool>,
    /// How many features there are; null without a ledger.
    feature_count: Option<usize>,
}

fn required(path: &Path) -> Result<FeatureLedger, CliError> {
    projection::read_ledger(path)?.ok_or_else(|| CliError::Absent {
        what: "feature ledger",
        path: path.to_path_buf(),
        hint: "create one with `premath harness-feature write`",
    })
}

fn read(path: &Path) -> Result<Answer, CliError> {
    let ledger = required(path)?;
    Ok(Answer::new(
        LedgerAnswer { ledger: &ledger },
        listed(&ledger),
    ))
}

fn listed(ledger: &FeatureLedger) -> String {
    let rows: Vec<_> = ledger
        .features
        .iter()
        .map(|feature| {
            [
                feature.feature_id.clone(),
                feature.status.clone(),
                feature.issue_id.as_deref().unwrap_or("-").to_owned(),
                feature.summary.clone().unwrap_or_default(),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    table(["FEATURE", "STATUS", "ISSUE", "SUMMARY"], &rows)
}

impl WriteArgs {
    fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let _alone = ProjectionLock::acquire(path)?;
        let prior = projection::read_ledger(path)?;
        let id = self.feature_id.trim().to_owned();
        let write = FeatureWrite {
            feature_id: self.feature_id,
            status: self.status.map(FeatureStatus::from),
            issue_id: self.issue_id.map(IssueId::from),
            summary: self.summary,
            session_ref: self.session_ref,
            instruction_refs: given(self.instruction_refs),
            verification_refs: given(self.verification_refs),
        };
        let ledger = FeatureLedger::write(prior, write, clock::now().wall)?;
        projection::write_ledger(path, &ledger)?;
        let answer = Answer::new(
            FeatureAnswer {
                feature_id: &id,
                ledger: &ledger,
            },
            format!("wrote {}\n", plain(&id)),
        );
        Ok(with_warnings(answer, &ledger, &id))
    }
}

/// Warns of what the check of the ledger will refuse: a second feature in
/// progress, and a completed one without a verification. The write is kept.
fn with_warnings(answer: Answer, ledger: &FeatureLedger, id: &str) -> Answer {
    let findings = ledger.check(false);
    let warned = findings.iter().filter(|finding| match finding.class {
        FailureClass::LedgerInProgressNonContractible => true,
        FailureClass::LedgerCompletedMissingVerificationRef => {
            finding.feature_id.as_deref() == Some(id)
        }
        _ => false,
    });
    let notes: Vec<String> = warned
        .map(|finding| {
            let meaning = finding.class.meaning();
            format!(
                "warning: {}: {meaning} ({})",
                finding.class,
                plain(&finding.detail)
            )
        })
        .collect();
    if notes.is_empty() {
        return answer;
    }
    let hint = "hint: `premath harness-feature check` fails on this".to_owned();
    notes.into_iter().chain([hint]).fold(answer, Answer::note)
}

impl CheckArgs {
    fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let ledger = required(path)?;
        let findings = ledger.check(self.require_closure);
        let classes: BTreeSet<FailureClass> = findings.iter().map(|f| f.class).collect();
        let passed = findings.is_empty();
        let document = CheckAnswer {
            check_kind: CHECK_KIND,
            result: CheckVerdict::of(passed),
            require_closure: self.require_closure,
            failure_classes: classes,
            errors: findings.iter().map(finding_item).collect(),
            summary: summary(&ledger),
            next_feature_id: ledger.next_feature().map(str::to_owned),
        };
        let mut text = format!(
            "{}: {} features\n",
            if passed { "ok" } else { "failed" },
            ledger.features.len()
        );
        for finding in &findings {
            let id = finding.feature_id.as_deref().unwrap_or("ledger");
            let (id, detail) = (plain(id), plain(&finding.detail));
            let _ = writeln!(text, "  {} {id}: {detail}", finding.class);
        }
        Ok(Answer::new(document, text).refused(!passed))
    }
}

fn finding_item(finding: &LedgerFinding) -> FindingItem {
    FindingItem {
        class: finding.class,
        message: finding.detail.clone(),
        feature_id: finding.feature_id.clone(),
    }
}

fn summary(ledger: &FeatureLedger) -> Summary {
    let count = |status| {
        let features = ledger.features.iter();
        features
            .filter(|f| f.known_status() == Some(status))
            .count()
    };
    Summary {
        feature_count: ledger.features.len(),
        pending_count: count(FeatureStatus::Pending),
        in_progress_count: count(FeatureStatus::InProgress),
        blocked_count: count(FeatureStatus::Blocked),
        completed_count: count(FeatureStatus::Completed),
        closure_complete: ledger.closure_complete(),
    }
}

fn next(path: &Path) -> Result<Answer, CliError> {
    let ledger = projection::read_ledger(path)?;
    let feature = ledger.as_ref().and_then(FeatureLedger::next_feature);
    let document = NextAnswer {
        exists: ledger.is_some(),
        feature_id: feature,
        next_feature_id: feature,
        closure_complete: ledger.as_ref().map(FeatureLedger::closure_complete),
        feature_count: ledger.as_ref().map(|ledger| ledger.features.len()),
    };
    let text = match (feature, &ledger) {
        (Some(id), _) => format!("{}\n", plain(id)),
        (None, Some(_)) => "no feature to work on\n".to_owned(),
        (None, None) => "no feature to work on: no ledger\n".to_owned(),
    };
    Ok(Answer::new(document, text))
}
