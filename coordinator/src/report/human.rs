//! Lines for a person, on stderr, and the table at the end.

use super::bound;
use super::next::next;
use super::sensitive::section;
use super::why::{REFUSES_NO_CHANGE, changed_nothing, why};
use super::{Notice, Reporter, Summary};
use harness_worker::account;
use harness_worker::batch::foreign_warning;
use harness_worker::exit;
use harness_worker::interrupt::Level;
use harness_worker::stderr::{baseline_told, end_told};
use harness_worker::step::{StepEnding, StepReport};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::plain::plain;
use premath_kernel::policy::landing::LandingMode;
use std::io::Write;
use std::time::Duration;

/// Writes lines.
#[derive(Debug)]
pub struct HumanReporter<W> {
    out: W,
}

impl<W: Write> HumanReporter<W> {
    /// Writes to a stream; what cannot be written is not missed.
    pub const fn new(out: W) -> Self {
        Self { out }
    }

    /// Returns what it wrote to.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn line(&mut self, text: &str) {
        // In one write: stderr is not buffered.
        let _ = self.out.write_all(format!("{text}\n").as_bytes());
    }
}

impl<W: Write> Reporter for HumanReporter<W> {
    fn notice(&mut self, notice: &Notice<'_>) {
        match notice {
            Notice::BatchStarted {
                batch_id,
                resumed,
                lanes,
                mode,
                issues_path,
                landing,
                ends_at,
                sandbox,
            } => {
                let verb = if *resumed { "continues" } else { "begins" };
                self.line(&format!(
                    "batch {batch_id} {verb}: {lanes} lane(s), issues in {}",
                    issues_path.display()
                ));
                self.line(&plain(&mode.told()));
                self.line(&plain(&sandbox.told()));
                if let Some(rule) = landing {
                    self.line(&match rule.mode {
                        LandingMode::Merge => {
                            format!(
                                "attempts start from {0} and land on it",
                                plain(&rule.target)
                            )
                        }
                        _ => format!("attempts start from {}", plain(&rule.target)),
                    });
                }
                if let Some(at) = ends_at {
                    self.line(&end_told(*at));
                }
            }
            Notice::TargetSync(target_sync) => {
                let warning = if target_sync.is_warning() {
                    "warning: "
                } else {
                    ""
                };
                self.line(&format!("{warning}{}", plain(&target_sync.to_string())));
            }
            Notice::LaneBooted {
                worker_id,
                worktree,
                report,
            } => {
                let mut text = format!("{worker_id} ready in {}", worktree.display());
                if let Some(branch) = &report.salvage {
                    text.push_str(&format!(", leftover work saved on {branch}"));
                }
                self.line(&text);
                for warning in &report.warnings {
                    self.line(&format!("  warning: {}", plain(warning)));
                }
            }
            Notice::LaneGivenUp {
                worker_id,
                worktree,
                class,
                detail,
                hint,
            } => {
                self.line(&format!(
                    "{worker_id} disabled ({}): {class}: {}",
                    worktree.display(),
                    plain(detail)
                ));
                if let Some(hint) = hint {
                    self.line(&format!("  hint: {}", plain(hint)));
                }
            }
            Notice::Dispatched { worker_id, claim } => self.line(&format!(
                "{worker_id} started {} {}",
                plain(&claim.claim.issue_id),
                plain(&claim.row.text_of("title"))
            )),
            Notice::StepEnded { worker_id, report } => {
                self.line(&format!(
                    "{worker_id} {} {} after {}{}",
                    plain(&report.issue_id),
                    ending(report),
                    seconds(Duration::from_millis(report.duration_ms)),
                    reasons(report)
                ));
            }
            Notice::Cycle { path } => self.line(&format!(
                "dependency cycle among the active issues; its members are blocked: {}",
                plain(&path.join(" -> "))
            )),
            Notice::Waiting { until } => {
                self.line(&format!("no issue is ready; next retry at {until:.0}"));
            }
            Notice::Changed(change) => self.line(&plain(&change.to_string())),
            Notice::BaselineChecked { worker_id, passes } => {
                self.line(&format!("{worker_id}: {}", baseline_told(*passes)));
            }
            Notice::Room(Some(short)) => self.line(&format!("no new attempts start: {short}")),
            Notice::Room(None) => self.line("free disk and memory are sufficient again"),
            Notice::Warning { detail } => self.line(&format!("warning: {}", plain(detail))),
            Notice::Ending { ended_by, detail } => self.line(&bound::ending(*ended_by, detail)),
            Notice::Interrupted { level } => self.line(match level {
                Level::Kill => "interrupted again: cancelling running steps",
                _ => "interrupted: draining, running steps finish (interrupt again to cancel them)",
            }),
            Notice::MemoryChanged { change } => self.line(&format!(
                "warning: {}: {}",
                FailureClass::MemoryChangedOutside,
                plain(&change.told())
            )),
            Notice::StoreLost { detail } => self.line(&format!("error: {}", plain(detail))),
        }
    }

    fn summary(&mut self, summary: &Summary) {
        let mut rows: Vec<[String; 6]> = vec![[
            "issue".into(),
            "outcome".into(),
            "attempts".into(),
            "lane".into(),
            "class".into(),
            "where".into(),
        ]];
        let mut issues: Vec<_> = summary.issues.iter().collect();
        issues.sort_by(|a, b| a.2.issue_id.cmp(&b.2.issue_id));
        for (worker, attempts, report) in issues {
            let commit = report.commit.as_ref();
            let commit = commit.map(|id| format!("commit {}", &id[..id.len().min(10)]));
            let world = report.world.as_ref();
            let world = world.map(|world| plain(&world.to_string()).into_owned());
            let places = [world, commit.or_else(|| report.salvage.clone())];
            let place = places
                .into_iter()
                .flatten()
                .reduce(|a, b| format!("{a}, {b}"));
            let place = place.unwrap_or_else(|| "-".to_owned());
            rows.push([
                plain(&report.issue_id).into_owned(),
                ending(report),
                attempts.to_string(),
                worker.clone(),
                report
                    .failure_classes
                    .first()
                    .map_or_else(|| "-".to_owned(), |class| plain(class).into_owned()),
                place,
            ]);
        }
        self.line("");
        for line in of_tips(summary) {
            self.line(&line);
        }
        for line in section(summary) {
            self.line(&line);
        }
        if rows.len() > 1 {
            for line in table(&rows) {
                self.line(&line);
            }
            self.line("");
        }
        let mut failed: Vec<&StepReport> = summary
            .issues
            .iter()
            .map(|(_, _, report)| report)
            .filter(|report| !report.succeeded())
            .collect();
        failed.sort_by(|a, b| a.issue_id.cmp(&b.issue_id));
        for report in &failed {
            let judged = summary.judged.get(&report.issue_id);
            for line in why(report, judged) {
                self.line(&line);
            }
        }
        if !failed.is_empty() {
            self.line("");
        }
        let closed = summary
            .issues
            .iter()
            .filter(|(_, _, report)| report.succeeded())
            .count();
        let counts: Vec<String> = summary
            .counts
            .iter()
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        if let Some(told) = nothing_ready(summary) {
            self.line(&told);
        }
        self.line(&format!(
            "{closed} of {} attempted issues closed in {}; issue store: {}",
            summary.issues.len(),
            seconds(summary.elapsed),
            counts.join(", ")
        ));
        if let Some(check) = &summary.landing {
            let tip = check
                .tip
                .as_deref()
                .map_or("which no longer exists", |tip| &tip[..tip.len().min(10)]);
            let rest = match check.landed - summary.landed() {
                0 => String::new(),
                unchanged => format!("; {unchanged} without changes"),
            };
            self.line(&format!(
                "{} of {} closed issues landed on {}, {tip}{rest}",
                summary.landed(),
                check.landed + check.missing.len(),
                plain(&check.target)
            ));
            if !check.missing.is_empty() {
                let missing = check.missing.join(", ");
                self.line(&format!("closed, but not landed: {}", plain(&missing)));
            }
        }
        let unchanged = summary.unchanged();
        if !unchanged.is_empty() {
            self.line(&format!(
                "closed without changes: {}; set {REFUSES_NO_CHANGE} to refuse this",
                plain(&unchanged.join(", "))
            ));
        }
        if let Some(failure) = &summary.push_failure {
            self.line(&plain(&failure.to_string()));
        }
        for line in account::told(&summary.account, summary.ended_by, summary.ended_at) {
            self.line(&line);
        }
        if summary.memory_changes > 0 {
            self.line(&format!(
                "issue store changed {} time(s) outside a transaction; the rows are in the run log \
                ({})",
                summary.memory_changes,
                FailureClass::MemoryChangedOutside
            ));
        }
        if let Some(warning) = foreign_warning(&summary.foreign_rows) {
            self.line(&format!("warning: {}", plain(&warning)));
        }
        if summary.lanes_lost > 0 {
            self.line(&format!("{} lane(s) disabled", summary.lanes_lost));
        }
        if summary.acts_under.mutation_mode == "human-override" {
            let reason = plain(&summary.acts_under.reason);
            self.line(&format!(
                "authorised by an operator override, without an instruction: {reason}"
            ));
        }
        if let Some(path) = &summary.cycle {
            self.line(&format!(
                "blocked by a dependency cycle: {}",
                plain(&path.join(" -> "))
            ));
        }
        for line in next(summary) {
            self.line(&line);
        }
        if let Some(path) = &summary.kept {
            self.line(&format!(
                "report saved in {}; `premath report` prints it",
                path.display()
            ));
        }
    }
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
    let is_whole = summary.lanes_lost == 0 && summary.ended_by.is_none();
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
            ", {} ready but excluded by the type, label or assignee filter",
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

fn ending(report: &StepReport) -> String {
    match &report.ending {
        StepEnding::LeaseLost => report.result_class.clone(),
        StepEnding::Closed if changed_nothing(report) => "closed, no changes".to_owned(),
        ending => plain(&ending.to_string()).into_owned(),
    }
}

fn reasons(report: &StepReport) -> String {
    let mut text = String::new();
    if !report.failure_classes.is_empty() {
        text.push_str(&format!(": {}", plain(&report.failure_classes.join(", "))));
        text.push_str(&format!(" (attempt {})", report.attempt));
    }
    if let Some((said, _)) = &report.said {
        text.push_str(&format!(": {}", plain(&shortened(said))));
    }
    if let Some(world) = &report.world {
        text.push_str(&format!(", {}", plain(&world.to_string())));
    }
    if let Some(branch) = &report.salvage {
        text.push_str(&format!(", saved on {branch}"));
    }
    if !report.discovered.is_empty() {
        text.push_str(&format!(", filed {}", plain(&report.discovered.join(", "))));
    }
    text
}

/// What is reported on a line that has more to say.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 120;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn seconds(duration: Duration) -> String {
    if duration < Duration::from_secs(60) {
        format!("{:.1}s", duration.as_secs_f64())
    } else {
        humantime::format_duration(Duration::from_secs(duration.as_secs())).to_string()
    }
}
