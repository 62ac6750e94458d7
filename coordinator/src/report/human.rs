//! Lines for a person, on stderr.

use super::why::changed_nothing;
use super::{BatchTerms, Notice, Reporter, Summary, bound, outcome};
use harness_worker::interrupt::Level;
use harness_worker::lane::BootReport;
use harness_worker::stderr::{baseline_message, end_message};
use harness_worker::step::{StepEnding, StepReport};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::WorkerName;
use premath_kernel::json::plain::plain;
use premath_kernel::policy::landing::LandingMode;
use premath_kernel::policy::target_sync::TargetSync;
use premath_kernel::record::control::ControlResult;
use premath_kernel::record::trajectory::{ControlRecord, RowOutcome};
use std::io::Write;
use std::path::Path;
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
    pub(crate) fn into_inner(self) -> W {
        self.out
    }

    /// Writes one line. Every text goes through here, and none of it acts on the
    /// terminal.
    fn line(&mut self, text: &str) {
        // In one write: stderr is not buffered.
        let line = format!("{}\n", plain(text));
        let _ = self.out.write_all(line.as_bytes());
    }

    fn batch_started(&mut self, start: &BatchTerms<'_>) {
        let verb = if start.resumed { "continues" } else { "begins" };
        self.line(&format!(
            "batch {} {verb}: {} lane(s), issues in {}",
            start.batch_id,
            start.lanes,
            start.issues_path.display()
        ));
        self.line(&start.mode.describe());
        self.line(&start.sandbox.describe());
        if let Some(hooks) = &start.hooks {
            self.line(hooks);
        }
        if let Some(repair) = &start.repair {
            self.line(repair);
        }
        if let Some(rule) = start.landing {
            let target = &rule.target;
            self.line(&match rule.mode {
                LandingMode::Merge => format!("attempts start from {target} and land on it"),
                _ => format!("attempts start from {target}"),
            });
        }
        if let Some(at) = start.ends_at {
            self.line(&end_message(at));
        }
    }

    fn target_sync(&mut self, target_sync: &TargetSync) {
        let warning = if target_sync.is_warning() {
            "warning: "
        } else {
            ""
        };
        self.line(&format!("{warning}{target_sync}"));
    }

    fn lane_given_up(
        &mut self,
        worker_id: &WorkerName,
        worktree: &Path,
        class: FailureClass,
        detail: &str,
        hint: Option<&str>,
    ) {
        self.line(&format!(
            "{worker_id} disabled ({}): {class}: {}",
            worktree.display(),
            detail
        ));
        if let Some(hint) = hint {
            self.line(&format!("  hint: {hint}"));
        }
    }

    fn lane_booted(&mut self, worker_id: &WorkerName, worktree: &Path, report: &BootReport) {
        let boot = report.describe();
        let mut text = format!("{worker_id} ready in {}{boot}", worktree.display());
        if let Some(branch) = &report.salvage {
            text.push_str(&format!("; leftover work saved on {branch}"));
        }
        self.line(&text);
        for warning in &report.warnings {
            self.line(&format!("  warning: {warning}"));
        }
    }
}

impl<W: Write> Reporter for HumanReporter<W> {
    fn notice(&mut self, notice: &Notice<'_>) {
        match notice {
            Notice::BatchStarted(start) => self.batch_started(start),
            Notice::TargetSync(target_sync) => self.target_sync(target_sync),
            Notice::LaneBooted {
                worker_id,
                worktree,
                report,
            } => self.lane_booted(worker_id, worktree, report),
            Notice::LaneGivenUp {
                worker_id,
                worktree,
                class,
                detail,
                hint,
            } => self.lane_given_up(worker_id, worktree, *class, detail, *hint),
            Notice::Dispatched { worker_id, claim } => self.line(&format!(
                "{worker_id} started {} {}",
                claim.claim.issue_id,
                claim.row.text_of("title")
            )),
            Notice::StepEnded { worker_id, report } => {
                self.line(&format!(
                    "{worker_id} {} {} after {}{}",
                    report.issue_id,
                    ending(report),
                    seconds(Duration::from_millis(report.duration_ms)),
                    reasons(report)
                ));
            }
            Notice::Cycle { path } => self.line(&format!(
                "dependency cycle among the active issues; its members are blocked: {}",
                path.join(" -> ")
            )),
            Notice::Waiting { until } => {
                self.line(&format!("no issue is ready; next retry at {until:.0}"));
            }
            Notice::Changed(change) => self.line(&change.to_string()),
            Notice::BaselineChecked { worker_id, passes } => {
                self.line(&format!("{worker_id}: {}", baseline_message(*passes)));
            }
            Notice::Room(Some(short)) => self.line(&format!("no new attempts start: {short}")),
            Notice::Room(None) => self.line("free disk and memory are sufficient again"),
            Notice::Warning { detail } => self.line(&format!("warning: {detail}")),
            Notice::Ending { ended_by, detail } => self.line(&bound::ending(*ended_by, detail)),
            Notice::Interrupted { level } => self.line(interrupted(*level)),
            Notice::Control { record, result } => self.line(&request(record, *result)),
            Notice::MemoryChanged { change } => self.line(&format!(
                "warning: {}: {}",
                FailureClass::MemoryChangedOutside,
                change.describe()
            )),
            Notice::StoreLost { detail } => self.line(&format!("error: {detail}")),
        }
    }

    fn summary(&mut self, summary: &Summary) {
        for line in outcome::lines(summary) {
            self.line(&line);
        }
    }
}

const fn interrupted(level: Level) -> &'static str {
    match level {
        Level::Kill => "interrupted again: cancelling running attempts",
        _ => "interrupted: draining, running attempts finish (interrupt again to cancel them)",
    }
}

/// Says who asked what of the batch.
fn request(record: &ControlRecord, result: ControlResult) -> String {
    format!(
        "operator {} (uid {}, pid {}): {}: {}, {}",
        record.operator.as_deref().unwrap_or("unnamed"),
        record.uid,
        record.pid,
        record.operation,
        result.as_str(),
        record.detail
    )
}

pub(super) fn ending(report: &StepReport) -> String {
    match &report.ending {
        StepEnding::LeaseLost => RowOutcome::of(&report.result_class).as_str().to_owned(),
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
    if report.flaky > 0 {
        text.push_str(&format!(", {} flaky verification(s)", report.flaky));
    }
    if report.repairs > 0 {
        text.push_str(&format!(", {} repair round(s)", report.repairs));
    }
    if report.shared.is_some() {
        text.push_str(", verified with later work");
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

pub(super) fn seconds(duration: Duration) -> String {
    if duration < Duration::from_secs(60) {
        format!("{:.1}s", duration.as_secs_f64())
    } else {
        humantime::format_duration(Duration::from_secs(duration.as_secs())).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workers_name_does_nothing_to_a_terminal() {
        let mut reporter = HumanReporter::new(Vec::new());
        reporter.notice(&Notice::BaselineChecked {
            worker_id: &"w\u{1b}[2J\nforged.1".into(),
            passes: true,
        });
        let said = String::from_utf8(reporter.into_inner()).unwrap();
        assert!(
            said.starts_with("w\\u{1b}[2J\\nforged.1: several issues"),
            "{said}"
        );
    }
}
