//! `premath issue accept-changes`: the operator accepts rows that changed
//! outside a transaction.

use crate::answer::Answer;
use crate::error::CliError;
use crate::operator::Reason;
use crate::paths;
use crate::terminal::plain;
use clap::Args;
use premath_kernel::authority::OperatorOverride;
use premath_kernel::json::id::IssueId;
use premath_kernel::record::trajectory::{StepRow, action};
use premath_memory::{ForeignRow, ForeignSelection, Trajectory, clock};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

/// The changes to accept.
#[derive(Debug, Args)]
pub(super) struct AcceptArgs {
    /// Issues whose rows are accepted as they are now
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,
    /// Accept every row that changed outside a transaction
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    #[command(flatten)]
    reason: Reason,
}

/// The answer of `premath issue accept-changes`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AcceptAnswer {
    /// What was accepted, by issue.
    accepted: Vec<AcceptedChange>,
}

/// A row that changed outside a transaction.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AcceptedChange {
    /// The issue; empty where it is unknown which rows changed.
    issue_id: IssueId,
    /// How the row differed from the last one that a transaction left.
    change: String,
    /// The fields that differed.
    fields: Vec<String>,
    /// When a transaction first found it.
    first_seen: String,
}

impl AcceptArgs {
    pub(super) fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let authority = self.reason.authority()?;
        if authority.reason().is_none() {
            return Err(CliError::Usage(
                "give a reason for accepting the changes with --reason TEXT".to_owned(),
            ));
        }
        let which = if self.all {
            ForeignSelection::All
        } else {
            ForeignSelection::Issues(self.ids.into_iter().map(IssueId::from).collect())
        };
        let memory = paths::open(path, false)?;
        let trajectory = Trajectory::open(&paths::trajectory(None)?)?;
        let accepted = memory.accept_foreign(&authority, &which, |rows| {
            record(&trajectory, &authority, rows)
        })?;
        Ok(answer(&accepted))
    }
}

/// Records an operator override row for each accepted change.
fn record(
    trajectory: &Trajectory,
    authority: &OperatorOverride,
    rows: &[ForeignRow],
) -> Result<(), CliError> {
    let now = clock::now().wall;
    for (number, row) in rows.iter().enumerate() {
        let id = format!(
            "{}.{}.{}",
            action::CHANGES_ACCEPTED,
            premath_kernel::json::time::micros(now),
            number + 1
        );
        let mut step = StepRow::new(id, action::CHANGES_ACCEPTED, "accepted", now);
        step.issue_id = Some(row.issue_id.clone()).filter(|id| !id.is_empty());
        step.worker_id = Some(format!("operator.{}", authority.operator()).into());
        step.started_at = Some(now.into());
        step.next_step = Some(format!(
            "operator override by {}: {} ({}; first seen {})",
            authority.operator(),
            authority.reason().unwrap_or_default(),
            row.summary(),
            row.first_seen
        ));
        trajectory.append(&step)?;
    }
    Ok(())
}

fn answer(rows: &[ForeignRow]) -> Answer {
    let mut text = String::new();
    for row in rows {
        let _ = writeln!(
            text,
            "accepted {}: {}",
            match &*row.issue_id {
                "" => "the issue store".into(),
                id => plain(id),
            },
            plain(&row.summary())
        );
    }
    if rows.is_empty() {
        text.push_str("nothing to accept: no row changed outside a transaction\n");
    }
    let accepted = rows
        .iter()
        .map(|row| AcceptedChange {
            issue_id: row.issue_id.clone(),
            change: row.summary(),
            fields: row.fields.clone(),
            first_seen: row.first_seen.clone(),
        })
        .collect();
    Answer::new(AcceptAnswer { accepted }, text)
}
