//! What an operator asks of a batch that runs, carried out and recorded.

use super::Shell;
use crate::control::{ControlCall, ControlMessage, ControlServer};
use crate::machine::{ControlEvent, LaneIndex, MachineEvent, Verdict};
use crate::report::Notice;
use harness_worker::step::{StepEnding, StepReport};
use premath_kernel::issue::lease::Claim;
use premath_kernel::json::id::{IssueId, WorkerName};
use premath_kernel::record::control::{
    CancelThen, ControlAnswer, ControlOperation, ControlResult, IssueControl,
};
use premath_kernel::record::live::PauseKind;
use premath_kernel::record::trajectory::{ControlRecord, control_row};
use premath_memory::cause::chain;
use premath_memory::clock;
use std::collections::{BTreeMap, BTreeSet};

/// What the shell keeps of operators' requests.
#[derive(Debug, Default)]
pub(super) struct Control {
    /// The socket; none where it could not be made.
    pub(super) server: Option<ControlServer>,
    /// What each lane works on.
    pub(super) running: BTreeMap<LaneIndex, Claim>,
    /// What the core answered last.
    pub(super) verdict: Option<Verdict>,
    /// The status that the issue gets that is being cancelled.
    then: Option<CancelThen>,
    /// Cancellations whose attempts have not ended.
    pending: Vec<PendingCancel>,
    /// How many requests were recorded.
    count: u64,
}

/// A request whose answer waits for the end of attempts.
#[derive(Debug)]
struct PendingCancel {
    call: Box<ControlCall>,
    then: CancelThen,
    /// The issues whose attempts have not ended.
    waiting: BTreeSet<IssueId>,
    /// The outcomes of the others.
    outcomes: BTreeMap<IssueId, IssueControl>,
}

impl Shell<'_> {
    /// Opens the socket; a batch without one runs all the same.
    pub(super) fn open_control(&mut self) {
        let send = self.send.clone();
        let started = ControlServer::start(
            &self.batch.settings.roots,
            self.batch.id(),
            move |message| drop(send.send(super::InboxMessage::Control(message))),
        );
        match started {
            Ok(server) => {
                tracing::info!(path = %server.path().display(), "requests are taken");
                self.control.server = Some(server);
            }
            Err(error) => {
                let detail = format!(
                    "this batch cannot be paused, drained or changed by premath: {}",
                    chain(&error)
                );
                self.reporter.notice(&Notice::Warning { detail: &detail });
            }
        }
    }

    /// Takes in what came from the socket; returns whether the batch is over.
    pub(super) fn control_message(&mut self, message: ControlMessage) -> bool {
        match message {
            ControlMessage::Call(call) => self.control(call),
            ControlMessage::Refused { uid, pid } => {
                let detail = format!(
                    "process {pid} of user {uid} connected to the control socket and was refused: \
                     it belongs to a step or to another user (further ones are not reported)"
                );
                self.reporter.notice(&Notice::Warning { detail: &detail });
                false
            }
        }
    }

    fn control(&mut self, call: Box<ControlCall>) -> bool {
        let mut finished = false;
        let asked = match &call.request.operation {
            ControlOperation::Cancel { issues, then } => {
                let (issues, then) = (issues.clone(), *then);
                return self.cancel(call, &issues, then);
            }
            ControlOperation::Retry { issues } => {
                let issues = issues.clone();
                return self.retry(&call, &issues);
            }
            ControlOperation::Say { issues, text, wait } => {
                let (issues, text, wait) = (issues.clone(), text.clone(), *wait);
                self.say(call, &issues, &text, wait);
                return false;
            }
            ControlOperation::LanesRemove { lane } => {
                let Some(index) = self.lane_named(lane) else {
                    let detail = format!("there is no lane {lane}; {}", self.lanes_there());
                    self.answer(&call, self.answer_of(ControlResult::Refused, detail));
                    return false;
                };
                ControlEvent::RemoveLane(index)
            }
            ControlOperation::LanesAdd { count } => {
                ControlEvent::AddLanes(usize::try_from(*count).unwrap_or(usize::MAX))
            }
            ControlOperation::Pause => ControlEvent::Pause,
            ControlOperation::Resume => ControlEvent::Resume,
            ControlOperation::Drain => ControlEvent::Drain,
            ControlOperation::Stop => ControlEvent::Stop,
        };
        let verdict = self.put(asked, &mut finished);
        let paused = match verdict {
            Verdict::Paused => {
                let operator = call.request.operator.as_deref();
                Some(Some((operator.unwrap_or("an operator"), None)))
            }
            // A batch that ends is not resumed.
            Verdict::Resumed | Verdict::Draining | Verdict::Stopping => Some(None),
            _ => None,
        };
        if let Some(paused) = paused {
            self.batch.note_pause(PauseKind::Operator, paused);
        }
        let result = match verdict.is_done() {
            true => ControlResult::Done,
            false => ControlResult::Refused,
        };
        self.answer(&call, self.answer_of(result, verdict.to_string()));
        finished
    }

    /// Asks the core.
    fn put(&mut self, asked: ControlEvent, finished: &mut bool) -> Verdict {
        self.control.verdict = None;
        *finished |= self.feed(MachineEvent::Control(asked));
        self.control.verdict.take().unwrap_or(Verdict::Ending)
    }

    fn answer_of(&self, result: ControlResult, detail: String) -> ControlAnswer {
        ControlAnswer::new(self.batch.id(), result, detail)
    }

    fn lane_named(&self, lane: &WorkerName) -> Option<LaneIndex> {
        self.plans.iter().position(|plan| plan.worker_id == *lane)
    }

    fn lanes_there(&self) -> String {
        let names: Vec<&str> = self.plans.iter().map(|p| p.worker_id.as_str()).collect();
        format!("the lanes are {}", names.join(", "))
    }

    /// Ends the attempts of issues; the answer waits for their ends.
    fn cancel(&mut self, call: Box<ControlCall>, issues: &[IssueId], then: CancelThen) -> bool {
        let mut finished = false;
        let mut pending = PendingCancel {
            call,
            then,
            waiting: BTreeSet::new(),
            outcomes: BTreeMap::new(),
        };
        self.control.then = Some(then);
        for issue_id in issues {
            let mut running = self.control.running.iter();
            let lane = running.find(|(_, claim)| claim.issue_id == *issue_id);
            let verdict = match lane.map(|(lane, _)| *lane) {
                Some(lane) => self.put(ControlEvent::Cancel(lane), &mut finished),
                None => Verdict::NoStep,
            };
            if verdict.is_done() {
                pending.waiting.insert(issue_id.clone());
            } else {
                let refused = IssueControl::refused(issue_id, verdict.to_string());
                pending.outcomes.insert(issue_id.clone(), refused);
            }
        }
        self.settle(pending);
        finished
    }

    /// Carries out that a lane's attempt ends.
    pub(super) fn cancel_attempt(&self, lane: LaneIndex) {
        if let Some(claim) = self.control.running.get(&lane) {
            let hold = self.control.then == Some(CancelThen::Deferred);
            self.batch.cancel(claim, hold);
        }
    }

    /// Answers a cancellation whose attempts have ended, or keeps it.
    fn settle(&mut self, mut pending: PendingCancel) {
        if !pending.waiting.is_empty() {
            self.control.pending.push(pending);
            return;
        }
        let issues = pending.call.request.operation.issues().iter();
        let outcomes = issues.filter_map(|id| pending.outcomes.remove(id));
        let answer = ControlAnswer::of_issues(self.batch.id(), outcomes.collect());
        self.answer(&pending.call, answer);
    }

    /// Takes in that the attempt of a lane ended; without a report its thread
    /// did not say how.
    pub(super) fn attempt_ended(&mut self, lane: LaneIndex, report: Option<&StepReport>) {
        let Some(claim) = self.control.running.remove(&lane) else {
            return;
        };
        self.forget_texts(&claim.issue_id);
        for mut pending in std::mem::take(&mut self.control.pending) {
            if pending.waiting.remove(&claim.issue_id) {
                let outcome = cancelled(&claim.issue_id, report, pending.then);
                if outcome.result == ControlResult::Refused {
                    self.batch.unhold(&claim.issue_id);
                }
                pending.outcomes.insert(claim.issue_id.clone(), outcome);
            }
            self.settle(pending);
        }
    }

    /// Gives issues their attempts again.
    fn retry(&mut self, call: &ControlCall, issues: &[IssueId]) -> bool {
        let mut finished = false;
        let verdict = self.put(ControlEvent::Look, &mut finished);
        let outcomes = issues.iter().map(|issue_id| {
            let is_running = |claim: &Claim| claim.issue_id == *issue_id;
            let is_there = self
                .batch
                .memory
                .view(|view| view.issue(issue_id).is_some());
            if !verdict.is_done() {
                IssueControl::refused(issue_id, verdict.to_string())
            } else if self.control.running.values().any(is_running) {
                // It was opened and taken before this came.
                IssueControl::done(issue_id, "its next attempt is running")
            } else if !is_there.unwrap_or(false) {
                IssueControl::refused(issue_id, "there is no such issue")
            } else {
                self.batch.unhold(issue_id);
                IssueControl::done(issue_id, verdict.to_string())
            }
        });
        let answer = ControlAnswer::of_issues(self.batch.id(), outcomes.collect());
        self.answer(call, answer);
        finished
    }

    /// Records a request with its outcome, then answers it.
    pub(super) fn answer(&mut self, call: &ControlCall, answer: ControlAnswer) {
        let record = ControlRecord {
            operation: call.request.operation.clone(),
            uid: call.uid,
            pid: call.pid,
            operator: call.request.operator.clone(),
            reason: call.request.reason.clone(),
            detail: answer.detail.clone(),
            issues: answer.issues.clone(),
        };
        self.reporter.notice(&Notice::Control {
            record: &record,
            result: answer.result,
        });
        self.control.count += 1;
        let times = (call.asked, clock::now().wall);
        let row = control_row(record, &answer, times, self.control.count);
        if let Err(error) = self.batch.record(&row) {
            tracing::error!(%error, "an operator's request was not recorded");
        }
        // A client that went away does not need it.
        let _ = call.reply.send(answer);
    }
}

/// Returns the outcome of a cancellation, by how the attempt ended.
fn cancelled(issue_id: &IssueId, report: Option<&StepReport>, then: CancelThen) -> IssueControl {
    let Some(report) = report else {
        return IssueControl::refused(issue_id, "the thread of its lane panicked");
    };
    if report.ending != StepEnding::Cancelled {
        let detail = format!("its attempt ended first: {}", report.ending);
        return IssueControl {
            salvage: report.salvage.clone(),
            ..IssueControl::refused(issue_id, detail)
        };
    }
    let kept = match &report.salvage {
        Some(branch) => format!("its work is saved on {branch}"),
        None => "it had changed nothing".to_owned(),
    };
    let then = match then {
        CancelThen::Open => "the issue is open",
        CancelThen::Deferred => "this batch does not take the issue again",
    };
    IssueControl {
        salvage: report.salvage.clone(),
        ..IssueControl::done(issue_id, format!("cancelled; {kept}; {then}"))
    }
}
