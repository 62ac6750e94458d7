//! What a step did so far: its evidence, and what its row and its report say.

use super::remote::RemoteStep;
use super::trouble::Trouble;
use crate::lane::Lane;
use crate::lane::command::{Phase, Ran};
use crate::lane::listener::spent;
use crate::witness;
use premath_evidence::{CallEnd, FoldedStream, ShellCall};
use premath_kernel::authority::StepIdentity;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::reference::RefSet;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::json::time::Moment;
use premath_kernel::policy::budget::Spent;
use premath_kernel::policy::provider::UsageLimit;
use premath_kernel::record::session::SessionStep;
use premath_kernel::record::trajectory::{AgentRecord, TokenCounts, Verification};
use premath_kernel::turn::JoinCheckInput;
use premath_memory::artifact;
use premath_worktree::tree::Base;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The calls that a work command reported.
#[derive(Debug)]
pub(super) enum ReportedCalls {
    /// By its event stream.
    Stream(Box<FoldedStream>),
    /// By an evidence file.
    File(Box<JoinCheckInput>),
}

/// What a step did so far. It only grows, and every stage passes it on.
#[derive(Debug)]
pub(super) struct StepLog {
    pub(super) identity: StepIdentity,
    pub(super) started_at: jiff::Timestamp,
    pub(super) started_ms: u64,
    /// How long it waited for the work of others.
    pub(super) waited: Duration,
    /// Whose agent works, where one does.
    pub(super) provider: Option<String>,
    /// The commands that ran.
    pub(super) calls: Vec<ShellCall>,
    /// The calls that the work command reported.
    pub(super) reported: Option<ReportedCalls>,
    pub(super) witnesses: RefSet,
    /// The latest verification.
    pub(super) verification: Option<Verification>,
    /// The witnesses of verifications that failed, by tree.
    red: BTreeMap<String, RefSet>,
    /// The trees that passed.
    passed: BTreeSet<String>,
    /// The witnesses of verifications that failed on a tree that passed.
    pub(super) flaky: RefSet,
    /// The phase of the verification that passed last.
    pub(super) verified_in: &'static str,
    /// Whether a verification that passed began with build state.
    pub(super) is_warm: bool,
    /// The reference of the turn's witness, for an escalation to rest on.
    pub(super) turn_witness: Option<String>,
    /// What the row reports about the agent.
    pub(super) agent: Option<AgentRecord>,
    /// What the agent used so far.
    pub(super) spent: Spent,
    /// The limit by which the provider refused more work.
    pub(super) limit: Option<UsageLimit>,
    /// The other world that the step works in.
    pub(super) remote: Option<RemoteStep>,
}

/// Where a log was.
#[derive(Debug)]
pub(super) struct LogMark {
    calls: usize,
    verification: Option<Verification>,
}

impl StepLog {
    /// Begins a step of which nothing is done yet.
    pub(super) fn new(identity: StepIdentity, now: Moment, provider: Option<String>) -> Self {
        Self {
            identity,
            started_at: now.wall,
            started_ms: now.boot_ms,
            waited: Duration::ZERO,
            provider,
            calls: Vec::new(),
            reported: None,
            witnesses: RefSet::new(),
            verification: None,
            red: BTreeMap::new(),
            passed: BTreeSet::new(),
            flaky: RefSet::new(),
            verified_in: Phase::Verify(0).name(),
            is_warm: false,
            turn_witness: None,
            agent: None,
            spent: Spent::default(),
            limit: None,
            remote: None,
        }
    }

    /// Returns the step's id.
    pub(super) fn step_id(&self) -> String {
        self.identity.step_id().into()
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
            verification: self.verification.clone(),
        }
    }

    /// Removes the calls since a mark from the evidence: they verified a state
    /// that did not land. Their witnesses stay.
    pub(super) fn discard_from(&mut self, mark: LogMark) {
        self.calls.truncate(mark.calls);
        self.verification = mark.verification;
    }

    /// Removes the calls between two marks from the evidence. Their witnesses
    /// stay.
    pub(super) fn discard_between(&mut self, from: &LogMark, to: &LogMark) {
        self.calls.drain(from.calls..to.calls);
    }

    /// Records how the latest verification of a tree ended.
    pub(super) fn note_verified(&mut self, tree: &str, passed: bool, is_red: bool) {
        if passed {
            let red = self.red.remove(tree);
            self.flaky.extend(&red.unwrap_or_default());
            self.passed.insert(tree.to_owned());
        } else if is_red && let Some(witness) = self.verified_by() {
            match self.passed.contains(tree) {
                true => self.flaky.insert(witness),
                false => self.red.entry(tree.to_owned()).or_default().insert(witness),
            };
        }
    }

    /// Returns the witness of the latest verification.
    pub(super) fn verified_by(&self) -> Option<String> {
        self.verification
            .as_ref()
            .and_then(|verification| verification.witness_ref.clone())
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

    /// Takes in what an agent's stream amounts to.
    fn take_in_stream(&mut self, stream: FoldedStream) {
        let used = stream.spent();
        self.spent = spent(used);
        let tokens = used.tokens.map(|tokens| TokenCounts {
            input: tokens.input,
            cached: tokens.cached,
            output: tokens.output,
        });
        if stream.classes().contains(&FailureClass::UsageLimit) {
            let at = stream.rejected().and_then(|limit| limit.resets_at);
            self.limit = Some(UsageLimit {
                resets_at: at.and_then(|at| jiff::Timestamp::from_second(at).ok()),
            });
        }
        self.agent = Some(AgentRecord {
            adapter: stream.agent().as_str().to_owned(),
            model: stream.model().map(str::to_owned),
            session_id: stream.session_id().map(str::to_owned),
            calls: stream.calls().len() as u64,
            tokens,
            cost_nano_usd: used.cost_nano_usd,
            limit_resets_at: self.limit.and_then(|limit| limit.resets_at).map(Stamp::at),
        });
        self.reported = Some(ReportedCalls::Stream(Box::new(stream)));
    }
}

impl Lane {
    /// Takes a command's end in; the error is why the step does not continue.
    pub(super) fn take_in(
        &self,
        log: &mut StepLog,
        ran: Ran,
        phase: Phase,
    ) -> Result<(), Box<Trouble>> {
        self.note_limit(log, &ran, phase);
        log.witnesses.insert(&ran.witness_ref);
        let mut trouble = Box::<Trouble>::default();
        ran.classes.iter().for_each(|class| trouble.fail(class));
        if matches!(phase, Phase::Verify(_) | Phase::Land(_)) {
            let class = ran.classes.first().map_or("passed", String::as_str);
            if ran.passed() {
                log.verified_in = phase.name();
            }
            log.verification = Some(Verification {
                class: class.to_owned(),
                witness_ref: Some(ran.witness_ref.clone()),
            });
        }
        if let Some(CallEnd::Error { message, .. }) = &ran.call.end {
            let folder = &self.batch.settings.roots.streams;
            let (step_id, phase) = (log.step_id(), phase.name());
            let output = artifact::printed(folder, &step_id, phase)
                .unwrap_or_else(|| witness::file(folder, &step_id, phase, "stderr"));
            trouble.said = Some((message.clone(), output));
        }
        if ran.survivors > 0 {
            let detail = format!("cannot kill {} process(es) of the step", ran.survivors);
            trouble.strand(FailureClass::SupervisorLost, detail);
        }
        trouble.cut = ran.cut;
        let goes_on = ran.passed() && trouble.lane_lost.is_none();
        if let Some(stream) = ran.stream {
            log.take_in_stream(stream);
        }
        log.calls.push(ran.call);
        if goes_on { Ok(()) } else { Err(trouble) }
    }
}
