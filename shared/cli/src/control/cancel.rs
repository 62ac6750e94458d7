//! `premath cancel`: ends the running attempts of issues.

use super::selection::{has_label, selected};
use super::{Asked, WhichBatch, of_issues, refuse_foreign, refuse_step, roots};
use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::operator::Reason;
use crate::paths;
use clap::{Args, ValueEnum};
use premath_kernel::issue::Status;
use premath_kernel::json::id::IssueId;
use premath_kernel::record::control::{CancelThen, ControlOperation, ControlResult};
use premath_memory::roots::MemoryRoots;
use premath_memory::{IssueChange, IssueEdit, IssueRow};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;

/// Arguments of `premath cancel`.
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The issues
    #[arg(value_name = "ISSUE", required_unless_present_any = ["all", "label"])]
    ids: Vec<String>,
    /// Cancel every running attempt
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Cancel the running attempts of issues with one of these labels
    #[arg(long, value_delimiter = ',', conflicts_with_all = ["ids", "all"])]
    label: Vec<String>,
    /// Set the issue's status: deferred until it is reopened, or open for the next
    /// attempt
    #[arg(long, value_enum, default_value_t = Then::Deferred)]
    then: Then,
    /// Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]
    #[arg(long, value_name = "PATH")]
    issues: Option<PathBuf>,
    #[command(flatten)]
    which: WhichBatch,
    #[command(flatten)]
    reason: Reason,
}

/// The status of an issue whose attempt was cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Then {
    /// The batch may take it again.
    Open,
    /// No batch takes it until it is reopened.
    #[default]
    Deferred,
}

impl From<Then> for CancelThen {
    fn from(then: Then) -> Self {
        match then {
            Then::Open => Self::Open,
            Then::Deferred => Self::Deferred,
        }
    }
}

/// What is cancelled.
#[derive(Debug)]
pub(crate) struct CancelInput {
    pub(crate) issues: Vec<IssueId>,
    pub(crate) then: CancelThen,
}

impl CancelArgs {
    pub(crate) fn run(self) -> Finished {
        let path = paths::issues(self.issues.clone());
        Finished::on("cancel", "issuesPath", path, |path| {
            refuse_step()?;
            refuse_foreign(path)?;
            let memory = paths::open(path, false)?;
            let Self { ids, label, .. } = &self;
            let issues = selected(&memory, ids.clone(), |issue| {
                issue.status == Status::InProgress && has_label(issue, label)
            })?;
            let input = CancelInput {
                issues,
                then: self.then.into(),
            };
            let reason = self.reason.or("cancelled by the operator");
            let asked = self.which.asked(reason.text());
            cancel(&roots()?, asked, input, |change| {
                let authority = reason.clone().authority()?;
                Ok(memory.operate(authority, change)?)
            })
        })
    }
}

/// Cancels attempts, then defers the issues where that is asked.
///
/// # Errors
///
/// [`CliError`] where nothing was cancelled.
pub(crate) fn cancel(
    roots: &MemoryRoots,
    asked: Asked<'_>,
    input: CancelInput,
    mut change: impl FnMut(IssueChange) -> Result<IssueRow, CliError>,
) -> Result<Answer, CliError> {
    let then = input.then;
    let operation = ControlOperation::Cancel {
        issues: input.issues,
        then,
    };
    let mut answer = asked.ask(roots, operation)?;
    if answer.issues.is_empty() {
        return Err(CliError::ControlRefused(answer.detail));
    }
    for issue in &mut answer.issues {
        if issue.result == ControlResult::Refused || then == CancelThen::Open {
            continue;
        }
        let deferral = IssueChange::Update {
            id: issue.issue_id.to_string(),
            edit: IssueEdit {
                status: Some(then.status().to_owned()),
                ..IssueEdit::default()
            },
        };
        match change(deferral) {
            Ok(_) => issue.detail.push_str("; it is deferred"),
            Err(error) => {
                issue.result = ControlResult::Refused;
                let why = format!("; cannot defer it: {}", error.chain());
                issue.detail.push_str(&why);
            }
        }
    }
    Ok(of_issues(Some(answer.batch_id), answer.issues, &[]))
}
