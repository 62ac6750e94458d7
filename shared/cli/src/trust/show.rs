//! What a person sees of changed governing files.

use super::ShownChange;
use crate::error::CliError;
use crate::terminal::plain;
use premath_kernel::policy::trust::{ChangeKind, FileChange, TrustRecord};
use premath_worktree::governing::{self, GoverningSurvey};
use std::fmt::Write;
use std::path::Path;

/// How many lines of a file's difference are shown, and of all files.
const LINES_MAX: usize = 200;
const ALL_MAX: usize = 2_000;

/// Returns the difference of a file since it was accepted. Where the content
/// that was accepted was never committed, the whole file is new.
pub(super) fn difference(
    root: &Path,
    record: &TrustRecord,
    change: &FileChange,
) -> Result<String, CliError> {
    let path = &change.path;
    let accepted = record.files().0.get(path);
    let before = accepted
        .zip(record.head.as_deref())
        .and_then(|(digest, head)| governing::committed(root, head, path, digest));
    let after = governing::content(root, path)?.unwrap_or_default();
    let is_unknown = before.is_none() && change.kind != ChangeKind::Added;
    let diff = governing::difference(path, &before.unwrap_or_default(), &after);
    let mut text = String::new();
    if is_unknown {
        text.push_str("the accepted content was never committed; showing the current file\n");
    }
    let lines = diff.lines().count();
    for line in diff.lines().take(LINES_MAX) {
        let _ = writeln!(text, "{line}");
    }
    if lines > LINES_MAX {
        let _ = writeln!(text, "… {} more line(s)", lines - LINES_MAX);
    }
    Ok(text)
}

/// Returns what is shown: what is on record, and what changed since.
pub(super) fn text(
    record: Option<&TrustRecord>,
    now: &GoverningSurvey,
    changes: &[ShownChange],
) -> String {
    let mut text = String::new();
    let Some(record) = record else {
        text.push_str("no files are accepted yet; these files govern batches here:\n");
        for path in now.files.0.keys() {
            let _ = writeln!(text, "  {}", plain(path));
        }
        return text;
    };
    let _ = writeln!(
        text,
        "{} file(s) accepted at {} by {}, {}",
        record.files().0.len(),
        plain(record.accepted_at()),
        plain(&record.accepted_by),
        plain(record.digest()),
    );
    if changes.is_empty() {
        text.push_str("unchanged since then\n");
        return text;
    }
    for change in changes {
        let origin = match change.landed {
            true => ", changed by a step",
            false => "",
        };
        let path = plain(&change.path);
        let _ = writeln!(text, "{} {path}{origin}", change.kind.as_str());
    }
    let lines = changes.iter().flat_map(|change| change.diff.lines());
    for line in lines.take(ALL_MAX) {
        let _ = writeln!(text, "{}", plain(line));
    }
    text
}
