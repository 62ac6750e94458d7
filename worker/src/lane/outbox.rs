//! Requests that a step left for follow-up work (`contracts.md` 8).
//!
//! They are filed when the step's turn is MutationReady, and not before.

use premath_kernel::outbox::OutboxRequest;
use premath_memory::{NewIssue, StoreError, artifact};
use std::path::Path;

/// More requests of one step than this are a mistake of the agent.
const REQUESTS_MAX: usize = 100;

/// The outbox cannot be filed.
#[derive(Debug, thiserror::Error)]
pub(super) enum OutboxError {
    #[error("outbox line {line}: {detail}")]
    Line { line: usize, detail: String },
    #[error("the outbox holds more than {REQUESTS_MAX} requests")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads the requests of a step; none where there is no outbox.
pub(super) fn read(path: &Path) -> Result<Vec<NewIssue>, OutboxError> {
    let Some(bytes) = artifact::read(path)? else {
        return Ok(Vec::new());
    };
    let lines: Vec<_> = bytes
        .split(|byte| *byte == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .collect();
    if lines.len() > REQUESTS_MAX {
        return Err(OutboxError::TooMany);
    }
    lines
        .into_iter()
        .map(|(index, line)| {
            let wrong = |detail: String| OutboxError::Line {
                line: index + 1,
                detail,
            };
            let request: OutboxRequest =
                serde_json::from_slice(line).map_err(|error| wrong(error.to_string()))?;
            if request.title.trim().is_empty() {
                return Err(wrong("`title` must not be empty".to_owned()));
            }
            Ok(NewIssue {
                title: request.title,
                description: request.description.unwrap_or_default(),
                priority: request.priority,
                issue_type: request.issue_type,
                labels: request.labels.unwrap_or_default(),
                ..NewIssue::default()
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_request_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("outbox.jsonl");
        assert!(read(&path).unwrap().is_empty());
        std::fs::write(
            &path,
            "{\"title\":\"a\",\"issueType\":\"bug\"}\n\n{\"title\":\" \"}\n",
        )
        .unwrap();
        assert_eq!(
            read(&path).unwrap_err().to_string(),
            "outbox line 3: `title` must not be empty"
        );
        std::fs::write(&path, "{\"title\":\"a\",\"issueType\":\"bug\"}\n").unwrap();
        assert_eq!(read(&path).unwrap()[0].issue_type.as_deref(), Some("bug"));
    }
}
