//! Requests that a step's command leaves for its harness (`contracts.md` 8).

use super::write::{DiscoverAnswer, NewFields, words};
use crate::answer::Answer;
use crate::error::CliError;
use crate::paths::variable;
use crate::terminal::plain;
use premath_kernel::issue::outbox::OutboxRequest;
use premath_kernel::json::canonical::canonical;
use premath_memory::artifact;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A request that was left in a step's outbox.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueuedRequest {
    #[schemars(extend("const" = true))]
    queued: bool,
    /// The step.
    step_id: String,
    /// The outbox that has the request.
    outbox: String,
    /// The request.
    request: OutboxRequest,
}

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
    let outbox = outbox()?;
    let NewFields {
        id,
        description,
        verification,
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
        ("--verification", !verification.is_empty()),
        ("--acceptance-criteria", !acceptance_criteria.is_empty()),
        ("--notes", !notes.is_empty()),
        ("--assignee", !assignee.is_empty()),
        ("--owner", !owner.is_empty()),
    ] {
        if given {
            return Err(CliError::Usage(format!(
                "{flag} is not supported inside a step"
            )));
        }
    }
    let request = OutboxRequest {
        title: title.trim().to_owned(),
        description: Some(description),
        priority: Some(priority),
        issue_type: Some(issue_type),
        labels: Some(words(labels)),
        parent: Some(parent),
        asked_under: None,
    };
    queue(&outbox, step, request)
}

/// Returns the step's outbox.
pub(crate) fn outbox() -> Result<PathBuf, CliError> {
    Ok(variable("PREMATH_OUTBOX").ok_or(CliError::NoOutbox)?.into())
}

/// Leaves a request in an outbox: one line, one write.
///
/// # Errors
///
/// [`CliError::Store`].
pub(crate) fn queue(outbox: &Path, step: &str, request: OutboxRequest) -> Result<Answer, CliError> {
    request
        .check()
        .map_err(|fault| CliError::Usage(fault.to_string()))?;
    artifact::append_line(outbox, &canonical(&request))?;
    let text = format!(
        "queued {}: filed when the step's turn passes the gate\n",
        plain(&request.title)
    );
    let queued = QueuedRequest {
        queued: true,
        step_id: step.to_owned(),
        outbox: outbox.display().to_string(),
        request,
    };
    Ok(Answer::new(DiscoverAnswer::Queued(Box::new(queued)), text))
}
