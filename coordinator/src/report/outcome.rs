//! The lines at the end of a batch, for a person.

use super::human::{abbreviated, ending, seconds};
use super::next::next;
use super::sensitive::section;
use super::why::why;
use super::{DisabledLane, Summary};
use harness_worker::account;
use harness_worker::batch::foreign_warning;
use harness_worker::exit;
use harness_worker::step::StepReport;
use premath_kernel::authority::MutationMode;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::BatchId;
use premath_kernel::json::plain::{listed, plain};

/// How many disabled lanes are shown with the reason.
const DISABLED_SHOWN: usize = 5;

/// Returns what is reported of a batch, in order.
pub(super) fn lines(summary: &Summary) -> Vec<String> {
    let mut lines = vec![String::new()];
    if let Some(broken) = &summary.broken {
        lines.push(plain(&broken.text()).into_owned());
        lines.push(String::new());
    }
    lines.extend(of_tips(summary));
    lines.extend(section(summary));
    lines.extend(issues(summary));
    lines.extend(failures(summary));
    lines.extend(nothing_ready(summary));
    lines.push(counts(summary));
    lines.extend(landing(summary));
    lines.extend(flaky(summary));
    lines.extend(shared(summary));
    lines.extend(summary.push_failure.iter().map(|failure| {
        let failure = failure.to_string();
        plain(&failure).into_owned()
    }));
    lines.extend(account::lines(
        &summary.account,
        summary.ended_by,
        summary.ended_at,
    ));
    lines.extend(warnings(summary));
    lines.extend(next(summary));
    if let Some(path) = &summary.kept {
        lines.push(format!(
            "report saved in {}; `premath report` has more",
            path.display()
        ));
    }
    lines
}

/// The table of the issues that were worked on.
fn issues(summary: &Summary) -> Vec<String> {
    let mut issues: Vec<_> = summary.issues.iter().collect();
    if issues.is_empty() {
        return Vec::new();
    }
    issues.sort_by(|a, b| a.2.issue_id.cmp(&b.2.issue_id));
    let heads = ["issue", "outcome", "attempts", "lane", "class", "where"];
    let mut rows = vec![heads.map(str::to_owned)];
    for (worker, attempts, report) in issues {
        let class = report.failure_classes.first();
        rows.push([
            plain(&report.issue_id).into_owned(),
            ending(report),
            attempts.to_string(),
            worker.to_string(),
            class.map_or_else(|| "-".to_owned(), |class| plain(class).into_owned()),
            kept_at(report),
        ]);
    }
    let mut lines = table(&rows);
    lines.push(String::new());
    lines
}

/// Says where a step's work is: in another world, in a commit, on a branch.
fn kept_at(report: &StepReport) -> String {
    let commit = report.commit.as_ref();
    let commit = commit.map(|id| format!("commit {}", abbreviated(id)));
    let world = report.world.as_ref();
    let world = world.map(|world| plain(&world.to_string()).into_owned());
    let kept = [world, commit.or_else(|| report.salvage.clone())];
    let kept = kept
        .into_iter()
        .flatten()
        .reduce(|a, b| format!("{a}, {b}"));
    kept.unwrap_or_else(|| "-".to_owned())
}

/// Says why issues did not close.
fn failures(summary: &Summary) -> Vec<String> {
    let reports = summary.issues.iter().map(|(_, _, report)| report);
    let mut failed: Vec<&StepReport> = reports.filter(|report| !report.succeeded()).collect();
    if failed.is_empty() {
        return Vec::new();
    }
    failed.sort_by(|a, b| a.issue_id.cmp(&b.issue_id));
    let mut lines = Vec::new();
    for report in failed {
        lines.extend(why(report, summary.judged.get(&report.issue_id)));
    }
    lines.push(String::new());
    lines
}

fn counts(summary: &Summary) -> String {
    let reports = summary.issues.iter().map(|(_, _, report)| report);
    let closed = reports.filter(|report| report.succeeded()).count();
    let counts = summary.counts.iter();
    let counts: Vec<String> = counts
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    format!(
        "{closed} of {} attempted issues closed in {}; issue store: {}",
        summary.issues.len(),
        seconds(summary.elapsed),
        counts.join(", ")
    )
}

/// Says what landed of what was closed, and what changed nothing.
fn landing(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(check) = &summary.landing {
        let tip = check
            .tip
            .as_deref()
            .map_or("which no longer exists", |tip| &tip[..tip.len().min(10)]);
        let rest = match check.landed - summary.landed() {
            0 => String::new(),
            unchanged => format!("; {unchanged} without changes"),
        };
        lines.push(format!(
            "{} of {} closed issues landed on {}, {tip}{rest}",
            summary.landed(),
            check.landed + check.missing.len(),
            plain(&check.target)
        ));
        if !check.missing.is_empty() {
            let missing = check.missing.join(", ");
            lines.push(format!("closed, but not landed: {}", plain(&missing)));
        }
    }
    let unchanged = summary.unchanged();
    if !unchanged.is_empty() {
        lines.push(format!(
            "closed without changes, by the verification alone: {}",
            plain(&listed(&unchanged))
        ));
    }
    lines
}

/// Says whose verifications failed and passed when they were repeated.
fn flaky(summary: &Summary) -> Option<String> {
    let reports = summary.issues.iter().map(|(_, _, report)| report);
    let mut flaky: Vec<&str> = reports
        .filter(|report| report.flaky > 0)
        .map(|report| report.issue_id.as_str())
        .collect();
    flaky.sort_unstable();
    let issues = listed(&flaky);
    let issues = plain(&issues);
    (!flaky.is_empty()).then(|| {
        let count = flaky.len();
        format!("verification flaky in {count} issue(s), failed and passed on one tree: {issues}")
    })
}

/// Says whose work was verified only together with later work.
fn shared(summary: &Summary) -> Option<String> {
    let reports = summary.issues.iter().map(|(_, _, report)| report);
    let mut shared: Vec<&str> = reports
        .filter(|report| report.shared.is_some())
        .map(|report| report.issue_id.as_str())
        .collect();
    shared.sort_unstable();
    let issues = listed(&shared);
    let issues = plain(&issues);
    (!shared.is_empty()).then(|| {
        let count = shared.len();
        format!("{count} issue(s) verified only together with later work (`batch`): {issues}")
    })
}

/// Says what a person should know about the batch.
fn warnings(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    if summary.memory_changes > 0 {
        lines.push(format!(
            "issue store changed {} time(s) outside a transaction; the rows are in the run log \
             ({})",
            summary.memory_changes,
            FailureClass::MemoryChangedOutside
        ));
    }
    if let Some(warning) = foreign_warning(&summary.foreign_rows) {
        lines.push(format!("warning: {}", plain(&warning)));
    }
    if !summary.disabled.is_empty() {
        lines.push(format!("{} lane(s) disabled", summary.disabled.len()));
        lines.extend(disabled(&summary.disabled, &summary.batch_id));
    }
    if summary.acts_under.mutation_mode == MutationMode::HUMAN_OVERRIDE {
        let reason = plain(&summary.acts_under.reason);
        lines.push(format!(
            "authorised by an operator override, without an instruction: {reason}"
        ));
    }
    if let Some(path) = &summary.cycle {
        lines.push(format!(
            "blocked by a dependency cycle: {}",
            plain(&path.join(" -> "))
        ));
    }
    lines
}

/// Says which lanes were disabled and why, each with its hint.
fn disabled(lanes: &[DisabledLane], batch_id: &BatchId) -> Vec<String> {
    let mut lines = Vec::new();
    for lane in lanes.iter().take(DISABLED_SHOWN) {
        let (name, detail) = (plain(&lane.name), plain(&lane.detail));
        lines.push(format!("  {name}: {}: {detail}", lane.class));
        lines.extend(lane.hint.iter().map(|hint| format!("    {}", plain(hint))));
    }
    let more = lanes.len().saturating_sub(DISABLED_SHOWN);
    if more > 0 {
        lines.push(format!(
            "  and {more} more; `premath report --batch {batch_id}` lists all"
        ));
    }
    lines
}

/// Says which last commits do not pass without build state.
fn of_tips(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    for tip in summary.tips.iter().filter(|tip| !tip.passed) {
        lines.push(plain(&tip.to_string()).into_owned());
        let advice = match tip.output {
            Some(_) => {
                "every step passed with the build state of the base: find the one that broke it"
            }
            None => "every step was verified with the build state of the base: verify it yourself",
        };
        lines.push(format!("  {advice} before you merge"));
        lines.push(String::new());
    }
    lines
}

/// Says why a batch that ended by itself worked on nothing.
fn nothing_ready(summary: &Summary) -> Option<String> {
    let is_whole = summary.disabled.is_empty() && summary.ended_by.is_none();
    if !summary.issues.is_empty() || !is_whole || summary.exit_code != exit::OK {
        return None;
    }
    let count = |name: &str| summary.counts.get(name).copied().unwrap_or(0);
    let mut text = format!(
        "no issue was ready: {} waiting, {} blocked",
        count("waiting"),
        count("blocked")
    );
    if count("ready") > 0 {
        text.push_str(&format!(
            ", {} ready but not taken (`premath why ID` gives the reason)",
            count("ready")
        ));
    }
    Some(text)
}

/// One line a row, columns as wide as their widest cell.
fn table(rows: &[[String; 6]]) -> Vec<String> {
    let mut widths = [0; 6];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    rows.iter()
        .map(|row| {
            let cells: Vec<String> = row
                .iter()
                .zip(widths)
                .map(|(cell, width)| format!("{cell:<width$}"))
                .collect();
            cells.join("  ").trim_end().to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disabled_lanes_are_named_with_reason_and_output_and_many_are_counted() {
        let lane = |number: usize| DisabledLane {
            name: format!("worker.{number}"),
            class: FailureClass::HookFailed,
            detail: "the setup command failed\u{1b}[2J".to_owned(),
            hint: (number == 1).then(|| "output: /s/setup.stderr".to_owned()),
        };
        let all: Vec<DisabledLane> = (1..=DISABLED_SHOWN + 2).map(lane).collect();
        let few = disabled(&all[..2], &"hb1_a".into());
        assert_eq!(
            few,
            [
                "  worker.1: hook_failed: the setup command failed\\u{1b}[2J",
                "    output: /s/setup.stderr",
                "  worker.2: hook_failed: the setup command failed\\u{1b}[2J",
            ]
        );
        let many = disabled(&all, &"hb1_a".into());
        let last = many.last().map(String::as_str);
        let said = "  and 2 more; `premath report --batch hb1_a` lists all";
        assert_eq!(last, Some(said));
    }
}
