//! The commands that reach a batch while it runs: `premath batch …`, `premath
//! cancel`, `premath say` and `premath retry`.

mod batch;
mod cancel;
mod retry;
mod say;
mod selection;

pub(crate) use batch::BatchArgs;
pub(crate) use cancel::{CancelArgs, CancelInput, Then, cancel};
pub(crate) use retry::{AgainArgs, RetryInput, again};
pub(crate) use say::{SayArgs, SayInput, say};

use crate::answer::Answer;
use crate::error::CliError;
use crate::operator;
use crate::paths;
use crate::terminal::plain;
use clap::Args;
use premath_kernel::json::id::{BatchId, IssueId};
use premath_kernel::record::control::{
    ControlAnswer, ControlOperation, ControlRequest, ControlResult, IssueControl,
};
use premath_memory::control::ControlConnection;
use premath_memory::roots::MemoryRoots;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// How long a batch may take to end attempts: their grace is the operator's to
/// choose.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Which batch is asked.
#[derive(Debug, Default, Args)]
pub(crate) struct WhichBatch {
    /// Ask this batch [default: the only one that runs in the repository]
    #[arg(long, value_name = "ID")]
    batch: Option<String>,
}

/// What is asked of a batch, and by whom.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) batch: Option<BatchId>,
    /// The name of who asks.
    pub(crate) operator: String,
    pub(crate) reason: Option<&'a str>,
}

impl Asked<'_> {
    /// Asks a batch, and waits for its answer.
    ///
    /// # Errors
    ///
    /// [`CliError::Control`] where none runs; [`CliError::ControlInsideStep`].
    pub(crate) fn ask(
        self,
        roots: &MemoryRoots,
        operation: ControlOperation,
    ) -> Result<ControlAnswer, CliError> {
        refuse_step()?;
        let connection = ControlConnection::open(roots, self.batch.as_ref())?;
        let mut request = ControlRequest::new(connection.token().to_owned(), operation);
        request.operator = Some(self.operator);
        request.reason = self.reason.map(str::to_owned);
        Ok(connection.ask(&request, PATIENCE)?)
    }
}

/// Refuses a command of a step. The batch refuses its process as well.
fn refuse_step() -> Result<(), CliError> {
    match operator::is_inside_step() {
        true => Err(CliError::ControlInsideStep),
        false => Ok(()),
    }
}

impl WhichBatch {
    fn asked(self, reason: Option<&str>) -> Asked<'_> {
        Asked {
            batch: self.batch.map(BatchId::from),
            operator: operator::name(),
            reason,
        }
    }
}

/// What a command answers that reached a batch.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ControlDone {
    /// The batch; null where none runs.
    batch_id: Option<BatchId>,
    /// Whether all of it is done.
    result: ControlResult,
    /// What was done, or why not.
    detail: String,
    /// The outcome for each issue.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    issues: Vec<IssueControl>,
}

/// Returns the answer over the outcomes of issues.
fn of_issues(batch_id: Option<BatchId>, issues: Vec<IssueControl>, notes: &[String]) -> Answer {
    let mut text = String::new();
    for issue in &issues {
        let _ = writeln!(
            text,
            "{} {}: {}",
            plain(&issue.issue_id),
            issue.result.as_str(),
            plain(&issue.detail)
        );
    }
    let counted = ControlAnswer::of_issues(&BatchId::default(), issues);
    let refused = counted.result == ControlResult::Refused;
    let done = ControlDone {
        batch_id,
        result: counted.result,
        detail: counted.detail,
        issues: counted.issues,
    };
    let answer = Answer::new(done, text).refused(refused);
    notes.iter().fold(answer, |answer, note| answer.note(note))
}

/// Returns the answer of a batch to what concerns it as a whole.
pub(crate) fn whole(answer: ControlAnswer) -> Result<Answer, CliError> {
    if answer.result == ControlResult::Refused {
        return Err(CliError::ControlRefused(answer.detail));
    }
    let text = format!(
        "batch {}: {}\n",
        plain(&answer.batch_id),
        plain(&answer.detail)
    );
    let done = ControlDone {
        batch_id: Some(answer.batch_id),
        result: answer.result,
        detail: answer.detail,
        issues: answer.issues,
    };
    Ok(Answer::new(done, text))
}

fn roots() -> Result<MemoryRoots, CliError> {
    paths::roots()
}

/// Refuses an issue store that is another repository's: the batch of this one would
/// be asked about issues that it does not have.
fn refuse_foreign(store: &Path) -> Result<(), CliError> {
    let folder = store.parent().unwrap_or(Path::new("."));
    let (here, Ok(there)) = (roots()?, MemoryRoots::discover(folder)) else {
        return Ok(());
    };
    match here.repository == there.repository {
        true => Ok(()),
        false => Err(CliError::Usage(format!(
            "{} is the issue store of {}; run the command there",
            store.display(),
            there.repository.display()
        ))),
    }
}

/// Names issues, each once, in the order in which they are given.
fn each_once(ids: Vec<String>) -> Vec<IssueId> {
    let mut issues: Vec<IssueId> = Vec::new();
    for id in ids.into_iter().map(IssueId::from) {
        if !issues.contains(&id) {
            issues.push(id);
        }
    }
    issues
}
