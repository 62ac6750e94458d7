//! Events for a program: one JSON object a line, on stdout.

use super::{BatchTerms, Notice, Reporter, Summary};
use harness_worker::batch::{Pushed, SupervisionChange};
use harness_worker::interrupt::Level;
use harness_worker::lane::BootReport;
use harness_worker::step::{StepEnding, StepReport};
use jiff::Timestamp;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::canonical::canonical;
use premath_kernel::json::id::WorkerName;
use premath_kernel::json::plain::plain_json;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::policy::breaker::BreakerChange;
use premath_kernel::policy::provider::ProviderChange;
use premath_kernel::policy::room::Shortage;
use premath_kernel::policy::target_sync::TargetSync;
use premath_kernel::record::control::ControlResult;
use premath_kernel::record::event::{
    EndRequest, EndedIssue, EndedStep, Ending, EventLine, ProgressEvent, ProviderUse,
};
use premath_kernel::record::trajectory::ControlRecord;
use premath_memory::{Claimed, OutsideChange};
use std::io::Write;
use std::path::Path;

/// Writes JSON lines.
#[derive(Debug)]
pub struct JsonReporter<W> {
    out: W,
    now: fn() -> Timestamp,
}

impl<W: Write> JsonReporter<W> {
    /// Writes to a stream; what cannot be written is not missed.
    pub const fn new(out: W, now: fn() -> Timestamp) -> Self {
        Self { out, now }
    }

    fn event(&mut self, event: ProgressEvent<'_>) {
        let line = EventLine::at((self.now)(), event);
        let _ = writeln!(self.out, "{}", plain_json(&canonical(&line)));
        let _ = self.out.flush();
    }
}

impl<W: Write> JsonReporter<W> {
    fn target_sync(&mut self, target_sync: &TargetSync) {
        let detail = &target_sync.to_string();
        self.event(match target_sync.tip() {
            Some(tip) => ProgressEvent::LandingTarget {
                target: &target_sync.target,
                tip,
                detail,
            },
            None => ProgressEvent::BatchWarning { detail },
        });
    }

    fn changed(&mut self, change: &SupervisionChange) {
        match change {
            SupervisionChange::Provider(ProviderChange::Parked { provider, until }) => {
                self.event(ProgressEvent::ProviderParked {
                    provider,
                    until: Stamp::at(*until),
                });
            }
            SupervisionChange::Provider(ProviderChange::Resumed { provider }) => {
                self.event(ProgressEvent::ProviderResumed { provider });
            }
            SupervisionChange::Breaker(BreakerChange::Opened {
                class,
                issues,
                until,
            }) => self.event(ProgressEvent::BreakerOpen {
                failure_class: class,
                issue_ids: issues,
                until: Stamp::at(*until),
            }),
            SupervisionChange::Breaker(BreakerChange::Closed) => {
                self.event(ProgressEvent::BreakerClosed)
            }
            // Reported as the end of the batch.
            SupervisionChange::BudgetExceeded(..) => {}
        }
    }
}

impl<W: Write> Reporter for JsonReporter<W> {
    fn notice(&mut self, notice: &Notice<'_>) {
        let event = match notice {
            Notice::BatchStarted(start) => batch_started(start),
            Notice::LaneBooted {
                worker_id,
                worktree,
                report,
            } => lane_booted(worker_id, worktree, report),
            Notice::LaneGivenUp {
                worker_id,
                worktree,
                class,
                detail,
                hint,
            } => ProgressEvent::LaneGivenUp {
                worker_id,
                worktree: text(worktree),
                failure_class: *class,
                detail,
                hint: *hint,
            },
            Notice::Dispatched { worker_id, claim } => dispatched(worker_id, claim),
            Notice::StepEnded { worker_id, report } => ProgressEvent::StepEnded {
                step: ended(worker_id, report),
            },
            Notice::Landed {
                worker_id,
                issue_id,
                commit,
                target,
            } => ProgressEvent::IssueLanded {
                worker_id,
                issue_id,
                commit,
                target,
            },
            Notice::Pushed(news) => pushed(news),
            Notice::Cycle { path } => ProgressEvent::GraphCycle { cycle_path: path },
            Notice::Waiting { until } => waiting(*until),
            Notice::Idle => ProgressEvent::BatchIdle,
            Notice::Window { is_open, until } => window(*is_open, *until),
            Notice::TargetSync(target_sync) => return self.target_sync(target_sync),
            Notice::Changed(change) => return self.changed(change),
            Notice::BaselineChecked { worker_id, passes } => ProgressEvent::BaselineChecked {
                worker_id,
                passes: *passes,
            },
            Notice::Room(Some(short)) => room_short(short),
            Notice::Room(None) => ProgressEvent::RoomEnough,
            Notice::Warning { detail } => ProgressEvent::BatchWarning { detail },
            Notice::Ending { ended_by, detail } => ProgressEvent::BatchEnding {
                ended_by: *ended_by,
                detail,
            },
            Notice::Interrupted { level } => interrupted(*level),
            Notice::Control { record, result } => request(record, *result),
            Notice::MemoryChanged { change } => memory_changed(change),
            Notice::StoreLost { detail } => ProgressEvent::StoreLost { detail },
        };
        self.event(event);
    }

    fn summary(&mut self, summary: &Summary) {
        let mut issues: Vec<EndedIssue<'_>> = summary
            .issues
            .iter()
            .map(|(worker, attempts, report)| EndedIssue {
                step: ended(worker, report),
                attempts: *attempts,
            })
            .collect();
        issues.sort_by_key(|issue| issue.step.outcome.issue_id);
        self.event(ProgressEvent::BatchEnded {
            batch_id: &summary.batch_id,
            acts_under: summary.acts_under.clone(),
            exit_code: summary.exit_code,
            elapsed_ms: u64::try_from(summary.elapsed.as_millis()).unwrap_or(u64::MAX),
            issues,
            lanes_lost: summary.disabled.len(),
            cycle_path: summary.cycle.as_deref(),
            counts: &summary.counts,
            landing: summary.landing.clone(),
            push_failure: summary.push_failure.as_ref(),
            tip_checks: &summary.tips,
            ended_by: summary.ended_by,
            providers: ProviderUse::all(&summary.account, summary.ended_at),
            closes: summary.account.closes(),
            breaker_openings: summary.account.breaker_openings(),
            memory_changes: summary.memory_changes,
            unaccepted_changes: summary
                .foreign_rows
                .iter()
                .map(|row| row.issue_id.as_str())
                .collect(),
        });
    }
}

fn batch_started<'a>(start: &BatchTerms<'a>) -> ProgressEvent<'a> {
    ProgressEvent::BatchStarted {
        batch_id: start.batch_id,
        resumed: start.resumed,
        lanes: start.lanes,
        acts_under: start.mode.into(),
        issues_path: text(start.issues_path),
        landing_mode: start.landing.map(|rule| rule.mode.as_str()),
        landing_target: start.landing.map(|rule| rule.target.as_str()),
        ends_at: start.ends_at.map(Stamp::at),
        sandbox: start.sandbox.mode,
        sandbox_image: start.sandbox.image.as_ref(),
    }
}

fn dispatched<'a>(worker_id: &'a WorkerName, claim: &'a Claimed) -> ProgressEvent<'a> {
    ProgressEvent::IssueDispatched {
        worker_id,
        issue_id: &claim.claim.issue_id,
        lease_id: &claim.claim.lease_id,
        generation: claim.claim.generation,
    }
}

fn pushed(news: &Pushed) -> ProgressEvent<'_> {
    ProgressEvent::LandingPushed {
        target: &news.target,
        remote: &news.remote,
        commit: news.outcome.as_deref().ok(),
        failure: news.outcome.as_ref().err().map(String::as_str),
    }
}

fn room_short(short: &Shortage) -> ProgressEvent<'_> {
    ProgressEvent::RoomShort {
        of: short.of,
        free_bytes: short.free.0,
        least_bytes: short.least.0,
    }
}

fn waiting<'a>(until: Timestamp) -> ProgressEvent<'a> {
    let until = Stamp::at(until);
    ProgressEvent::BatchWaiting { until }
}

fn window<'a>(open: bool, until: Timestamp) -> ProgressEvent<'a> {
    let until = Stamp::at(until);
    ProgressEvent::BatchWindow { open, until }
}

fn lane_booted<'a>(
    worker_id: &'a WorkerName,
    worktree: &Path,
    report: &'a BootReport,
) -> ProgressEvent<'a> {
    ProgressEvent::LaneBooted {
        worker_id,
        worktree: text(worktree),
        handoff: report.handoff.as_ref(),
        salvage: report.salvage.as_deref(),
        next_target: report.next_target.as_deref(),
        witness_count: report.witnesses,
        observation: report.observation,
        warnings: &report.warnings,
    }
}

fn interrupted(level: Level) -> ProgressEvent<'static> {
    ProgressEvent::BatchInterrupted {
        level: match level {
            Level::Kill => EndRequest::Kill,
            _ => EndRequest::Drain,
        },
    }
}

fn request(record: &ControlRecord, result: ControlResult) -> ProgressEvent<'_> {
    ProgressEvent::BatchControl {
        operation: &record.operation,
        result,
        detail: &record.detail,
        uid: record.uid,
        pid: record.pid,
    }
}

fn memory_changed(change: &OutsideChange) -> ProgressEvent<'_> {
    ProgressEvent::MemoryChanged {
        failure_class: FailureClass::MemoryChangedOutside,
        detail: change.describe(),
        added: change.added,
        altered: change.altered,
        removed: change.removed,
        issues: &change.issues,
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn ended<'a>(worker_id: &'a WorkerName, report: &'a StepReport) -> EndedStep<'a> {
    let (ending, ending_detail) = match &report.ending {
        StepEnding::Closed => (Ending::Closed, None),
        StepEnding::Retry { at } => (Ending::Retry, at.map(premath_kernel::json::time::micros)),
        StepEnding::Blocked => (Ending::Blocked, None),
        StepEnding::Discovered { follow_up } => (Ending::Discovered, Some(follow_up.to_string())),
        StepEnding::Stopped => (Ending::Stopped, None),
        StepEnding::LeaseLost => (Ending::LeaseLost, None),
        StepEnding::Interrupted => (Ending::Interrupted, None),
        StepEnding::Cancelled => (Ending::Cancelled, None),
        StepEnding::UsageLimit => (Ending::UsageLimit, None),
        StepEnding::NotBegun => (Ending::NotBegun, None),
    };
    EndedStep {
        worker_id,
        outcome: report.outcome(),
        title: &report.title,
        generation: report.generation,
        ending,
        ending_detail,
        said: report.said.as_ref().map(|(said, _)| said.as_str()),
        output: report.said.as_ref().map(|(_, output)| text(output)),
    }
}
