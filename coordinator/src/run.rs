//! The shell around the core: threads, channels, passes, and the reporter.

mod announcement;
mod bound;
mod control;
mod end;
mod export;
mod inbox;
mod manager;
mod plan;
mod say;
mod spare;
mod window;

use crate::lane::{LaneHandle, LaneMessage};
use crate::machine::{Crew, Effect, LaneIndex, Machine, MachineEvent, Pass};
use crate::report::{DisabledLane, Notice, NotifyingReporter, Reporter, Summary};
use crate::spare::SpareSite;
use announcement::announce;
use control::Control;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use harness_worker::batch::{Batch, BatchError, Opening};
use harness_worker::interrupt::{Interrupt, Level};
use harness_worker::lane::BootError;
use harness_worker::lane::LanePlan;
use harness_worker::step::{StepEnding, StepReport};
use harness_worker::telemetry::Exporter;
use inbox::InboxMessage;
pub use inbox::{Inbox, Waker};
use manager::Manager;
pub use plan::{Plan, RunError};
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::graph::Scope;
use premath_kernel::json::id::{IssueId, WorkerName};
use premath_kernel::policy::slots::SlotRule;
use premath_kernel::policy::until::Until;
use premath_kernel::record::live::{LiveLaneState, short};
use premath_kernel::record::trajectory::{StepRow, action};
use premath_memory::cause::chain;
use premath_memory::{Claimed, OutsideChange, StoreError, clock};
use say::Texts;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use window::Window;

/// How often issue memory is looked at for an idle lane where nothing of ours
/// happens.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Runs a batch to its end.
///
/// # Errors
///
/// [`RunError`] where it could not begin; nothing was dispatched then.
pub fn run(
    plan: Plan,
    interrupt: Interrupt,
    inbox: Inbox,
    reporter: &mut dyn Reporter,
) -> Result<Summary, RunError> {
    let opening = Opening::Coordinator {
        afresh: plan.new_batch,
    };
    let crew = crew_of(&plan);
    let batch = Arc::new(Batch::open(
        plan.settings,
        &plan.worktrees[..plan.lanes],
        opening,
        interrupt.clone(),
    )?);
    let _span = tracing::error_span!("batch", id = batch.id().as_str()).entered();
    batch.publish();
    let exporter = export::exporter(&batch);
    let reporter = &mut NotifyingReporter::new(reporter, &batch);
    announce(&batch, plan.lanes, plan.started_ms, reporter);
    let mut shell = Shell {
        left_out: plan.left_out,
        disabled: Vec::new(),
        batch: batch.clone(),
        machine: Machine::new(crew, plan.allowance),
        spare: plan.spare,
        worker_prefix: plan.worker_prefix,
        send: inbox.send,
        lanes: Vec::new(),
        plans: Vec::new(),
        reporter,
        wake_at: None,
        waiting_said: None,
        pass_wanted: false,
        cycle_reported: None,
        reports: BTreeMap::new(),
        started_ms: plan.started_ms,
        is_held: false,
        shortage_said: false,
        memory_changes: 0,
        control: Control::default(),
        texts: Texts::default(),
        window: Window::of(plan.window),
        idle_said: false,
        manager: Manager::find(),
    };
    let _watch = match plan.allowance.until {
        Until::Forever => shell.watch_store(),
        Until::Done | Until::Idle => None,
    };
    shell.open_control();
    shell.begin();
    shell.manager.ready();
    batch.warmth.expect(plan.worktrees.len());
    for worktree in plan.worktrees {
        shell.start_lane(worktree)?;
    }
    shell.until_done(&inbox.messages);
    let summary = shell.end(&inbox.messages);
    reporter.finish();
    if let Some(why) = exporter.and_then(Exporter::finish) {
        tracing::warn!("{why}");
    }
    Ok(summary)
}

/// Returns the lanes of a batch, and the spare worktrees that it may get. Where
/// a lane has so many dispatches, or one file is all lanes', there are none.
fn crew_of(plan: &Plan) -> Crew {
    let (settings, worktrees) = (&plan.settings, plan.worktrees.len());
    let rule = SlotRule::of(settings.verify_slots, plan.lanes);
    let is_for_one = settings.refuse_shared_projections(worktrees + 1).is_err();
    let can_grow = plan.spare.is_some() && plan.allowance.rounds.is_none() && !is_for_one;
    let rule = match can_grow {
        true => rule,
        false => rule.in_lanes(),
    };
    Crew {
        can_grow,
        worktrees,
        lanes: plan.lanes,
        spare: rule.spare.saturating_sub(worktrees - plan.lanes),
        spare_per_lane: usize::from(settings.verify_slots.is_none()),
        patience: rule.patience,
    }
}

struct Shell<'a> {
    batch: Arc<Batch>,
    /// The lanes that could not be created.
    left_out: Vec<DisabledLane>,
    /// The lanes that get no more work.
    disabled: Vec<DisabledLane>,
    machine: Machine,
    spare: Option<SpareSite>,
    worker_prefix: String,
    send: Sender<InboxMessage>,
    lanes: Vec<LaneHandle>,
    plans: Vec<LanePlan>,
    reporter: &'a mut dyn Reporter,
    wake_at: Option<jiff::Timestamp>,
    /// The wait that was reported last.
    waiting_said: Option<jiff::Timestamp>,
    pass_wanted: bool,
    cycle_reported: Option<Vec<String>>,
    /// The last report of each issue, with the lane.
    reports: BTreeMap<IssueId, (LaneIndex, StepReport)>,
    /// On CLOCK_BOOTTIME, which counts while the machine sleeps.
    started_ms: u64,
    /// Whether there is work that lanes must wait for.
    is_held: bool,
    /// Whether it was reported that there is too little room.
    shortage_said: bool,
    memory_changes: usize,
    control: Control,
    texts: Texts,
    window: Window,
    /// Whether it was reported that the batch waits for issues.
    idle_said: bool,
    manager: Manager,
}

impl Shell<'_> {
    /// Starts the next lane.
    fn start_lane(&mut self, worktree: PathBuf) -> Result<(), RunError> {
        let index = self.lanes.len();
        let plan = LanePlan {
            worker_id: format!("{}.{}", self.worker_prefix, index + 1).into(),
            worktree,
            index: index + 1,
            tolerate_cycle: self.batch.is_resumed(),
        };
        let send = self.send.clone();
        let handle = LaneHandle::start(self.batch.clone(), plan.clone(), move |messages| {
            let _ = send.send(InboxMessage::Lane(index, messages));
        });
        self.lanes.push(handle.map_err(RunError::Thread)?);
        self.plans.push(plan);
        Ok(())
    }

    fn until_done(&mut self, messages: &Receiver<InboxMessage>) {
        let mut finished = false;
        while !finished {
            self.report_alive();
            if let Some(event) = self.bound_reached().or_else(|| self.window_changed()) {
                finished |= self.feed(event);
                continue;
            }
            if self.pass_wanted && messages.is_empty() {
                self.pass_wanted = false;
                let event = self.pass();
                finished |= self.feed(event);
                continue;
            }
            // The wall clock may jump: look again after a while.
            let mut wait = LOOK_AGAIN
                .min(self.until_bound())
                .min(self.manager.patience());
            if let Some(at) = self.wake_at {
                let until = Duration::try_from(at.duration_since(clock::now().wall));
                wait = wait.min(until.unwrap_or(Duration::ZERO));
            }
            match messages.recv_timeout(wait) {
                Ok(InboxMessage::Control(message)) => finished |= self.control_message(message),
                Ok(messages) => {
                    if let Some(event) = self.event_of(messages) {
                        finished |= self.feed(event);
                    }
                }
                // Also without an event of this process: another process may
                // file an issue, or a lease may expire.
                Err(RecvTimeoutError::Timeout) => {
                    if self.wake_at.is_some_and(|at| clock::now().wall >= at) {
                        self.wake_at = None;
                    }
                    let event = match self.machine.idle().is_empty() {
                        true => MachineEvent::Looked,
                        false => MachineEvent::Woke,
                    };
                    finished |= self.feed(event);
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Reports to the service manager that this loop runs, and how far the batch is.
    fn report_alive(&mut self) {
        if self.batch.interrupt.level() != Level::None {
            self.manager.stopping();
        }
        self.manager.alive(&self.batch);
    }

    /// Feeds an event to the core and performs what it says.
    fn feed(&mut self, event: MachineEvent<Claimed>) -> bool {
        let mut finished = false;
        for effect in self.machine.handle(event, clock::now().wall) {
            match effect {
                Effect::Pass => {
                    self.pass_wanted = true;
                    self.wake_at = None;
                }
                Effect::Dispatch { lane, claim } => self.dispatch(lane, claim),
                Effect::Ask(lane) => self.lanes[lane].ask(),
                Effect::Mend(lane) => {
                    self.lanes[lane].mend();
                    self.batch.interrupt.wake();
                }
                Effect::Release(claim) => self.release(&claim, None),
                Effect::EndPanicked(claim) => self.end_panicked(&claim),
                Effect::Retire(lane) => self.lanes[lane].retire(),
                Effect::MakeSpare => self.make_spare(),
                Effect::MakeLane => self.make_lane(),
                Effect::Lanes(lanes) => self.batch.set_lanes(lanes),
                Effect::Unpass => self.pass_wanted = false,
                Effect::Cancel(lane) => self.cancel_attempt(lane),
                Effect::Drain => self.batch.interrupt.ask(Level::Drain),
                Effect::Kill => self.batch.interrupt.ask(Level::Kill),
                Effect::Answer(verdict) => self.control.verdict = Some(verdict),
                Effect::AwaitIssues => self.await_issues(),
                Effect::WakeAt(at) => {
                    if !self.is_held && self.waiting_said.is_none_or(|said| said < at) {
                        self.reporter.notice(&Notice::Waiting { until: at });
                    }
                    self.waiting_said = Some(at);
                    self.wake_at = Some(at);
                }
                Effect::Finish => finished = true,
            }
        }
        finished
    }

    fn event_of(&mut self, messages: InboxMessage) -> Option<MachineEvent<Claimed>> {
        let (lane, messages) = match messages {
            InboxMessage::Interrupted => {
                self.reporter.notice(&Notice::Interrupted {
                    level: self.batch.interrupt.level(),
                });
                return Some(MachineEvent::Interrupted);
            }
            InboxMessage::Spare(made) => return Some(self.spare_made(made)),
            InboxMessage::StoreChanged => return self.store_changed(),
            InboxMessage::Told(number, issue_id) => {
                self.told(number, &issue_id);
                return None;
            }
            InboxMessage::Control(_) | InboxMessage::Joined => return None,
            InboxMessage::Lane(lane, messages) => (lane, messages),
        };
        let plan = &self.plans[lane];
        match messages {
            LaneMessage::Booted(report) => {
                self.reporter.notice(&Notice::LaneBooted {
                    worker_id: &plan.worker_id,
                    worktree: &plan.worktree,
                    report: &report,
                });
                Some(MachineEvent::Booted(lane))
            }
            LaneMessage::BootFailed(error) => {
                let class = error.class();
                self.given_up(lane, class, &chain(&*error), error.hint());
                if matches!(*error, BootError::Store(StoreError::Corrupt { .. })) {
                    self.feed(MachineEvent::StoreLost);
                }
                Some(MachineEvent::BootFailed { lane, class })
            }
            LaneMessage::WorkDone => Some(MachineEvent::WorkDone(lane)),
            LaneMessage::MendDue => Some(MachineEvent::MendDue(lane)),
            LaneMessage::StepEnded(report) => Some(self.step_ended(lane, *report)),
            LaneMessage::Answered(answer) => Some(self.answered(lane, answer)),
            LaneMessage::Panicked { claim, message } => {
                self.given_up(lane, FailureClass::LanePanicked, &message, None);
                self.attempt_ended(lane, None);
                Some(MachineEvent::Panicked {
                    lane,
                    claim: claim.map(|claim| *claim),
                })
            }
        }
    }

    fn step_ended(&mut self, lane: LaneIndex, report: StepReport) -> MachineEvent<Claimed> {
        let worker_id = self.plans[lane].worker_id.clone();
        self.reporter.notice(&Notice::StepEnded {
            worker_id: &worker_id,
            report: &report,
        });
        self.landed(&worker_id, &report);
        self.pushed();
        let changes = self.batch.outside_changes();
        self.memory_changed(&changes);
        if let Some((class, detail)) = &report.lane_lost {
            self.given_up(lane, *class, detail, None);
        }
        if let Some(detail) = &report.store_lost {
            self.reporter.notice(&Notice::StoreLost { detail });
        }
        self.take_in(&worker_id, &report);
        self.attempt_ended(lane, Some(&report));
        let event = MachineEvent::StepEnded {
            lane,
            succeeded: report.succeeded(),
            refused: matches!(
                report.ending,
                StepEnding::UsageLimit | StepEnding::Cancelled
            ),
            lane_lost: report.lane_lost.is_some(),
            store_lost: report.store_lost.is_some(),
        };
        self.reports.insert(report.issue_id.clone(), (lane, report));
        event
    }

    /// Reports the work of a closed issue that is on the landing target.
    fn landed(&mut self, worker_id: &WorkerName, report: &StepReport) {
        if let Some(commit) = &report.commit
            && report.ending == StepEnding::Closed
            && report.world.is_none()
            && self.batch.landing.merges()
        {
            self.reporter.notice(&Notice::Landed {
                worker_id,
                issue_id: &report.issue_id,
                commit,
                target: &self.batch.settings.landing.target,
            });
        }
    }

    /// Reports the pushes since the last report.
    fn pushed(&mut self) {
        for pushed in self.batch.take_pushes() {
            self.reporter.notice(&Notice::Pushed(&pushed));
        }
    }

    /// Reports changes of issue memory made outside a transaction.
    fn memory_changed(&mut self, changes: &[OutsideChange]) {
        for change in changes {
            self.reporter.notice(&Notice::MemoryChanged { change });
        }
        self.memory_changes += changes.len();
    }

    fn given_up(
        &mut self,
        lane: LaneIndex,
        class: FailureClass,
        detail: &str,
        hint: Option<String>,
    ) {
        let worker_id = self.plans[lane].worker_id.clone();
        self.reporter.notice(&Notice::LaneGivenUp {
            worker_id: &worker_id,
            worktree: &self.plans[lane].worktree.clone(),
            class,
            detail,
            hint: hint.as_deref(),
        });
        self.batch.note_lane(&worker_id, |lane| {
            lane.state = LiveLaneState::Disabled;
            lane.reason = Some(short(&format!("{class}: {detail}")));
            lane.step = None;
        });
        let disabled = DisabledLane {
            name: worker_id.to_string(),
            class,
            detail: detail.to_owned(),
            hint,
        };
        self.disable(Some(worker_id), disabled);
    }

    /// Records a lane that gets no more work, and keeps it for the report.
    fn disable(&mut self, worker_id: Option<WorkerName>, lane: DisabledLane) {
        let (batch_id, now) = (self.batch.id(), clock::now().wall);
        let id = format!("coordinator.{batch_id}.lane_given_up.{}", lane.name);
        let mut row = StepRow::new(id, action::LANE_GIVEN_UP, "failed", now);
        row.batch_id = Some(batch_id.to_owned());
        row.worker_id = worker_id;
        row.failure_classes = vec![lane.class.as_str().to_owned()];
        row.next_step = Some(lane.reason());
        row.started_at = Some(now.into());
        if let Err(error) = self.batch.record(&row) {
            tracing::error!(%error, "the lane's end was not recorded");
        }
        self.disabled.push(lane);
    }

    /// Diagnoses, looks at the frontier, and claims for each idle lane in
    /// order, in one transaction.
    fn pass(&mut self) -> MachineEvent<Claimed> {
        let idle = self.machine.idle();
        let workers: Vec<WorkerName> = idle
            .iter()
            .map(|lane| self.plans[*lane].worker_id.clone())
            .collect();
        let passed = self.diagnose().and_then(|()| {
            let admitted = self.batch.admit(&workers)?;
            let next_retry = match workers.first() {
                Some(worker) => self.batch.next_retry(worker)?,
                None => None,
            };
            Ok::<_, BatchError>((admitted, next_retry))
        });
        match passed {
            Ok((admitted, next_retry)) => {
                let look_at = self.held_until(&admitted);
                let held = idle.iter().zip(&admitted.waiting.held);
                let held = held.filter(|(_, held)| **held).map(|(lane, _)| *lane);
                MachineEvent::Passed(Pass {
                    held: held.collect(),
                    asks: admitted.waiting.asks.map(|index| idle[index]),
                    claims: idle
                        .iter()
                        .copied()
                        .zip(admitted.claims)
                        .filter_map(|(lane, claim)| Some((lane, claim?)))
                        .collect(),
                    look_at: look_at.into_iter().chain(next_retry).min(),
                })
            }
            Err(error) => {
                let detail = chain(&error);
                self.reporter.notice(&Notice::StoreLost { detail: &detail });
                MachineEvent::StoreLost
            }
        }
    }

    /// `dep_diagnostics(active)` before the pass: a cycle that appeared in the
    /// middle holds its members and is reported once.
    fn diagnose(&mut self) -> Result<(), BatchError> {
        let diagnosis = self.batch.memory.diagnose(Scope::Active)?;
        let path: Option<Vec<String>> = diagnosis
            .cycle_path
            .map(|path| path.iter().map(ToString::to_string).collect());
        if path.is_some() && path != self.cycle_reported {
            self.reporter.notice(&Notice::Cycle {
                path: path.as_deref().unwrap_or_default(),
            });
        }
        self.cycle_reported = path;
        Ok(())
    }

    fn dispatch(&mut self, lane: LaneIndex, claim: Claimed) {
        self.idle_said = false;
        self.reporter.notice(&Notice::Dispatched {
            worker_id: &self.plans[lane].worker_id,
            claim: &claim,
        });
        self.control.running.insert(lane, claim.claim.clone());
        if let Err(claim) = self.lanes[lane].dispatch(Box::new(claim)) {
            // Its thread ended; the panic that ended it is on its way.
            self.control.running.remove(&lane);
            self.release(&claim, None);
        }
    }

    /// Ends the attempt of a lane that panicked: it gets its row, and its issue is free.
    fn end_panicked(&self, claim: &Claimed) {
        let recorded = self.batch.record_panicked(&claim.claim);
        let retry_at = recorded.unwrap_or_else(|error| {
            tracing::error!(issue = %claim.claim.issue_id, %error, "the attempt was not recorded");
            None
        });
        self.release(claim, retry_at);
    }

    /// Releases a claim that its lane cannot release, until a time where the policy waits.
    fn release(&self, claim: &Claimed, retry_at: Option<jiff::Timestamp>) {
        self.batch.unreserve(&claim.claim);
        self.batch.step_lost(&claim.claim.owner.as_str().into());
        let released = self.batch.memory.release(
            &self.batch.lease_authority(),
            &claim.claim.issue_id,
            claim.claim.key(),
            retry_at,
        );
        if let Err(error) = released {
            tracing::warn!(issue = %claim.claim.issue_id, %error, "the lease was not released");
        }
    }
}
