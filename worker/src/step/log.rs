//! What a step did so far: its evidence, and what its row and its report say.

use super::account::WorkAccount;
use super::remote::RemoteStep;
use super::step_failure::StepFailure;
use super::verifications::Verifications;
use crate::lane::Lane;
use crate::lane::command::{Phase, Ran};
use crate::witness;
use premath_evidence::{CallEnd, HookJournal, ShellCall, StepDemand};
use premath_kernel::authority::StepIdentity;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::StepId;
use premath_kernel::json::reference::RefSet;
use premath_kernel::json::time::Moment;
use premath_kernel::record::session::SessionStep;
use premath_kernel::record::trajectory::{SharedVerification, Verification};
use premath_memory::artifact;
use premath_worktree::tree::Base;
use std::time::Duration;

/// What a step did so far. It only grows, and every stage passes it on.
#[derive(Debug)]
pub(super) struct StepLog {
    pub(super) identity: StepIdentity,
    pub(super) started_at: jiff::Timestamp,
    pub(super) started_ms: u64,
    /// How long it waited for the work of others.
    pub(super) waited: Duration,
    /// The commands that ran.
    pub(super) calls: Vec<ShellCall>,
    pub(super) witnesses: RefSet,
    /// The verifications of the step, with their results.
    pub(super) verified: Verifications,
    /// What its work reported and used.
    pub(super) account: WorkAccount,
    /// The reference of the turn's witness, for an escalation to rest on.
    pub(super) turn_witness: Option<String>,
    /// What the turn policy demands of it.
    pub(super) demand: StepDemand,
    /// The other world that the step works in.
    pub(super) remote: Option<RemoteStep>,
}

/// A position in a log, to return to.
#[derive(Debug)]
pub(super) struct LogMark {
    calls: usize,
    verification: Option<Verification>,
    shared: Option<SharedVerification>,
    passed_in: &'static str,
}

impl StepLog {
    /// Begins a step of which nothing is done yet.
    pub(super) fn new(identity: StepIdentity, now: Moment, provider: Option<String>) -> Self {
        Self {
            identity,
            started_at: now.wall,
            started_ms: now.boot_ms,
            waited: Duration::ZERO,
            calls: Vec::new(),
            witnesses: RefSet::new(),
            verified: Verifications::none(),
            account: WorkAccount::of(provider),
            turn_witness: None,
            demand: StepDemand::default(),
            remote: None,
        }
    }

    /// Returns the step's id.
    pub(super) fn step_id(&self) -> StepId {
        self.identity.step_id()
    }

    /// Returns how long the step ran, without the time in which it waited.
    pub(super) fn own_time(&self, now: Moment) -> Duration {
        let ran = now.boot_ms.saturating_sub(self.started_ms);
        Duration::from_millis(ran).saturating_sub(self.waited)
    }

    /// Returns where the log is now.
    pub(super) fn mark(&self) -> LogMark {
        LogMark {
            calls: self.calls.len(),
            verification: self.verified.latest.clone(),
            shared: self.verified.shared.clone(),
            passed_in: self.verified.passed_in,
        }
    }

    /// Removes the calls since a mark from the evidence: they verified a state
    /// that did not land. Their witnesses stay.
    pub(super) fn discard_from(&mut self, mark: LogMark) {
        self.calls.truncate(mark.calls);
        self.verified.latest = mark.verification;
        self.verified.shared = mark.shared;
        self.verified.passed_in = mark.passed_in;
    }

    /// Removes the calls between two marks from the evidence. Their witnesses
    /// stay.
    pub(super) fn discard_between(&mut self, from: &LogMark, to: &LogMark) {
        self.calls.drain(from.calls..to.calls);
    }

    /// Returns what the session reports about a step from a base.
    pub(super) fn session_step(&self, base: &Base) -> SessionStep {
        SessionStep {
            step_id: self.identity.step_id(),
            issue_id: self.identity.issue_id.clone(),
            generation: self.identity.generation,
            lease_id: self.identity.lease_id.clone(),
            lease_owner: self.identity.owner.clone(),
            base_commit: base.commit.clone(),
            base_branch: base.branch.clone(),
            world: self.remote.as_ref().and_then(RemoteStep::step_world),
        }
    }
}

impl Lane {
    /// Takes a command's end in; the error is why the step does not continue.
    pub(super) fn take_in(
        &self,
        log: &mut StepLog,
        ran: Ran,
        phase: Phase,
    ) -> Result<(), Box<StepFailure>> {
        self.note_limit(log, &ran, phase);
        log.witnesses.insert(&ran.witness_ref);
        let mut failure = Box::<StepFailure>::default();
        ran.classes.iter().for_each(|class| failure.fail(class));
        if matches!(phase, Phase::Verify(_) | Phase::Land(_)) {
            let class = ran.classes.first().map_or("passed", String::as_str);
            if ran.passed() {
                log.verified.passed_in = phase.name();
            }
            log.verified.latest = Some(Verification {
                class: class.to_owned(),
                witness_ref: Some(ran.witness_ref.clone()),
            });
        }
        if let Some(CallEnd::Error { message, .. }) = &ran.call.end {
            let folder = &self.batch.settings.roots.streams;
            let (step_id, phase) = (log.step_id(), phase.name());
            let output = artifact::printed(folder, &step_id, phase)
                .unwrap_or_else(|| witness::file(folder, &step_id, phase, "stderr"));
            failure.said = Some((message.clone(), output));
        }
        if ran.survivors > 0 {
            let detail = format!("cannot kill {} process(es) of the step", ran.survivors);
            failure.mark_stranded(FailureClass::SupervisorLost, detail);
        }
        failure.cut = ran.cut;
        let may_continue = ran.passed() && failure.lane_lost.is_none();
        let allowed = ran.hooks.as_ref().map(HookJournal::allowed);
        if let Some(stream) = ran.stream {
            log.account.take_in(phase.name(), stream, ran.hooks);
        }
        if phase.is_work() {
            log.account.worked += ran.took;
            log.account.allowed = allowed.unwrap_or(log.account.allowed);
        }
        log.calls.push(ran.call);
        if may_continue { Ok(()) } else { Err(failure) }
    }
}
