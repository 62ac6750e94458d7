//! Commands as they must be typed.

use super::{NextCommand, ReportedIssue};
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::Status;
use premath_kernel::json::plain::{plain, shell_word};

/// The most issues that one command names.
const NAMED: usize = 20;

/// Returns a word as a shell takes it, with nothing that acts on a terminal.
pub(super) fn word(text: &str) -> String {
    shell_word(&plain(text))
}

/// Returns ids as arguments: one that begins as a flag comes after `--`.
fn ids<'a>(issues: impl Iterator<Item = &'a str>) -> String {
    let ids: Vec<&str> = issues.collect();
    let dashes = ids.iter().any(|id| id.starts_with('-'));
    let words: Vec<String> = ids.iter().map(|id| word(id)).collect();
    let dashes = if dashes { "-- " } else { "" };
    format!("{dashes}{}", words.join(" "))
}

/// Returns the command that retries issues with a note.
fn retry<'a>(issues: impl Iterator<Item = &'a str>) -> String {
    let ids = ids(issues);
    match ids.strip_prefix("-- ") {
        Some(_) => format!("premath retry --note \"…\" {ids}"),
        None => format!("premath retry {ids} --note \"…\""),
    }
}

/// Returns the command that shows what a branch has beside another.
pub(super) fn show_branch(target: &str, branch: &str) -> String {
    format!("git diff {}...{}", word(target), word(branch))
}

/// Returns the command that shows a commit.
pub(super) fn show_commit(commit: &str) -> String {
    format!("git show {}", word(commit.get(..12).unwrap_or(commit)))
}

fn command(command: String, purpose: impl Into<String>) -> NextCommand {
    NextCommand {
        command,
        purpose: purpose.into(),
    }
}

/// Returns whether an issue may be tried again: an operator may have closed it since.
fn is_tried(issue: &ReportedIssue) -> bool {
    let status = issue.status.as_deref();
    status.is_none_or(|status| !Status::parse(status).is_terminal())
}

/// Returns how an issue is tried again.
fn again(issue: &ReportedIssue) -> NextCommand {
    let no_change = FailureClass::WorkNoChange.as_str();
    let purpose = match issue.failure_class.as_deref() == Some(no_change) {
        true => "try it again with a hint; with the label no-change it may change nothing",
        false => "try it again with a hint",
    };
    command(retry(std::iter::once(issue.issue_id.as_str())), purpose)
}

/// Returns what to do next about an issue that did not close.
pub(super) fn of_failed(issue: &ReportedIssue, target: &str) -> Vec<NextCommand> {
    let id = issue.issue_id.as_str();
    let mut next = Vec::new();
    if is_tried(issue) {
        next.push(again(issue));
    }
    next.push(command(
        format!("premath issue show {}", ids(std::iter::once(id))),
        "show all of its attempts",
    ));
    next.extend(
        issue
            .salvage_branches
            .iter()
            .take(NAMED)
            .map(|branch| command(show_branch(target, branch), "show the work that it left")),
    );
    next
}

/// Returns what to do next about a report.
pub(super) fn of_report(
    failed: &[ReportedIssue],
    to_review: usize,
    landed_on: Option<&str>,
) -> Vec<NextCommand> {
    let mut next = Vec::new();
    if to_review > 0 {
        next.push(command(
            "premath review".to_owned(),
            "go through what landed or was salvaged, in this order",
        ));
    }
    if let Some(target) = landed_on {
        let merge = format!("git merge {}", word(target));
        next.push(command(merge, "merge what landed into the current branch"));
    }
    let failed: Vec<&str> = failed
        .iter()
        .filter(|issue| is_tried(issue))
        .map(|issue| issue.issue_id.as_str())
        .collect();
    if !failed.is_empty() {
        let named = failed.iter().take(NAMED).copied();
        let purpose = match failed.len().saturating_sub(NAMED) {
            0 => "try what failed again".to_owned(),
            more => format!("try what failed again; {more} more failed"),
        };
        next.push(command(retry(named), purpose));
    }
    next
}
