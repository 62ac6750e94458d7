//! What the agent of a step reported, and what its work used.

use crate::lane::listener::spent;
use premath_evidence::{AgentRound, FoldedStream, HookJournal, RunSpending};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::policy::budget::Spent;
use premath_kernel::policy::provider::UsageLimit;
use premath_kernel::record::trajectory::{AgentRecord, TokenCounts};
use premath_kernel::turn::JoinCheckInput;
use std::time::Duration;

/// The calls that a work command reported.
#[derive(Debug)]
pub(super) enum ReportedCalls {
    /// Calls that the event streams report, one for each round of the agent.
    Streams(Vec<StreamRound>),
    /// Calls that an evidence file reports.
    File(Box<JoinCheckInput>),
}

/// The event stream of one run of the agent.
#[derive(Debug)]
pub(super) struct StreamRound {
    phase: &'static str,
    stream: Box<FoldedStream>,
    /// What its hooks reported, where it has any.
    hooks: Option<Box<HookJournal>>,
}

impl StreamRound {
    /// Returns it as a round of the turn.
    pub(super) fn of_turn(&self) -> AgentRound<'_> {
        AgentRound {
            phase: self.phase,
            stream: &self.stream,
            hooks: self.hooks.as_deref(),
        }
    }
}

/// What the work command reported, and what it used.
#[derive(Debug)]
pub(super) struct WorkAccount {
    /// Whose agent works, where one does.
    pub(super) provider: Option<String>,
    /// The calls that the work command reported.
    pub(super) reported: Option<ReportedCalls>,
    /// What the row reports about the agent.
    pub(super) agent: Option<AgentRecord>,
    /// What the agent used so far.
    pub(super) spent: Spent,
    /// How long the work ran so far.
    pub(super) worked: Duration,
    /// How many calls of the turn were allowed so far.
    pub(super) allowed: u64,
    /// Whether the agent resumed the session of the last attempt.
    pub(super) resumed: bool,
    /// The worktree that the agent's session belongs to, where it outlives the attempt.
    pub(super) session_folder: Option<String>,
    /// The limit by which the provider refused more work.
    pub(super) limit: Option<UsageLimit>,
}

impl WorkAccount {
    /// Opens the account of a step of which nothing is done yet.
    pub(super) fn of(provider: Option<String>) -> Self {
        Self {
            provider,
            reported: None,
            agent: None,
            spent: Spent::default(),
            worked: Duration::ZERO,
            allowed: 0,
            resumed: false,
            session_folder: None,
            limit: None,
        }
    }

    /// Returns the event streams so far.
    pub(super) fn streams(&self) -> &[StreamRound] {
        match &self.reported {
            Some(ReportedCalls::Streams(streams)) => streams,
            _ => &[],
        }
    }

    /// Returns how often the agent was run again in its session.
    pub(super) fn repairs(&self) -> u64 {
        (self.streams().len() as u64).saturating_sub(1)
    }

    /// Returns the session of the agent, where its stream reported it.
    pub(super) fn session(&self) -> Option<&str> {
        self.streams().last()?.stream.session_id()
    }

    /// Returns what the agent reported that it used so far.
    pub(super) fn used(&self) -> RunSpending {
        let streams = self.streams().iter();
        streams.fold(RunSpending::default(), |sum, round| {
            sum.plus(round.stream.spent())
        })
    }

    /// Takes in what the agent's stream of a round amounts to, and what its hooks
    /// reported.
    pub(super) fn take_in(
        &mut self,
        phase: &'static str,
        stream: FoldedStream,
        hooks: Option<HookJournal>,
    ) {
        let used = self.used().plus(stream.spent());
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
        let before = self.agent.take();
        let calls = before.as_ref().map_or(0, |agent| agent.calls);
        let mut denials = before.map(|agent| agent.denials).unwrap_or_default();
        for (rule, count) in hooks.iter().flat_map(HookJournal::denials) {
            *denials.entry(rule.clone()).or_default() += count;
        }
        let session_id = stream.session_id().map(str::to_owned);
        let session_folder = session_id.as_ref().and(self.session_folder.clone());
        self.agent = Some(AgentRecord {
            adapter: stream.agent().as_str().to_owned(),
            model: stream.model().map(str::to_owned),
            session_id,
            session_folder,
            calls: calls + stream.calls().len() as u64,
            tokens,
            cost_nano_usd: used.cost_nano_usd,
            repair_rounds: Some(self.streams().len() as u64).filter(|rounds| *rounds > 0),
            resumed: self.resumed,
            limit_resets_at: self.limit.and_then(|limit| limit.resets_at).map(Stamp::at),
            denials,
        });
        let round = StreamRound {
            phase,
            stream: Box::new(stream),
            hooks: hooks.map(Box::new),
        };
        match &mut self.reported {
            Some(ReportedCalls::Streams(streams)) => streams.push(round),
            reported => *reported = Some(ReportedCalls::Streams(vec![round])),
        }
    }
}
