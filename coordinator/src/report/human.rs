//! Lines for a person.

use super::why::changed_nothing;
use super::{BatchTerms, Notice, Reporter, Summary, bound, outcome};
use harness_worker::batch::Pushed;
use harness_worker::interrupt::Level;
use harness_worker::lane::BootReport;
use harness_worker::stderr::{baseline_message, end_message};
use harness_worker::step::{StepEnding, StepReport};
use jiff::Zoned;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::WorkerName;
use premath_kernel::json::plain::plain;
use premath_kernel::policy::deadline::on_the_wall;
use premath_kernel::policy::landing::LandingMode;
use premath_kernel::policy::target_sync::TargetSync;
use premath_kernel::record::control::ControlResult;
use premath_kernel::record::trajectory::{ControlRecord, RowOutcome};
use premath_memory::OutsideChange;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// Writes a line for each event, with the time of the clock on the wall, and the
/// report at the end. What is wrong goes to a stream of its own.
#[derive(Debug)]
pub struct HumanReporter<O, E> {
    out: O,
    err: E,
    now: fn() -> Zoned,
    is_quiet: bool,
}

impl<O: Write, E: Write> HumanReporter<O, E> {
    /// Writes to a stream for events and one for warnings and errors; what cannot
    /// be written is not missed.
    pub const fn new(out: O, err: E, now: fn() -> Zoned) -> Self {
        Self {
            out,
            err,
            now,
            is_quiet: false,
        }
    }

    /// Leaves out the events; the report at the end, warnings and errors remain.
    #[must_use]
    pub fn quiet(mut self, is_quiet: bool) -> Self {
        self.is_quiet = is_quiet;
        self
    }

    /// Writes one line on an event.
    fn line(&mut self, text: &str) {
        if !self.is_quiet {
            let at = (self.now)();
            put(&mut self.out, &on_the_clock(&at, text));
        }
    }

    /// Writes one line on what is wrong.
    fn wrong(&mut self, text: &str) {
        let at = (self.now)();
        put(&mut self.err, &on_the_clock(&at, text));
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
        match target_sync.is_warning() {
            true => self.wrong(&format!("warning: {target_sync}")),
            false => self.line(&target_sync.to_string()),
        }
    }

    fn pushed(&mut self, pushed: &Pushed) {
        let Pushed {
            target,
            remote,
            outcome,
        } = pushed;
        match outcome {
            Ok(commit) => self.line(&format!(
                "{target} pushed to {remote} at {}",
                abbreviated(commit)
            )),
            Err(why) => self.wrong(&format!(
                "warning: {target} was not pushed to {remote}: {why}"
            )),
        }
    }

    fn lane_given_up(
        &mut self,
        worker_id: &WorkerName,
        worktree: &Path,
        class: FailureClass,
        detail: &str,
        hint: Option<&str>,
    ) {
        self.wrong(&format!(
            "{worker_id} disabled ({}): {class}: {}",
            worktree.display(),
            detail
        ));
        if let Some(hint) = hint {
            self.wrong(&format!("hint: {hint}"));
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
            self.wrong(&format!("warning: {worker_id}: {warning}"));
        }
    }

    /// Replaces a time of UTC by what the clocks show here.
    fn in_zone(&self, text: String, at: Option<jiff::Timestamp>) -> String {
        let Some(at) = at else {
            return text;
        };
        let zone = (self.now)().time_zone().clone();
        text.replace(&format!("{at:.0}"), &on_the_wall(&at.to_zoned(zone)))
    }

    fn step_ended(&mut self, worker_id: &WorkerName, report: &StepReport) {
        let again = match report.ending {
            StepEnding::Retry { at } => at,
            _ => None,
        };
        self.line(&format!(
            "{worker_id} {} {} after {}{}",
            report.issue_id,
            self.in_zone(ending(report), again),
            seconds(Duration::from_millis(report.duration_ms)),
            reasons(report)
        ));
    }

    fn waiting(&mut self, until: jiff::Timestamp) {
        let zone = (self.now)().time_zone().clone();
        let until = on_the_wall(&until.to_zoned(zone));
        self.line(&format!("no issue is ready; next retry at {until}"));
    }

    fn window(&mut self, is_open: bool, until: jiff::Timestamp) {
        let zone = (self.now)().time_zone().clone();
        let until = on_the_wall(&until.to_zoned(zone));
        self.line(&match is_open {
            true => format!("the window is open until {until}"),
            false => format!("the window is closed; attempts start at {until}"),
        });
    }

    fn memory_changed(&mut self, change: &OutsideChange) {
        self.wrong(&format!(
            "warning: {}: {}",
            FailureClass::MemoryChangedOutside,
            change.describe()
        ));
    }
}

impl<O: Write, E: Write> Reporter for HumanReporter<O, E> {
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
            Notice::StepEnded { worker_id, report } => self.step_ended(worker_id, report),
            Notice::Landed {
                worker_id,
                issue_id,
                commit,
                target,
            } => self.line(&format!(
                "{worker_id} landed {issue_id} as {} on {target}",
                abbreviated(commit)
            )),
            Notice::Pushed(pushed) => self.pushed(pushed),
            Notice::Cycle { path } => self.wrong(&format!(
                "warning: dependency cycle among the active issues; its members are blocked: {}",
                path.join(" -> ")
            )),
            Notice::Waiting { until } => self.waiting(*until),
            Notice::Idle => self.line("no issue is ready; waiting for new ones"),
            Notice::Window { is_open, until } => self.window(*is_open, *until),
            Notice::Changed(change) => {
                let text = self.in_zone(change.to_string(), change.until());
                self.line(&text);
            }
            Notice::BaselineChecked { worker_id, passes } => {
                self.line(&format!("{worker_id}: {}", baseline_message(*passes)));
            }
            Notice::Room(Some(short)) => self.line(&format!("no new attempts start: {short}")),
            Notice::Room(None) => self.line("free disk and memory are sufficient again"),
            Notice::Warning { detail } => self.wrong(&format!("warning: {detail}")),
            Notice::Ending { ended_by, detail } => self.line(&bound::ending(*ended_by, detail)),
            Notice::Interrupted { level } => self.line(interrupted(*level)),
            Notice::Control { record, result } => self.line(&request(record, *result)),
            Notice::MemoryChanged { change } => self.memory_changed(change),
            Notice::StoreLost { detail } => self.wrong(&format!("error: {detail}")),
        }
    }

    fn summary(&mut self, summary: &Summary) {
        self.line(&format!(
            "batch {} ended after {}: exit code {}",
            summary.batch_id,
            seconds(summary.elapsed),
            summary.exit_code
        ));
        put(&mut self.out, &text(summary));
    }
}

/// Returns the report at a batch's end, none of which acts on a terminal.
pub(super) fn text(summary: &Summary) -> String {
    let lines = outcome::lines(summary);
    let lines = lines.iter().map(|line| format!("{}\n", plain(line)));
    lines.collect()
}

/// Returns a line with the time that it was written at. Every text of an event
/// goes through here, and none of it acts on the terminal.
fn on_the_clock(at: &Zoned, text: &str) -> String {
    format!("{} {}\n", at.strftime("%H:%M:%S"), plain(text))
}

/// Writes whole lines at once, so that those of two processes do not mix.
fn put(stream: &mut impl Write, lines: &str) {
    let _ = stream.write_all(lines.as_bytes());
    let _ = stream.flush();
}

/// Returns the beginning of a commit's id.
pub(super) fn abbreviated(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
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
        // A command may name the class itself.
        let named = report.failure_classes.first();
        let rest = named.and_then(|class| said.strip_prefix(class)?.strip_prefix(": "));
        let said = rest.unwrap_or(said);
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
    use jiff::tz::TimeZone;

    fn noon() -> Zoned {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        jiff::Timestamp::UNIX_EPOCH.to_zoned(zone)
    }

    /// Returns what is written of notices, to each stream.
    fn written(is_quiet: bool, notices: &[Notice<'_>]) -> [String; 2] {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut reporter = HumanReporter::new(&mut out, &mut err, noon).quiet(is_quiet);
        notices.iter().for_each(|notice| reporter.notice(notice));
        [out, err].map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn a_workers_name_does_nothing_to_a_terminal() {
        let notice = Notice::BaselineChecked {
            worker_id: &"w\u{1b}[2J\nforged.1".into(),
            passes: true,
        };
        let [said, _] = written(false, &[notice]);
        assert!(
            said.starts_with("02:00:00 w\\u{1b}[2J\\nforged.1: several issues"),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1);
    }

    #[test]
    fn an_event_and_what_is_wrong_have_the_local_time_and_a_stream_each() {
        let pushed = |outcome| Pushed {
            target: "main".to_owned(),
            remote: "origin".to_owned(),
            outcome,
        };
        let fine = pushed(Ok("0123456789abcdef".to_owned()));
        let refused = pushed(Err("fatal: \u{7}no".to_owned()));
        let notices = [
            Notice::Landed {
                worker_id: &"worker.1".into(),
                issue_id: &"a".into(),
                commit: "0123456789abcdef",
                target: "main",
            },
            Notice::Pushed(&fine),
            Notice::Pushed(&refused),
            Notice::Warning { detail: "w" },
        ];
        let out = "02:00:00 worker.1 landed a as 0123456789 on main\n\
                   02:00:00 main pushed to origin at 0123456789\n";
        let err = "02:00:00 warning: main was not pushed to origin: fatal: \\u{7}no\n\
                   02:00:00 warning: w\n";
        assert_eq!(written(false, &notices), [out, err]);
        assert_eq!(written(true, &notices), ["", err]);
    }
}
