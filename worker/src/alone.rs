//! The loop of a worker alone: what bounds a batch bounds it likewise.

use harness_worker::batch::{Admitted, Batch};
use harness_worker::exit;
use harness_worker::interrupt::{Interrupt, Level};
use harness_worker::lane::Lane;
use harness_worker::stderr::{baseline_message, failed, say};
use harness_worker::step::{StepEnding, StepReport, Unbounded};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::WorkerName;
use premath_kernel::json::plain::plain;
use premath_kernel::policy::deadline::Deadline;
use premath_memory::{Claimed, OutsideChange, clock};
use std::time::Duration;

/// The shortest wait for what holds the worker back.
const WAIT_LEAST: Duration = Duration::from_millis(200);

/// How often the deadline is compared with the clocks, which may jump.
const TICK: Duration = Duration::from_secs(1);

/// The outcome of a worker alone.
#[derive(Debug, Default)]
pub(crate) struct AloneOutcome {
    pub(crate) reports: Vec<StepReport>,
    pub(crate) store_lost: bool,
    pub(crate) lane_lost: bool,
}

/// A single worker, with its output so far.
pub(crate) struct Alone<'a> {
    batch: &'a Batch,
    worker: [WorkerName; 1],
    /// On CLOCK_BOOTTIME, which counts while the machine sleeps.
    started_ms: u64,
    shortage_said: bool,
    worked: AloneOutcome,
}

impl<'a> Alone<'a> {
    pub(crate) fn new(batch: &'a Batch, worker: &WorkerName) -> Self {
        Self {
            batch,
            worker: [worker.to_owned()],
            started_ms: clock::now().boot_ms,
            shortage_said: false,
            worked: AloneOutcome::default(),
        }
    }

    /// Takes up to so many steps; one that its provider refused does not count.
    pub(crate) fn work(mut self, lane: &mut Lane, max_steps: u64) -> AloneOutcome {
        let deadline = self.batch.settings.bounds.deadline;
        drain_at(deadline, self.started_ms, self.batch.interrupt.clone());
        let mut steps = 0;
        while steps < max_steps && self.may_continue() {
            let admitted = match self.batch.admit(&self.worker) {
                Ok(admitted) => admitted,
                Err(error) => {
                    self.worked.store_lost = true;
                    failed(&error, None, exit::STORE);
                    break;
                }
            };
            if admitted.waiting.asks.is_some() {
                if !self.ask(lane) {
                    break;
                }
                continue;
            }
            let (claimed, waits) = self.take(admitted);
            let Some(claimed) = claimed else {
                if waits {
                    continue;
                }
                break;
            };
            let report = self.step(lane, &claimed);
            let refused = report.ending == StepEnding::UsageLimit;
            steps += u64::from(!refused);
            let over = self.worked.store_lost
                || report.lane_lost.is_some()
                || exit::is_last_step(
                    self.batch.settings.stop_on_failure,
                    report.succeeded(),
                    refused,
                );
            self.worked.reports.push(report);
            if over {
                break;
            }
        }
        self.worked
    }

    /// Returns whether nothing asks for the end.
    fn may_continue(&self) -> bool {
        self.reach_bound();
        self.batch.admission().ended_by().is_none() && self.batch.interrupt.level() == Level::None
    }

    /// Says that a bound of the batch is reached, once.
    fn reach_bound(&self) {
        let is_interrupted = self.batch.interrupt.last_signal().is_some();
        let mut admission = self.batch.admission();
        if let Some(by) = admission.end_by(self.started_ms, clock::now(), is_interrupted) {
            say(&format!("{}: no new attempts start", by.reached()));
        }
    }

    /// Returns the claim; where there is none, waits for what holds it back and
    /// returns whether it did.
    fn take(&mut self, mut admitted: Admitted) -> (Option<Claimed>, bool) {
        if let Some(claimed) = admitted.claims.pop().flatten() {
            self.shortage_said = false;
            return (Some(claimed), false);
        }
        let waiting = &admitted.waiting;
        if !waiting.held.contains(&true) {
            return (None, false);
        }
        if let Some(short) = &waiting.short
            && !self.shortage_said
        {
            say(&format!("no new attempts start: {short}"));
            self.shortage_said = true;
        }
        if let Err(error) = self.batch.wait_for_room(waiting.short.as_ref(), false) {
            tracing::error!(%error, "the shortage was not recorded");
        }
        if self.may_continue() {
            let now = clock::now().wall;
            let wait = waiting.look_at.map(|at| at.duration_since(now));
            let wait = wait.and_then(|wait| Duration::try_from(wait).ok());
            // Never zero, so that nothing is asked again at once. The deadline
            // raises the interrupt, too.
            let wait = wait.unwrap_or_default().max(WAIT_LEAST);
            self.batch.interrupt.wait(wait);
        }
        (None, true)
    }

    /// Finds out whether the verification passes without any work; returns
    /// whether the lane can continue.
    fn ask(&mut self, lane: &mut Lane) -> bool {
        let passes = match lane.baseline() {
            Ok(passes) => passes,
            Err(error) => {
                failed(&error, error.hint(), exit::FAILED);
                self.worked.lane_lost = true;
                return false;
            }
        };
        say(baseline_message(passes));
        match self.batch.baseline_answered(passes) {
            Ok(change) => {
                change
                    .iter()
                    .for_each(|change| say(&plain(&change.to_string())));
                true
            }
            Err(error) => {
                self.worked.store_lost = true;
                failed(&error, None, exit::STORE);
                false
            }
        }
    }

    fn step(&mut self, lane: &mut Lane, claimed: &Claimed) -> StepReport {
        say(&format!(
            "{} started {} {}",
            self.worker[0],
            plain(&claimed.claim.issue_id),
            plain(&claimed.row.text_of("title"))
        ));
        let report = lane.step(claimed, &Unbounded);
        say(&describe(&report));
        self.batch
            .outside_changes()
            .iter()
            .for_each(print_outside_change);
        self.worked.store_lost |= report.store_lost.is_some();
        match self.batch.step_ended(&self.worker[0], &report.for_batch()) {
            Ok(changes) => {
                for change in changes {
                    say(&plain(&change.to_string()));
                }
            }
            Err(error) => {
                self.worked.store_lost = true;
                failed(&error, None, exit::STORE);
            }
        }
        self.reach_bound();
        report
    }
}

pub(crate) fn print_outside_change(change: &OutsideChange) {
    let class = FailureClass::MemoryChangedOutside;
    say(&format!("warning: {class}: {}", plain(&change.describe())));
}

fn ran(started_ms: u64) -> Duration {
    Duration::from_millis(clock::now().boot_ms.saturating_sub(started_ms))
}

/// Drains at the deadline, whatever runs then.
fn drain_at(deadline: Deadline, started_ms: u64, interrupt: Interrupt) {
    if deadline == Deadline::default() {
        return;
    }
    let timer = std::thread::Builder::new().name("deadline".to_owned());
    let spawned = timer.spawn(move || {
        while let Some(left) = deadline.left(clock::now().wall, ran(started_ms)) {
            if left.is_zero() {
                interrupt.drain();
                return;
            }
            std::thread::sleep(left.min(TICK));
        }
    });
    if let Err(error) = spawned {
        tracing::warn!(%error, "the deadline is checked only between attempts");
    }
}

fn describe(report: &StepReport) -> String {
    let outcome = match &report.ending {
        StepEnding::Closed => "closed".to_owned(),
        ending => {
            let mut text = format!("{ending}: {}", report.failure_classes.join(", "));
            if let Some((said, output)) = &report.said {
                text.push_str(&format!(": {said} (output: {})", output.display()));
            }
            if let Some(branch) = &report.salvage {
                text.push_str(&format!(", saved on {branch}"));
            }
            text
        }
    };
    let world = report.world.as_ref();
    let world = world.map_or_else(String::new, |world| format!(" ({world})"));
    format!(
        "{} {}{}",
        plain(&report.issue_id),
        plain(&outcome),
        plain(&world)
    )
}
