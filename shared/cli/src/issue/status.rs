//! `premath issue close`, `reopen`, `defer` and `delete`: several issues at once,
//! in one transaction.

use super::view::{IssueView, item, line};
use crate::answer::Answer;
use crate::error::CliError;
use crate::operator::Reason;
use crate::paths;
use crate::terminal::plain;
use clap::Args;
use premath_memory::{StatusChange, StatusChanged, StatusTargets};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

/// The issues to close.
#[derive(Debug, Args)]
pub(super) struct CloseArgs {
    /// The issues
    #[arg(value_name = "ID", required_unless_present = "epics")]
    ids: Vec<String>,
    /// Close every open epic whose children are all over
    #[arg(long, conflicts_with = "ids")]
    epics: bool,
    #[command(flatten)]
    reason: Reason,
}

/// The issues to change.
#[derive(Debug, Args)]
pub(super) struct IdsArgs {
    /// The issues
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    reason: Reason,
}

/// The issues to delete.
#[derive(Debug, Args)]
pub(super) struct DeleteArgs {
    /// The issues
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Delete them although open issues depend on them, which then no longer wait
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    reason: Reason,
}

/// What a command answers that changed the status of issues.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StatusAnswer<'a> {
    /// How many issues were changed.
    count: usize,
    /// The issues that were changed, as they are now.
    items: Vec<IssueView<'a>>,
    /// The issues that had the status before.
    unchanged: Vec<String>,
}

impl CloseArgs {
    pub(super) fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let (targets, reason) = match self.epics {
            true => (
                StatusTargets::FinishedEpics,
                self.reason.or("every child is over"),
            ),
            false => (StatusTargets::Issues(self.ids), self.reason),
        };
        let authority = reason.authority_without_turn("closing an issue")?;
        let memory = paths::open(path, false)?;
        let changed = memory.set_statuses(authority, StatusChange::Close, targets)?;
        Ok(answer("closed", &changed))
    }
}

impl IdsArgs {
    pub(super) fn reopen(self, path: &Path) -> Result<Answer, CliError> {
        self.perform(path, StatusChange::Reopen, "reopened")
    }

    pub(super) fn defer(self, path: &Path) -> Result<Answer, CliError> {
        self.perform(path, StatusChange::Defer, "deferred")
    }

    fn perform(self, path: &Path, change: StatusChange, verb: &str) -> Result<Answer, CliError> {
        let authority = self.reason.authority()?;
        let memory = paths::open(path, false)?;
        let targets = StatusTargets::Issues(self.ids);
        let changed = memory.set_statuses(authority, change, targets)?;
        Ok(answer(verb, &changed))
    }
}

impl DeleteArgs {
    pub(super) fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let authority = self.reason.authority_without_turn("deleting an issue")?;
        let change = StatusChange::Delete { force: self.force };
        let memory = paths::open(path, false)?;
        let changed = memory.set_statuses(authority, change, StatusTargets::Issues(self.ids))?;
        let deleted = changed.iter().any(|issue| issue.changed);
        let answer = answer("deleted", &changed);
        Ok(match deleted {
            true => answer.note("hint: `premath issue reopen ID` restores a deleted issue"),
            false => answer,
        })
    }
}

fn answer(verb: &str, issues: &[StatusChanged]) -> Answer {
    let mut text = String::new();
    let mut notes = Vec::new();
    for issue in issues {
        let id = &issue.row.issue.id;
        if issue.changed {
            text.push_str(&line(verb, &issue.row));
        } else {
            let _ = writeln!(text, "unchanged {}: already {verb}", plain(id));
        }
        if let Some(owner) = &issue.lease_cleared {
            notes.push(format!(
                "warning: {} was leased to {}; the lease is cleared, and a running attempt cannot \
                 land",
                plain(id),
                plain(owner)
            ));
        }
    }
    if issues.is_empty() {
        notes.push("nothing to do: no open epic has only children that are over".to_owned());
    }
    let changed = issues.iter().filter(|issue| issue.changed);
    let unchanged = issues.iter().filter(|issue| !issue.changed);
    let items: Vec<_> = changed.map(|issue| item(&issue.row)).collect();
    let document = StatusAnswer {
        count: items.len(),
        items,
        unchanged: unchanged
            .map(|issue| issue.row.issue.id.to_string())
            .collect(),
    };
    let answer = Answer::new(document, text);
    notes.into_iter().fold(answer, Answer::note)
}
