//! A lane's thread: boots its worktree, runs the steps that it is given, and
//! reports to the coordinator.

use crossbeam_channel::{Receiver, SendError, Sender, bounded};
use harness_worker::batch::Batch;
use harness_worker::lane::{BootError, BootReport, Lane, LanePlan};
use harness_worker::step::StepReport;
use premath_memory::Claimed;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

/// A message of a lane to its coordinator.
#[derive(Debug)]
pub(crate) enum LaneMessage {
    /// The lane is ready for work.
    Booted(Box<BootReport>),
    /// The lane cannot be used.
    BootFailed(Box<BootError>),
    /// The work of its step is done, and in the landing queue.
    WorkDone,
    /// A step is over.
    StepEnded(Box<StepReport>),
    /// Whether the verification passes without any work.
    Answered(Result<bool, Box<BootError>>),
    /// Its thread panicked, in the middle of a step where a claim is given.
    Panicked {
        claim: Option<Box<Claimed>>,
        message: String,
    },
}

/// A request to a lane.
enum Task {
    /// A step under a claim.
    Step(Box<Claimed>),
    /// Find out whether the verification passes without any work.
    Ask,
}

/// A lane as the coordinator holds it.
#[derive(Debug)]
pub(crate) struct LaneHandle {
    /// Gone once the lane is retired.
    work: Option<Sender<Task>>,
    thread: Option<JoinHandle<()>>,
}

impl LaneHandle {
    /// Starts a lane's thread; its reports go through `tell`.
    pub(crate) fn start(
        batch: Arc<Batch>,
        plan: LanePlan,
        send: impl Fn(LaneMessage) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (work, tasks) = bounded::<Task>(1);
        // Inside the batch's span, which is the caller's.
        let span = tracing::error_span!("lane", worker = plan.worker_id.as_str());
        let thread = std::thread::Builder::new()
            .name(plan.worker_id.to_string())
            .spawn(move || {
                let _span = span.entered();
                let current = std::cell::RefCell::new(None);
                let run = AssertUnwindSafe(|| live(batch, &plan, &tasks, &send, &current));
                if let Err(panic) = catch_unwind(run) {
                    let message = panic
                        .downcast_ref::<&str>()
                        .map(|text| (*text).to_owned())
                        .or_else(|| panic.downcast_ref::<String>().cloned())
                        .unwrap_or_else(|| "no message".to_owned());
                    send(LaneMessage::Panicked {
                        claim: current.take(),
                        message,
                    });
                }
            })?;
        Ok(Self {
            work: Some(work),
            thread: Some(thread),
        })
    }

    /// Hands a claim over; `false` where the lane is gone.
    pub(crate) fn dispatch(&self, claim: Box<Claimed>) -> Result<(), Box<Claimed>> {
        let Some(work) = &self.work else {
            return Err(claim);
        };
        match work.send(Task::Step(claim)) {
            Err(SendError(Task::Step(claim))) => Err(claim),
            _ => Ok(()),
        }
    }

    /// Lets the lane find out whether the verification passes without any work;
    /// where its thread is gone, the panic that ended it is on its way.
    pub(crate) fn ask(&self) {
        if let Some(work) = &self.work {
            let _ = work.send(Task::Ask);
        }
    }

    /// Signals the lane that there is no more work.
    pub(crate) fn retire(&mut self) {
        self.work = None;
    }

    /// Waits for the lane's thread.
    pub(crate) fn join(&mut self) {
        self.retire();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn live(
    batch: Arc<Batch>,
    plan: &LanePlan,
    tasks: &Receiver<Task>,
    send: &impl Fn(LaneMessage),
    current: &std::cell::RefCell<Option<Box<Claimed>>>,
) {
    let shared = batch.clone();
    let leaving = shared.warmth.enter();
    let booted = Lane::boot(batch, plan);
    let mut lane = match booted {
        Ok((lane, report)) => {
            send(LaneMessage::Booted(Box::new(report)));
            lane
        }
        Err(error) => return send(LaneMessage::BootFailed(Box::new(error))),
    };
    for task in tasks {
        let claim = match task {
            Task::Step(claim) => claim,
            Task::Ask => {
                send(LaneMessage::Answered(lane.baseline().map_err(Box::new)));
                continue;
            }
        };
        current.replace(Some(claim.clone()));
        let report = lane.step(&claim, &|| send(LaneMessage::WorkDone));
        current.replace(None);
        send(LaneMessage::StepEnded(Box::new(report)));
    }
    lane.verify_tip(leaving.is_last());
    if let Err(error) = lane.finish() {
        tracing::warn!(%error, "the lane's last session was not written");
    }
}
