//! Requests that a step left for follow-up work (`contracts.md` 8).
//!
//! They are filed when the step's turn is MutationReady, and not before.

use crate::lane::files::OUTBOX;
use premath_kernel::issue::outbox::{
    DESCRIPTION_MAX, OutboxRequest, REQUESTS_MAX, TITLE_MAX, WORD_MAX,
};
use premath_kernel::json::id::IssueId;
use premath_kernel::json::plain::{visible, visible_line};
use premath_memory::untrusted::{OUTBOX_MAX, UntrustedError, UntrustedFolder};
use premath_memory::{NewIssue, artifact};

use std::path::{Path, PathBuf};

/// The outbox cannot be filed.
#[derive(Debug, thiserror::Error)]
pub(super) enum OutboxError {
    #[error("outbox line {line}: {detail}")]
    Line { line: usize, detail: String },
    #[error("the outbox has {0} requests; the limit is {REQUESTS_MAX}")]
    TooMany(usize),
    #[error("cannot read the outbox: {0}")]
    File(#[from] UntrustedError),
}

/// Reads the outbox of a step as it is; empty where there is none.
pub(super) fn read(folder: &UntrustedFolder) -> Result<Vec<u8>, OutboxError> {
    Ok(folder.read(OUTBOX, OUTBOX_MAX)?.unwrap_or_default())
}

/// Returns where the outbox of a landing is kept: work that landed is not done
/// a second time, and its requests are filed by the step that adopts it.
pub(super) fn kept(streams: &Path, issue_id: &IssueId, generation: u64) -> PathBuf {
    let landing = format!("{issue_id}.{generation}");
    artifact::of_step(streams, &landing, "landing", "outbox")
}

/// Reads the requests of an outbox.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<NewIssue>, OutboxError> {
    let lines: Vec<_> = bytes
        .split(|byte| *byte == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .collect();
    if lines.len() > REQUESTS_MAX {
        return Err(OutboxError::TooMany(lines.len()));
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
            request.check().map_err(|fault| wrong(fault.to_string()))?;
            Ok(NewIssue {
                title: visible_line(&request.title, TITLE_MAX),
                description: visible(&request.description.unwrap_or_default(), DESCRIPTION_MAX),
                priority: request.priority,
                issue_type: request.issue_type.map(|word| visible_line(&word, WORD_MAX)),
                labels: request
                    .labels
                    .unwrap_or_default()
                    .iter()
                    .map(|label| visible_line(label, WORD_MAX))
                    .filter(|label| !label.is_empty())
                    .collect(),
                ..NewIssue::default()
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_line_that_is_not_a_request_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let step = UntrustedFolder::make(folder.path(), Path::new("step")).unwrap();
        let path = step.path().join(OUTBOX);
        let read = |step: &UntrustedFolder| super::read(step).and_then(|bytes| parse(&bytes));
        assert!(read(&step).unwrap().is_empty());
        std::fs::write(
            &path,
            "{\"title\":\"a\",\"issueType\":\"bug\"}\n\n{\"title\":\" \"}\n",
        )
        .unwrap();
        assert_eq!(
            read(&step).unwrap_err().to_string(),
            "outbox line 3: `title` must not be empty"
        );
        let queue_jump = "{\"title\":\"a\",\"priority\":-5}\n";
        std::fs::write(&path, queue_jump).unwrap();
        assert_eq!(
            read(&step).unwrap_err().to_string(),
            "outbox line 1: `priority` is -5, and must not be negative"
        );
        std::fs::write(&path, "{\"title\":\"a\"}\n".repeat(21)).unwrap();
        assert_eq!(
            read(&step).unwrap_err().to_string(),
            "the outbox has 21 requests; the limit is 20"
        );
        std::fs::write(&path, "{\"title\":\"a\",\"issueType\":\"bug\"}\n").unwrap();
        assert_eq!(read(&step).unwrap()[0].issue_type.as_deref(), Some("bug"));
    }
}
