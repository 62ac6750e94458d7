//! `premath observe`: what the last batch left, for the session that follows.

use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::terminal::{plain, table};
use clap::{Args, Subcommand};
use premath_kernel::json::id::BatchId;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::record::observation::{Attention, Observation};
use premath_memory::observation;
use premath_memory::roots::MemoryRoots;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Arguments of `premath observe`.
#[derive(Debug, Args)]
pub(crate) struct ObserveArgs {
    /// Use the repository that contains this folder [default: .]
    #[arg(long, value_name = "DIR", global = true)]
    repo_root: Option<PathBuf>,
    #[command(subcommand)]
    query: Query,
}

#[derive(Debug, Subcommand)]
enum Query {
    /// Show the observation of the last batch
    Latest,
    /// List what a person should look at
    #[command(name = "needs_attention", visible_alias = "needs-attention")]
    NeedsAttention,
    /// Show the observation if the last batch acted under an instruction
    Instruction(InstructionQuery),
}

/// Which instruction is asked about.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct InstructionQuery {
    /// The instruction's reference
    #[arg(value_name = "REF")]
    pub(crate) instruction_ref: String,
}

/// The answer of `premath observe latest` and `observe instruction`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ObservationAnswer {
    /// The observation; null where there is none.
    observation: Option<Observation>,
}

/// The answer of `premath observe needs_attention`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttentionAnswer {
    /// The last batch; null where no batch was observed.
    batch_id: Option<BatchId>,
    /// When it ended.
    ended_at: Option<Stamp>,
    /// How much there is to look at.
    count: usize,
    /// What a person should look at.
    items: Vec<Attention>,
}

impl ObserveArgs {
    pub(crate) fn run(self) -> Finished {
        let folder = self.repo_root.unwrap_or_else(|| ".".into());
        let roots = MemoryRoots::discover(&folder).map_err(CliError::from);
        let action = match &self.query {
            Query::Latest => "observe.latest",
            Query::NeedsAttention => "observe.needs_attention",
            Query::Instruction(_) => "observe.instruction",
        };
        let path = roots.map(|roots| roots.repository);
        Finished::on(action, "repository", path, |repository| match self.query {
            Query::Latest => latest(repository),
            Query::NeedsAttention => needs_attention(repository),
            Query::Instruction(query) => instruction(repository, &query),
        })
    }
}

/// Answers with the observation of the last batch.
pub(crate) fn latest(repository: &Path) -> Result<Answer, CliError> {
    let found = observation::read(&MemoryRoots::at(repository))?;
    Ok(shown(found))
}

/// Answers with the observation, where the last batch acted under an
/// instruction.
pub(crate) fn instruction(repository: &Path, query: &InstructionQuery) -> Result<Answer, CliError> {
    let found = observation::read(&MemoryRoots::at(repository))?;
    let is_of = |found: &Observation| found.instruction_refs.contains(&query.instruction_ref);
    Ok(shown(found.filter(is_of)))
}

/// Answers with what a person should look at.
pub(crate) fn needs_attention(repository: &Path) -> Result<Answer, CliError> {
    let found = observation::read(&MemoryRoots::at(repository))?;
    let text = match &found {
        None => "no batch was observed\n".to_owned(),
        Some(found) => head(found) + &items(&found.needs_attention),
    };
    let items = found.as_ref().map(|found| found.needs_attention.clone());
    let items = items.unwrap_or_default();
    let answer = AttentionAnswer {
        batch_id: found.as_ref().map(|found| found.batch_id.clone()),
        ended_at: found.map(|found| found.ended_at),
        count: items.len(),
        items,
    };
    Ok(Answer::new(answer, text))
}

fn shown(found: Option<Observation>) -> Answer {
    let text = match &found {
        None => "no batch was observed\n".to_owned(),
        Some(found) => {
            let closed = found.issues.iter().filter(|issue| issue.closed).count();
            let all = found.issues.len();
            let waiting = found.waiting.len();
            format!(
                "{}worked on {all} issue(s), closed {closed}; {waiting} open issue(s) wait for \
                 others\n{}",
                head(found),
                items(&found.needs_attention)
            )
        }
    };
    Answer::new(ObservationAnswer { observation: found }, text)
}

fn head(found: &Observation) -> String {
    let (batch, at) = (&found.batch_id, found.ended_at.as_str());
    format!(
        "batch {}, ended {at}, exit {}\n",
        plain(batch),
        found.exit_code
    )
}

fn items(found: &[Attention]) -> String {
    if found.is_empty() {
        return "nothing needs attention\n".to_owned();
    }
    let rows = found.iter().map(|one| {
        let about = one.issue_id.as_ref().map(ToString::to_string);
        let count = one.count.map(|count| count.to_string());
        [
            one.kind.as_str().to_owned(),
            about.or(count).unwrap_or_default(),
            one.failure_classes.join(", "),
            one.next_command.clone(),
        ]
    });
    let rows: Vec<_> = rows.collect();
    table(["NEEDS ATTENTION", "", "CLASS", "NEXT"], &rows)
}
