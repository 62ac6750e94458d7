//! Where a step is while it runs.

use super::command::Cut;
use super::listener::spent;
use super::world::Abroad;
use premath_evidence::{FoldedStream, ShellCall};
use premath_kernel::authority::StepIdentity;
use premath_kernel::authority::transport::Transported;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::reference::RefSet;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::json::time::Moment;
use premath_kernel::policy::budget::Spent;
use premath_kernel::policy::governing::SensitiveChanges;
use premath_kernel::policy::landing::LandingRecord;
use premath_kernel::policy::provider::UsageLimit;
use premath_kernel::record::session::SessionStep;
use premath_kernel::record::trajectory::{AgentRecord, TokenCounts, Verification};
use premath_kernel::turn::JoinCheckInput;
use premath_worktree::tree::Base;
use std::path::PathBuf;

/// The calls that a work command reported.
#[derive(Debug)]
pub(super) enum Told {
    /// By its event stream.
    Stream(Box<FoldedStream>),
    /// By an evidence file.
    File(Box<JoinCheckInput>),
}

/// Where a step is while it runs; `stop` reads it, whatever happened.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) identity: StepIdentity,
    pub(super) started_at: jiff::Timestamp,
    pub(super) started_ms: u64,
    pub(super) base: Option<Base>,
    pub(super) calls: Vec<ShellCall>,
    pub(super) witnesses: RefSet,
    pub(super) verification: Option<Verification>,
    /// Whether a verification that passed began with build state.
    pub(super) is_warm: bool,
    pub(super) classes: Vec<String>,
    pub(super) cut: Option<Cut>,
    pub(super) commit: Option<String>,
    /// What the work changed, sorted.
    pub(super) changed_paths: Vec<String>,
    /// What of it a person should look at first.
    pub(super) sensitive: SensitiveChanges,
    /// Where the work landed.
    pub(super) landing: Option<LandingRecord>,
    pub(super) closed: bool,
    /// The outcome of giving the lease back.
    pub(super) transported: Option<Transported>,
    pub(super) discovered: Vec<String>,
    pub(super) lane_lost: Option<(FailureClass, String)>,
    pub(super) store_lost: Option<String>,
    /// The reference of the turn's witness, for an escalation to rest on.
    pub(super) turn_witness: Option<String>,
    /// Whether the tree is where the next step may start from.
    pub(super) restored: bool,
    pub(super) said: Option<(String, PathBuf)>,
    /// Whose agent works, where one does.
    pub(super) provider: Option<String>,
    /// The limit by which the provider refused more work.
    pub(super) limit: Option<UsageLimit>,
    /// What the agent used so far.
    pub(super) spent: Spent,
    /// The calls that the work command reported.
    pub(super) told: Option<Told>,
    /// What the row reports about the agent.
    pub(super) agent: Option<AgentRecord>,
    /// The figures, where the issue's budget is used up.
    pub(super) used_up: Option<String>,
    /// The other world that the step works in.
    pub(super) abroad: Option<Abroad>,
}

impl Progress {
    /// Begins a step of which nothing is done yet.
    pub(super) fn new(identity: StepIdentity, now: Moment) -> Self {
        Self {
            identity,
            started_at: now.wall,
            started_ms: now.boot_ms,
            base: None,
            calls: Vec::new(),
            witnesses: RefSet::new(),
            verification: None,
            is_warm: false,
            classes: Vec::new(),
            cut: None,
            commit: None,
            changed_paths: Vec::new(),
            sensitive: SensitiveChanges::default(),
            landing: None,
            closed: false,
            transported: None,
            discovered: Vec::new(),
            lane_lost: None,
            store_lost: None,
            turn_witness: None,
            restored: true,
            said: None,
            provider: None,
            limit: None,
            spent: Spent::default(),
            told: None,
            agent: None,
            used_up: None,
            abroad: None,
        }
    }

    pub(super) fn fail(&mut self, class: impl AsRef<str>) {
        let class = class.as_ref().to_owned();
        if !self.classes.contains(&class) {
            self.classes.push(class);
        }
    }

    /// Takes in what an agent's stream amounts to.
    pub(super) fn take_in_stream(&mut self, stream: FoldedStream) {
        let told = stream.spent();
        self.spent = spent(told);
        let tokens = told.tokens.map(|tokens| TokenCounts {
            input: tokens.input,
            cached: tokens.cached,
            output: tokens.output,
        });
        let limited = FailureClass::UsageLimit;
        if stream.classes().contains(&limited) {
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
            cost_nano_usd: told.cost_nano_usd,
            limit_resets_at: self.limit.and_then(|limit| limit.resets_at).map(Stamp::at),
        });
        self.told = Some(Told::Stream(Box::new(stream)));
    }

    /// Returns the witness of the latest verification.
    pub(super) fn verified_by(&self) -> Option<String> {
        self.verification
            .as_ref()
            .and_then(|verification| verification.witness_ref.clone())
    }

    pub(super) fn session_step(&self, base: &Base) -> SessionStep {
        SessionStep {
            step_id: self.identity.step_id(),
            issue_id: self.identity.issue_id.clone(),
            generation: self.identity.generation,
            lease_id: self.identity.lease_id.clone(),
            lease_owner: self.identity.owner.clone(),
            base_commit: base.commit.clone(),
            base_branch: base.branch.clone(),
            world: self.abroad.as_ref().and_then(Abroad::step_world),
        }
    }
}
