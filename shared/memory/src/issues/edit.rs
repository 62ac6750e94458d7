//! A person's changes of issue memory, signed with who made them.

use super::change::{Decided, Outcome, changed, edited, find};
use super::dependency::{DependencyEdit, edges, refuse_new_cycle};
use super::new_issue::{NewIssue, add};
use super::state::State;
use crate::error::ChangeError;
use crate::row::IssueRow;
use premath_kernel::authority::OperatorOverride;
use premath_kernel::issue::{RowChange, Status};
use premath_kernel::lease::Observation;
use premath_kernel::time;
use serde_json::json;

/// Fields of an issue that a person sets; `None` leaves one as it is, an
/// empty text clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IssueEdit {
    /// The title.
    pub title: Option<String>,
    /// What is to be done.
    pub description: Option<String>,
    /// Notes.
    pub notes: Option<String>,
    /// The status.
    pub status: Option<String>,
    /// The priority.
    pub priority: Option<i64>,
    /// The assignee.
    pub assignee: Option<String>,
    /// The owner.
    pub owner: Option<String>,
}

/// A person's change of issue memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorEdit {
    /// Files an issue.
    Add(NewIssue),
    /// Files an issue found while working on another.
    Discover {
        /// The issue that was worked on.
        parent: String,
        /// The new one.
        new: NewIssue,
    },
    /// Sets fields of an issue.
    Update {
        /// The issue.
        id: String,
        /// The fields.
        edit: IssueEdit,
    },
    /// Changes an edge.
    Dependency {
        /// The issue that has the edge.
        id: String,
        /// The issue that it points to.
        depends_on: String,
        /// What is done to it.
        edit: DependencyEdit,
    },
}

pub(super) fn operate(
    state: &mut State,
    authority: &OperatorOverride,
    edit: &OperatorEdit,
    seen: &Observation<'_>,
) -> Decided {
    let now = seen.moment.wall;
    match edit {
        OperatorEdit::Add(new) => add(state, new, None, Some(authority), seen),
        OperatorEdit::Discover { parent, new } => {
            find(state, parent)?;
            let by = authority.operator();
            add(state, new, Some((parent, by)), Some(authority), seen)
        }
        OperatorEdit::Update { id, edit } => {
            let row = find(state, id)?;
            let mut change = RowChange::new();
            update(&mut change, row, edit, now)?;
            sign(&mut change, authority, now);
            changed(row, &change)
        }
        OperatorEdit::Dependency {
            id,
            depends_on,
            edit,
        } => {
            let row = find(state, id)?;
            let mut change = RowChange::new();
            change.set("dependencies", edges(state, row, depends_on, edit, now)?);
            change.touch(now);
            sign(&mut change, authority, now);
            let new = edited(row, &change)?;
            if !matches!(edit, DependencyEdit::Remove { .. }) {
                refuse_new_cycle(state, &row.clone(), &new)?;
            }
            Ok((vec![new.clone()], Outcome::Changed(Box::new(new))))
        }
    }
}

/// Writes who overrode the gate, and why where it was said.
pub(super) fn sign(change: &mut RowChange, authority: &OperatorOverride, now: jiff::Timestamp) {
    let mut record = json!({"operator": authority.operator(), "at": time::micros(now)});
    if let Some(reason) = authority.reason() {
        record["reason"] = reason.into();
    }
    change.set("operator_override", record);
}

fn update(
    change: &mut RowChange,
    row: &IssueRow,
    edit: &IssueEdit,
    now: jiff::Timestamp,
) -> Result<(), ChangeError> {
    if edit
        .title
        .as_deref()
        .is_some_and(|title| title.trim().is_empty())
    {
        return Err(ChangeError::Invalid(
            "the title must not be empty".to_owned(),
        ));
    }
    let mut text = |field: &'static str, value: &Option<String>| match value.as_deref() {
        None => {}
        Some("") => drop(change.remove(field)),
        Some(value) => drop(change.set(field, value)),
    };
    text("title", &edit.title);
    text("description", &edit.description);
    text("notes", &edit.notes);
    text("assignee", &edit.assignee);
    text("owner", &edit.owner);
    if let Some(priority) = edit.priority {
        change.set("priority", priority);
    }
    if let Some(status) = &edit.status {
        let status = Status::parse(status);
        if status != row.issue.status {
            change.set_status(&status, now);
        } else if status != Status::InProgress {
            // A lease that was left over goes with any other status.
            change.remove("lease");
        }
        if status == Status::Open {
            change.remove("retry_at");
        }
    }
    change.touch(now);
    Ok(())
}
