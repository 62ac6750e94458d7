//! `premath harness-trajectory …` (HARNESS-RUNTIME 6)

use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::operator;
use crate::paths;
use crate::session::given;
use crate::terminal::{plain, table};
use clap::{Args, Subcommand, ValueEnum};
use premath_kernel::json::stamp::Stamp;
use premath_kernel::record::trajectory::{ProjectionMode, RowOutcome, StepRow, action, project};
use premath_memory::{Trajectory, clock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Arguments of `premath harness-trajectory`.
#[derive(Debug, Args)]
pub(crate) struct TrajectoryArgs {
    /// Use this trajectory [default: .premath/harness_trajectory.jsonl of the repository root]
    #[arg(long, global = true, value_name = "FILE")]
    path: Option<PathBuf>,
    #[command(subcommand)]
    command: TrajectoryCommand,
}

#[derive(Debug, Subcommand)]
enum TrajectoryCommand {
    /// Append a row
    Append(Box<AppendArgs>),
    /// List rows, latest first
    Query(QueryArgs),
}

#[derive(Debug, Args)]
struct AppendArgs {
    /// Set the step id; a repeated one is appended too
    #[arg(long, value_name = "ID")]
    step_id: String,
    /// Set the action of the row, for example worker.loop
    #[arg(long)]
    action: String,
    /// Set the result class, for example completed
    #[arg(long, value_name = "CLASS")]
    result_class: String,
    /// Set the issue of the step
    #[arg(long, value_name = "ID")]
    issue_id: Option<String>,
    /// Add an instruction of the step (repeatable)
    #[arg(long = "instruction-ref", value_name = "REF")]
    instruction_refs: Vec<String>,
    /// Add a witness of the step (repeatable)
    #[arg(long = "witness-ref", value_name = "REF")]
    witness_refs: Vec<String>,
    /// Add a part of the site lineage (repeatable)
    #[arg(long = "lineage-ref", value_name = "REF")]
    lineage_refs: Vec<String>,
    /// Set the start time, RFC 3339
    #[arg(long, value_parser = stamp, value_name = "TIME")]
    started_at: Option<Stamp>,
    /// Set the end time, RFC 3339 [default: now]
    #[arg(long, value_parser = stamp, value_name = "TIME")]
    finished_at: Option<Stamp>,
}

/// Which rows of the trajectory to list.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct QueryArgs {
    /// List these rows
    #[arg(long, value_enum, default_value_t = ModeArg::Latest)]
    mode: ModeArg,
    /// List at most this many
    #[arg(long, default_value_t = LIMIT, value_name = "N")]
    limit: usize,
}

impl Default for QueryArgs {
    fn default() -> Self {
        Self {
            mode: ModeArg::Latest,
            limit: LIMIT,
        }
    }
}

/// The default number of rows.
const LIMIT: usize = 20;

#[derive(Clone, Copy, Debug, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum ModeArg {
    /// All rows
    Latest,
    /// Those that did not succeed
    Failed,
    /// Those that ask for a retry
    #[value(alias = "retry_needed")]
    #[serde(alias = "retry_needed")]
    RetryNeeded,
}

fn stamp(text: &str) -> Result<Stamp, String> {
    Stamp::parse(text)
        .ok_or_else(|| "expected an RFC 3339 time, for example 2026-03-05T10:00:00Z".to_owned())
}

impl TrajectoryArgs {
    pub(crate) fn run(self) -> Finished {
        let command = self.command;
        let action = match command {
            TrajectoryCommand::Append(_) => "harness-trajectory.append",
            TrajectoryCommand::Query(_) => "harness-trajectory.query",
        };
        Finished::on(
            action,
            "path",
            paths::trajectory(self.path),
            |path| match command {
                TrajectoryCommand::Append(args) => args.perform(path),
                TrajectoryCommand::Query(args) => args.perform(path),
            },
        )
    }
}

/// The answer of `premath harness-trajectory append`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RowAnswer<'a> {
    /// The row as it was appended.
    row: &'a StepRow,
}

impl AppendArgs {
    fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let text = |text: &str| text.trim().to_owned();
        // The rows of steps and batches are the harness's own.
        let named = self.action.trim();
        if operator::step_id().is_some()
            && (named == action::WORKER_LOOP || named.starts_with("coordinator."))
        {
            return Err(CliError::InsideStep);
        }
        let finished = self
            .finished_at
            .unwrap_or_else(|| Stamp::at(clock::now().wall));
        let mut row = StepRow::new(
            text(&self.step_id),
            text(&self.action),
            text(&self.result_class),
            finished.time(),
        );
        row.issue_id = self
            .issue_id
            .as_deref()
            .map(text)
            .filter(|id| !id.is_empty())
            .map(Into::into);
        row.instruction_refs = given(self.instruction_refs).unwrap_or_default();
        row.witness_refs = given(self.witness_refs).unwrap_or_default();
        row.lineage_refs = given(self.lineage_refs).unwrap_or_default();
        row.started_at = self.started_at;
        // As it was given: another's spelling of a time is kept.
        row.finished_at = finished;
        Trajectory::open(path)?.append(&row)?;
        Ok(Answer::new(
            RowAnswer { row: &row },
            format!(
                "appended {} [{}]\n",
                plain(&row.step_id),
                plain(&row.result_class)
            ),
        ))
    }
}

/// Returns the outcome of a row in one word; the class is in the JSON document.
fn outcome(row: &StepRow) -> String {
    let word = RowOutcome::of(&row.result_class).as_str();
    match &row.world {
        Some(world) => format!("{word} ({world})"),
        None => word.to_owned(),
    }
}

impl QueryArgs {
    pub(crate) fn perform(self, path: &Path) -> Result<Answer, CliError> {
        // Looking makes no lock file beside a trajectory that is not there.
        let rows = if path.exists() {
            Trajectory::open(path)?.rows()?
        } else {
            Vec::new()
        };
        let mode = match self.mode {
            ModeArg::Latest => ProjectionMode::Latest,
            ModeArg::Failed => ProjectionMode::Failed,
            ModeArg::RetryNeeded => ProjectionMode::RetryNeeded,
        };
        let found = project(&rows, mode, self.limit);
        let lines: Vec<_> = found
            .items
            .iter()
            .map(|row| {
                [
                    row.finished_at.as_str().to_owned(),
                    row.step_id.to_string(),
                    row.action.clone(),
                    outcome(row),
                    row.failure_classes.join(", "),
                ]
            })
            .collect();
        let mut text = if lines.is_empty() {
            String::new()
        } else {
            table(["FINISHED", "STEP", "ACTION", "RESULT", "CLASSES"], &lines)
        };
        text.push_str(&format!(
            "{} of {} rows, {} failed, {} to retry\n",
            found.count,
            found.counts.total_count,
            found.counts.failed_count,
            found.counts.retry_needed_count
        ));
        Ok(Answer::new(&found, text))
    }
}
