//! Requests that a step's command leaves for its harness (`contracts.md` 8).

use super::write::{NewFields, words};
use crate::answer::Answer;
use crate::error::CliError;
use crate::paths::variable;
use crate::terminal::plain;
use premath_memory::artifact;
use serde_json::json;
use std::path::PathBuf;

/// Leaves a request to file an issue in the step's outbox: one line, one write.
///
/// # Errors
///
/// [`CliError::NoOutbox`], or a field that a request cannot carry.
pub(super) fn request(
    step: &str,
    parent: String,
    title: String,
    fields: NewFields,
) -> Result<Answer, CliError> {
    let outbox = PathBuf::from(variable("PREMATH_OUTBOX").ok_or(CliError::NoOutbox)?);
    let NewFields {
        id,
        description,
        acceptance_criteria,
        notes,
        priority,
        issue_type,
        labels,
        assignee,
        owner,
    } = fields;
    for (flag, given) in [
        ("--id", id.is_some()),
        ("--acceptance-criteria", !acceptance_criteria.is_empty()),
        ("--notes", !notes.is_empty()),
        ("--assignee", !assignee.is_empty()),
        ("--owner", !owner.is_empty()),
    ] {
        if given {
            return Err(CliError::Usage(format!(
                "{flag} cannot be given inside a step: the request has no place for it"
            )));
        }
    }
    let request = json!({
        "title": title.trim(),
        "description": description,
        "priority": priority,
        "issueType": issue_type,
        "labels": words(labels),
        "parent": parent,
    });
    artifact::append_line(&outbox, &request.to_string())?;
    Ok(Answer::new(
        json!({
            "queued": true,
            "stepId": step,
            "outbox": outbox.display().to_string(),
            "request": request,
        }),
        format!(
            "queued {}: it is filed when the step's turn passes the gate\n",
            plain(title.trim())
        ),
    ))
}
