//! `premath retry ISSUE…`: opens issues for another attempt, while a batch runs
//! and without one.

use super::selection::{has_label, selected};
use super::{Asked, WhichBatch, of_issues, refuse_foreign, refuse_step, roots};
use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::operator::Reason;
use crate::paths;
use clap::Args;
use premath_kernel::issue::{Issue, Status};
use premath_kernel::json::id::IssueId;
use premath_kernel::record::control::{
    ControlAnswer, ControlOperation, ControlResult, IssueControl,
};
use premath_kernel::record::trajectory::{BatchHistory, ControlRecord, control_row};
use premath_memory::control::ControlError;
use premath_memory::roots::MemoryRoots;
use premath_memory::{IssueChange, IssueRow, Trajectory, clock};
use rustix::process::getuid;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The issues to retry.
#[derive(Debug, Args)]
pub(crate) struct AgainArgs {
    /// The issues
    #[arg(value_name = "ISSUE", required_unless_present_any = ["blocked", "label"])]
    ids: Vec<String>,
    /// Retry every blocked issue
    #[arg(long, conflicts_with = "ids")]
    blocked: bool,
    /// Retry blocked and deferred issues with one of these labels
    #[arg(long, value_delimiter = ',', conflicts_with = "ids")]
    label: Vec<String>,
    /// Add a hint to the issue's notes; the next prompt has it
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]
    #[arg(long, value_name = "PATH")]
    issues: Option<PathBuf>,
    #[command(flatten)]
    which: WhichBatch,
    #[command(flatten)]
    reason: Reason,
}

/// What is retried.
#[derive(Debug)]
pub(crate) struct RetryInput {
    pub(crate) issues: Vec<IssueId>,
    pub(crate) note: Option<String>,
}

impl AgainArgs {
    pub(crate) fn run(self) -> Finished {
        let path = paths::issues(self.issues.clone());
        Finished::on("retry", "issuesPath", path, |path| {
            refuse_step()?;
            refuse_foreign(path)?;
            let memory = paths::open(path, false)?;
            let issues = selected(&memory, self.ids.clone(), |issue| self.fits(issue))?;
            let reason = self.reason.or("retried by the operator");
            let asked = self.which.asked(reason.text());
            let input = RetryInput {
                issues,
                note: self.note,
            };
            again(&roots()?, asked, &input, |change| {
                let authority = reason.clone().authority()?;
                Ok(memory.operate(authority, change)?)
            })
        })
    }

    fn fits(&self, issue: &Issue) -> bool {
        let is_held = match &issue.status {
            Status::Blocked => true,
            Status::Other(word) => !self.blocked && **word == *"deferred",
            _ => false,
        };
        is_held && has_label(issue, &self.label)
    }
}

/// Opens issues, and lets the batch that runs take them again.
///
/// # Errors
///
/// [`CliError`] where a batch runs and cannot be asked.
pub(crate) fn again(
    roots: &MemoryRoots,
    asked: Asked<'_>,
    input: &RetryInput,
    mut change: impl FnMut(IssueChange) -> Result<IssueRow, CliError>,
) -> Result<Answer, CliError> {
    refuse_step()?;
    let mut outcomes = BTreeMap::new();
    for issue_id in &input.issues {
        let opened = change(IssueChange::Retry {
            id: issue_id.to_string(),
            note: input.note.clone(),
        });
        let outcome = match opened {
            Ok(_) => IssueControl::done(issue_id, "open for its next attempt"),
            Err(error) => IssueControl::refused(issue_id, error.chain()),
        };
        outcomes.insert(issue_id.clone(), outcome);
    }
    let is_open = |issue: &&IssueControl| issue.result == ControlResult::Done;
    let opened = outcomes.values().filter(is_open);
    let opened: Vec<IssueControl> = opened.cloned().collect();
    let issues: Vec<IssueId> = opened.iter().map(|issue| issue.issue_id.clone()).collect();
    let (operator, reason) = (asked.operator.clone(), asked.reason.map(str::to_owned));
    let (batch_id, notes) = match issues.is_empty() {
        true => (None, Vec::new()),
        false => match asked.ask(roots, ControlOperation::Retry { issues }) {
            Ok(answer) => {
                for issue in answer.issues {
                    outcomes.insert(issue.issue_id.clone(), issue);
                }
                (Some(answer.batch_id), Vec::new())
            }
            // The next batch takes them.
            Err(CliError::Control(ControlError::NoBatch { .. })) => {
                record_for_cut(roots, &operator, reason.as_deref(), &opened)?;
                (None, Vec::new())
            }
            Err(error) => {
                let note = format!("warning: the issues are open, but {}", error.chain());
                (None, vec![note])
            }
        },
    };
    let in_order = input.issues.iter().filter_map(|id| outcomes.remove(id));
    Ok(of_issues(batch_id, in_order.collect(), &notes))
}

/// Records the retry in the batches that were cut: the next one continues them, and
/// gives the issues their attempts again, as one that runs does.
fn record_for_cut(
    roots: &MemoryRoots,
    operator: &str,
    reason: Option<&str>,
    issues: &[IssueControl],
) -> Result<(), CliError> {
    if !roots.trajectory.exists() {
        return Ok(());
    }
    let trajectory = Trajectory::open(&roots.trajectory)?;
    let history = BatchHistory::fold(&trajectory.rows()?);
    let now = clock::now().wall;
    for (number, batch) in (1..).zip(history.open()) {
        let answer = ControlAnswer::of_issues(&batch.batch_id, issues.to_vec());
        let record = ControlRecord {
            operation: ControlOperation::Retry {
                issues: issues.iter().map(|issue| issue.issue_id.clone()).collect(),
            },
            uid: getuid().as_raw(),
            pid: std::process::id(),
            operator: Some(operator.to_owned()),
            reason: reason.map(str::to_owned),
            detail: answer.detail.clone(),
            issues: answer.issues.clone(),
        };
        trajectory.append(&control_row(record, &answer, (now, now), number))?;
    }
    Ok(())
}
