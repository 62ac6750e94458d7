//! What a person may do next, a command each, and what waits for what.

use super::Summary;
use super::why::changed_nothing;
use harness_worker::step::{StepEnding, StepReport};
use premath_kernel::json::plain::{self, plain, shell_word};
use premath_kernel::record::salvage;

/// How many commands of a kind, or issues that wait, are reported.
const SHOWN: usize = 5;

/// A command, and what it is for.
type NextStep = (String, String);

/// Returns the lines on what comes next, none where there is nothing to do.
pub(super) fn next(summary: &Summary) -> Vec<String> {
    let mut issues: Vec<&StepReport> = summary.issues.iter().map(|(.., report)| report).collect();
    issues.sort_by(|a, b| a.issue_id.cmp(&b.issue_id));
    let check = summary.landing.as_ref();
    let target = check.filter(|check| check.tip.is_some());
    let mut steps: Vec<NextStep> = Vec::new();
    if let Some(broken) = &summary.broken {
        steps.push((
            broken.revert(),
            "take off what failed, before the next batch".to_owned(),
        ));
    } else if let Some(check) = target
        && summary.landed() > 0
        && summary.tips.iter().all(|tip| tip.passed)
    {
        steps.push((
            format!("git merge {}", word(&check.target)),
            "merge what landed into the current branch".to_owned(),
        ));
    }
    let base = target.map_or("HEAD", |check| &check.target);
    steps.extend(few(issues
        .iter()
        .filter_map(|report| show_salvage(report, base))
        .collect()));
    let is_held = |report: &&&StepReport| match report.ending {
        StepEnding::Blocked => true,
        StepEnding::Cancelled => !summary.open.contains(&report.issue_id),
        _ => false,
    };
    let held = issues.iter().filter(is_held);
    steps.extend(few(held.map(|report| reopen(report)).collect()));
    // What is broken goes to no remote.
    if let Some(failure) = &summary.push_failure
        && summary.broken.is_none()
    {
        let [remote, branch] = [&failure.remote, &failure.target].map(|text| word(text));
        steps.push((
            format!("git push {remote} {branch}"),
            "push what landed; the next batch does it too".to_owned(),
        ));
    }
    let is_missing = check.is_some_and(|check| !check.missing.is_empty());
    if is_missing {
        steps.push((
            "premath doctor".to_owned(),
            "list what is inconsistent or left over".to_owned(),
        ));
    }
    let mut lines = listed(&steps);
    lines.extend(tried_again(&issues, summary));
    lines.extend(summary.set_aside.text());
    lines.extend(waiting(summary));
    lines
}

/// Says which issues the next batch works on again by itself.
fn tried_again(issues: &[&StepReport], summary: &Summary) -> Option<String> {
    let is_open = |report: &&StepReport| {
        !matches!(report.ending, StepEnding::Closed | StepEnding::Blocked)
            && report.world.is_none()
            && summary.open.contains(&report.issue_id)
    };
    let is_aside = |id: &str| summary.set_aside.issues.iter().any(|aside| *aside == id);
    let open = issues.iter().copied().filter(is_open);
    let ids: Vec<&str> = open.map(|report| report.issue_id.as_str()).collect();
    let ids: Vec<&str> = ids.into_iter().filter(|id| !is_aside(id)).collect();
    let named = plain::listed(&ids);
    (!ids.is_empty()).then(|| format!("the next batch works on these again: {}", plain(&named)))
}

/// Returns how the work is shown that an issue which did not close left.
fn show_salvage(report: &StepReport, base: &str) -> Option<NextStep> {
    let branch = branch_of(report).filter(|_| !report.succeeded())?;
    Some((
        format!("git diff {}...{}", word(base), word(branch)),
        format!("show the work that {} left", plain(&report.issue_id)),
    ))
}

/// Returns how a blocked issue is opened again.
fn reopen(report: &StepReport) -> NextStep {
    let id = &report.issue_id;
    (
        format!("premath retry {} --note \"…\"", word(id)),
        format!("try {} again with a hint", plain(id)),
    )
}

/// Returns commands one a line, with what they are for in a column.
fn listed(steps: &[NextStep]) -> Vec<String> {
    if steps.is_empty() {
        return Vec::new();
    }
    let width = steps.iter().map(|(command, _)| command.chars().count());
    let width = width.max().unwrap_or(0);
    let lines = steps
        .iter()
        .map(|(command, what)| format!("  {command:<width$}  {what}").trim_end().to_owned());
    std::iter::once("next:".to_owned()).chain(lines).collect()
}

/// Says which open issues wait, and for what.
fn waiting(summary: &Summary) -> Vec<String> {
    let waiting = summary.waiting.iter().take(SHOWN);
    let mut lines: Vec<String> = waiting
        .map(|(issue, holds)| {
            format!(
                "{} is blocked by {}",
                plain(issue),
                plain(&holds.join(", "))
            )
        })
        .collect();
    if summary.waiting.len() > SHOWN {
        lines.push(format!(
            "{} more are blocked; `premath issue blocked` lists all",
            summary.waiting.len() - SHOWN
        ));
    }
    lines
}

/// Returns the branch here that what a step left is on; it may be named with
/// more beside it.
fn branch_of(report: &StepReport) -> Option<&str> {
    salvage::branches(report.salvage.as_deref()?).next()
}

/// Leaves out what is too much to read, and says how much that is.
fn few(mut steps: Vec<NextStep>) -> Vec<NextStep> {
    if let Some(more) = steps.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        steps.truncate(SHOWN);
        if let Some((_, what)) = steps.last_mut() {
            what.push_str(&format!("; the same for {more} more"));
        }
    }
    steps
}

/// Returns a word as a shell takes it, with nothing that acts on a terminal.
pub(super) fn word(text: &str) -> String {
    shell_word(&plain(text))
}

impl Summary {
    /// Returns the issues that were closed with nothing changed for them, by id.
    pub(super) fn unchanged(&self) -> Vec<&str> {
        let reports = self.issues.iter().map(|(.., report)| report);
        let mut unchanged: Vec<&str> = reports
            .filter(|report| changed_nothing(report))
            .map(|report| &*report.issue_id)
            .collect();
        unchanged.sort_unstable();
        unchanged
    }

    /// Returns how many closed issues brought something to the target.
    pub(super) fn landed(&self) -> usize {
        let Some(check) = &self.landing else {
            return 0;
        };
        let is_counted = |issue: &&str| !check.missing.iter().any(|missing| missing == issue);
        let unchanged = self.unchanged().into_iter().filter(is_counted).count();
        check.landed.saturating_sub(unchanged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_a_shell_would_take_apart_is_quoted() {
        assert_eq!(word("harness/salvage/wk-1/2"), "harness/salvage/wk-1/2");
        assert_eq!(word("a b"), "'a b'");
        assert_eq!(word("it's"), "'it'\\''s'");
        assert_eq!(word(""), "''");
    }

    #[test]
    fn of_many_steps_a_few_are_reported() {
        let steps = |count: usize| -> Vec<(String, String)> {
            let step = |n: usize| (format!("do {n}"), "it".to_owned());
            (0..count).map(step).collect()
        };
        assert_eq!(few(steps(SHOWN)), steps(SHOWN));
        let shown = few(steps(SHOWN + 3));
        assert_eq!(shown.len(), SHOWN);
        assert_eq!(shown[SHOWN - 1].1, "it; the same for 3 more");
    }
}
