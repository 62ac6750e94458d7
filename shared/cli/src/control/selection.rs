//! Which issues a command is about: by id, or by what they have in common.

use crate::error::CliError;
use premath_kernel::issue::Issue;
use premath_kernel::json::id::IssueId;
use premath_memory::IssueMemory;

/// Returns the ids that are given, each once, or those of the issues that fit,
/// sorted.
///
/// # Errors
///
/// [`CliError::Store`]; [`CliError::Usage`] where no issue fits.
pub(super) fn selected(
    memory: &IssueMemory,
    ids: Vec<String>,
    fits: impl Fn(&Issue) -> bool,
) -> Result<Vec<IssueId>, CliError> {
    if !ids.is_empty() {
        return Ok(super::each_once(ids));
    }
    let mut found: Vec<IssueId> = memory.view(|view| {
        let rows = view.rows().filter(|row| fits(&row.issue));
        rows.map(|row| IssueId::from(&*row.issue.id)).collect()
    })?;
    found.sort();
    if found.is_empty() {
        return Err(CliError::ControlRefused("no issue fits".to_owned()));
    }
    Ok(found)
}

/// Returns whether an issue has one of the labels; yes where none is given.
pub(super) fn has_label(issue: &Issue, labels: &[String]) -> bool {
    let has = |label: &String| issue.labels.iter().any(|own| **own == **label);
    labels.is_empty() || labels.iter().any(has)
}
