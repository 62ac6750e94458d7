//! A lane's thread: boots its worktree, runs the steps that it is given, and
//! reports to the coordinator.

use crossbeam_channel::{Receiver, SendError, Sender, bounded};
use harness_worker::batch::Batch;
use harness_worker::lane::{BootError, BootReport, Lane, LanePlan};
use harness_worker::step::{StepReport, WorkBound};
use premath_memory::Claimed;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// The agent of its step is to mend that work.
    MendDue,
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
    may_mend: Arc<AtomicBool>,
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
        let may_mend = Arc::<AtomicBool>::default();
        let granted = may_mend.clone();
        // Inside the batch's span, which is the caller's.
        let span = tracing::error_span!("lane", worker = plan.worker_id.as_str());
        let thread = std::thread::Builder::new()
            .name(plan.worker_id.to_string())
            .spawn(move || {
                let _span = span.entered();
                let current = std::cell::RefCell::new(None);
                let run = AssertUnwindSafe(|| {
                    live(
                        batch,
                        &plan,
                        &tasks,
                        &LaneBound {
                            send: &send,
                            granted,
                        },
                        &current,
                    )
                });
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
            may_mend,
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

    /// Lets the agent of the lane's step mend its work, once the lane looks.
    pub(crate) fn mend(&self) {
        self.may_mend.store(true, Ordering::Release);
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

/// A lane's side of the bound on how many issues are worked on at once; the
/// core decides.
struct LaneBound<'a, F> {
    send: &'a F,
    /// Whether the core lets the agent of the lane's step mend its work.
    granted: Arc<AtomicBool>,
}

impl<F> fmt::Debug for LaneBound<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LaneBound").field(&self.granted).finish()
    }
}

impl<F: Fn(LaneMessage)> WorkBound for LaneBound<'_, F> {
    fn work_done(&self) {
        (self.send)(LaneMessage::WorkDone);
    }

    fn ask_again(&self) {
        // A step that asked before may have ended without an answer.
        self.granted.store(false, Ordering::Release);
        (self.send)(LaneMessage::MendDue);
    }

    fn may_work(&self) -> bool {
        self.granted.load(Ordering::Acquire)
    }
}

fn live(
    batch: Arc<Batch>,
    plan: &LanePlan,
    tasks: &Receiver<Task>,
    bound: &LaneBound<'_, impl Fn(LaneMessage)>,
    current: &std::cell::RefCell<Option<Box<Claimed>>>,
) {
    let send = bound.send;
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
        let report = lane.step(&claim, bound);
        current.replace(None);
        send(LaneMessage::StepEnded(Box::new(report)));
    }
    lane.verify_tip(leaving.is_last());
    if let Err(error) = lane.finish() {
        tracing::warn!(%error, "the lane's last session was not written");
    }
}
