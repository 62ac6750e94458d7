//! The fields of an issue that a person sets.

use super::change::unreadable;
use crate::error::ChangeError;
use crate::row::IssueRow;
use premath_kernel::issue::lease;
use premath_kernel::issue::own_check::METADATA_FIELD;
use premath_kernel::issue::{RowChange, Status};
use serde_json::{Map, Value};

/// Fields of an issue to set; `None` leaves one as it is, an
/// empty text clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IssueEdit {
    /// The title.
    pub title: Option<String>,
    /// What is to be done.
    pub description: Option<String>,
    /// The command that verifies it, in the metadata.
    pub verification: Option<String>,
    /// How it is to be done.
    pub design: Option<String>,
    /// When it counts as done.
    pub acceptance_criteria: Option<String>,
    /// Notes.
    pub notes: Option<String>,
    /// The status.
    pub status: Option<String>,
    /// The priority.
    pub priority: Option<i64>,
    /// The type.
    pub issue_type: Option<String>,
    /// The labels, instead of those that it has.
    pub labels: Option<Vec<String>>,
    /// The assignee.
    pub assignee: Option<String>,
    /// The owner.
    pub owner: Option<String>,
}

impl IssueEdit {
    /// Returns the fields of a row as they are, every one.
    pub fn of(row: &IssueRow) -> Self {
        let issue = &row.issue;
        let metadata = row.field("metadata").ok().flatten();
        let verification = metadata.as_ref().and_then(|all| all.get(METADATA_FIELD));
        let verification = verification.and_then(Value::as_str).unwrap_or_default();
        let text = |field: &str| Some(row.text_of(field));
        Self {
            title: text("title"),
            description: text("description"),
            verification: Some(verification.to_owned()),
            design: text("design"),
            acceptance_criteria: text("acceptance_criteria"),
            notes: text("notes"),
            status: Some(issue.status.as_str().to_owned()),
            priority: Some(issue.priority),
            issue_type: Some(issue.issue_type.to_string()),
            labels: Some(issue.labels.iter().map(ToString::to_string).collect()),
            assignee: Some(issue.assignee.to_string()),
            owner: text("owner"),
        }
    }

    /// Returns the fields that differ from earlier ones, and no other.
    #[must_use]
    pub fn since(self, was: &Self) -> Self {
        fn changed<T: PartialEq>(now: Option<T>, was: Option<&T>) -> Option<T> {
            now.filter(|now| was != Some(now))
        }
        Self {
            title: changed(self.title, was.title.as_ref()),
            description: changed(self.description, was.description.as_ref()),
            verification: changed(self.verification, was.verification.as_ref()),
            design: changed(self.design, was.design.as_ref()),
            acceptance_criteria: changed(
                self.acceptance_criteria,
                was.acceptance_criteria.as_ref(),
            ),
            notes: changed(self.notes, was.notes.as_ref()),
            status: changed(self.status, was.status.as_ref()),
            priority: changed(self.priority, was.priority.as_ref()),
            issue_type: changed(self.issue_type, was.issue_type.as_ref()),
            labels: changed(self.labels, was.labels.as_ref()),
            assignee: changed(self.assignee, was.assignee.as_ref()),
            owner: changed(self.owner, was.owner.as_ref()),
        }
    }

    /// Returns the names of the fields that it sets, as a row has them.
    pub fn fields(&self) -> Vec<&'static str> {
        [
            ("title", self.title.is_some()),
            ("description", self.description.is_some()),
            ("verification", self.verification.is_some()),
            ("design", self.design.is_some()),
            ("acceptance_criteria", self.acceptance_criteria.is_some()),
            ("notes", self.notes.is_some()),
            ("status", self.status.is_some()),
            ("priority", self.priority.is_some()),
            ("issue_type", self.issue_type.is_some()),
            ("labels", self.labels.is_some()),
            ("assignee", self.assignee.is_some()),
            ("owner", self.owner.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_set)| is_set.then_some(name))
        .collect()
    }
}

/// Refuses an edit of fields that changed since the person read them.
pub(super) fn refuse_moved(
    row: &IssueRow,
    was: &IssueEdit,
    edit: &IssueEdit,
) -> Result<(), ChangeError> {
    let moved = IssueEdit::of(row).since(was).fields();
    let both = edit
        .fields()
        .into_iter()
        .filter(|name| moved.contains(name));
    let both: Vec<&str> = both.collect();
    if both.is_empty() {
        return Ok(());
    }
    Err(ChangeError::Invalid(format!(
        "issue {} changed while it was edited: {}",
        row.issue.id,
        both.join(", ")
    )))
}

pub(super) fn update(
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
        return Err(ChangeError::Invalid("the title is empty".to_owned()));
    }
    let mut text = |field: &'static str, value: &Option<String>| match value.as_deref() {
        None => {}
        Some("") => drop(change.remove(field)),
        Some(value) => drop(change.set(field, value)),
    };
    text("title", &edit.title);
    text("description", &edit.description);
    text("design", &edit.design);
    text("acceptance_criteria", &edit.acceptance_criteria);
    text("issue_type", &edit.issue_type);
    text("notes", &edit.notes);
    text("assignee", &edit.assignee);
    text("owner", &edit.owner);
    if let Some(command) = &edit.verification {
        set_verification(change, row, command)?;
    }
    if let Some(labels) = &edit.labels {
        match labels.is_empty() {
            true => drop(change.remove("labels")),
            false => drop(change.set("labels", labels)),
        }
    }
    if let Some(priority) = edit.priority {
        change.set("priority", priority);
    }
    if let Some(status) = &edit.status {
        let status = Status::parse(status);
        if status != row.issue.status {
            change.set_status(&row.issue, &status, now);
            // An issue that a step closed keeps its assignee until it is reopened.
            let is_left = row.issue.lease.is_some() || !status.is_terminal();
            if edit.assignee.is_none() && is_left {
                lease::without_claim(&row.issue, change);
            }
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

/// Sets the command that verifies an issue, or clears it; what else is in the
/// metadata stays.
fn set_verification(
    change: &mut RowChange,
    row: &IssueRow,
    command: &str,
) -> Result<(), ChangeError> {
    let mut metadata = match row.field("metadata") {
        Ok(None | Some(Value::Null)) => Map::new(),
        Ok(Some(Value::Object(fields))) => fields,
        _ => return Err(unreadable(row, "metadata")),
    };
    match command.trim() {
        "" => drop(metadata.remove(METADATA_FIELD)),
        command => drop(metadata.insert(METADATA_FIELD.to_owned(), command.into())),
    }
    match metadata.is_empty() {
        true => drop(change.remove("metadata")),
        false => drop(change.set("metadata", Value::Object(metadata))),
    }
    Ok(())
}
