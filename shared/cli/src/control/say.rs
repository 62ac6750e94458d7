//! `premath say`: gives the agent of a running attempt a text.

use super::{Asked, WhichBatch, of_issues, refuse_foreign, refuse_step, roots};
use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::paths;
use clap::Args;
use premath_kernel::json::id::IssueId;
use premath_kernel::record::control::{ControlOperation, TEXT_MAX};
use premath_memory::roots::MemoryRoots;
use std::io::Read;
use std::path::PathBuf;

/// Arguments of `premath say`.
#[derive(Debug, Args)]
pub(crate) struct SayArgs {
    /// The issue that the agent works on
    issue: String,
    /// The text; `-` reads stdin
    text: String,
    /// Do not wait until the agent is given the text
    #[arg(long)]
    no_wait: bool,
    /// Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]
    #[arg(long, value_name = "PATH")]
    issues: Option<PathBuf>,
    #[command(flatten)]
    which: WhichBatch,
    /// Give the reason; recorded in the trajectory
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl SayArgs {
    pub(crate) fn run(self) -> Finished {
        let path = paths::issues(self.issues.clone());
        Finished::on("say", "issuesPath", path, |path| {
            refuse_step()?;
            refuse_foreign(path)?;
            let text = match &*self.text {
                "-" => read_stdin()?,
                _ => self.text,
            };
            let input = SayInput {
                issues: vec![IssueId::from(self.issue)],
                text,
                wait: !self.no_wait,
            };
            say(&roots()?, self.which.asked(self.reason.as_deref()), input)
        })
    }
}

/// Reads the text from stdin, no more of it than a batch takes.
fn read_stdin() -> Result<String, CliError> {
    let mut text = String::new();
    let mut input = std::io::stdin().lock().take(TEXT_MAX as u64 + 1);
    match input.read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) => Err(CliError::Usage(format!(
            "cannot read the text from stdin: {error}"
        ))),
    }
}

/// The text for agents.
#[derive(Debug)]
pub(crate) struct SayInput {
    pub(crate) issues: Vec<IssueId>,
    pub(crate) text: String,
    /// Whether to wait until they are given it.
    pub(crate) wait: bool,
}

/// Gives the agents that work on issues a text.
///
/// # Errors
///
/// [`CliError`] where no batch took it.
pub(crate) fn say(
    roots: &MemoryRoots,
    asked: Asked<'_>,
    input: SayInput,
) -> Result<Answer, CliError> {
    let operation = ControlOperation::Say {
        issues: input.issues,
        text: input.text,
        wait: input.wait,
    };
    let answer = asked.ask(roots, operation)?;
    match answer.issues.is_empty() {
        true => Err(CliError::ControlRefused(answer.detail)),
        false => Ok(of_issues(Some(answer.batch_id), answer.issues, &[])),
    }
}
