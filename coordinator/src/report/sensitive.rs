//! Closed work that changed verification, CI, hooks, build or dependencies: a
//! person looks at it first.

use super::Summary;
use harness_worker::step::StepReport;
use premath_kernel::json::plain::{is_cut, plain};

/// The title of the section.
pub(super) const TITLE: &str = "changes to verification, CI, hooks, dependencies";

/// How many paths of an issue are shown.
const SHOWN: usize = 10;

/// Returns the section, no line where there is nothing to look at.
pub(super) fn section(summary: &Summary) -> Vec<String> {
    let mut reports: Vec<&StepReport> = summary
        .issues
        .iter()
        .map(|(_, _, report)| report)
        .filter(|report| !report.sensitive_changes().is_empty())
        .collect();
    if reports.is_empty() {
        return Vec::new();
    }
    reports.sort_by(|a, b| a.issue_id.cmp(&b.issue_id));
    let mut lines = vec![format!("{TITLE}:")];
    for report in reports {
        lines.extend(of_issue(report));
    }
    lines.push(String::new());
    lines
}

fn of_issue(report: &StepReport) -> Vec<String> {
    let changes = report.sensitive_changes();
    let shown = &changes[..changes.len().min(SHOWN)];
    let items: Vec<String> = shown
        .iter()
        .map(|change| format!("{} ({})", plain(&change.path), change.category))
        .collect();
    let left = report.sensitive.count.saturating_sub(shown.len() as u64);
    let more = match left {
        0 => String::new(),
        left => format!(", and {left} more"),
    };
    let issue = plain(&report.issue_id);
    let mut lines = vec![format!("  {issue}: {}{more}", items.join(", "))];
    if let (Some(base), Some(commit)) = (&report.base, &report.commit) {
        // The head of a path that is long leads to nothing.
        let whole = shown.iter().filter(|change| !is_cut(&change.path));
        let paths: Vec<String> = whole.map(|change| quoted(&change.path)).collect();
        lines.push(format!(
            "    git diff {} {} -- {}",
            short(base),
            short(commit),
            paths.join(" ")
        ));
    }
    lines
}

fn short(commit: &str) -> &str {
    &commit[..commit.len().min(10)]
}

/// Returns a path as a shell reads it.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./+@".contains(c);
    if path.chars().all(is_plain) && !path.starts_with('-') {
        return path.to_owned();
    }
    let text = plain(path).replace('\'', "'\\''");
    format!("':(literal){text}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        for (path, expected) in [
            (".github/workflows/ci.yml", ".github/workflows/ci.yml"),
            ("a b", "':(literal)a b'"),
            ("it's", "':(literal)it'\\''s'"),
            ("$(x)", "':(literal)$(x)'"),
        ] {
            assert_eq!(quoted(path), expected);
        }
    }
}
