//! What the agent of a step reported, and what its work used.

use crate::lane::listener::spent;
use premath_evidence::FoldedStream;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::policy::budget::Spent;
use premath_kernel::policy::provider::UsageLimit;
use premath_kernel::record::trajectory::{AgentRecord, TokenCounts};
use premath_kernel::turn::JoinCheckInput;
use std::collections::BTreeMap;

/// The calls that a work command reported.
#[derive(Debug)]
pub(super) enum ReportedCalls {
    /// Calls that the event stream reports.
    Stream(Box<FoldedStream>),
    /// Calls that an evidence file reports.
    File(Box<JoinCheckInput>),
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
            limit: None,
        }
    }

    /// Takes in what an agent's stream amounts to, and which of its calls were
    /// denied.
    pub(super) fn take_in(&mut self, stream: FoldedStream, denials: BTreeMap<String, u64>) {
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
            denials,
        });
        self.reported = Some(ReportedCalls::Stream(Box::new(stream)));
    }
}
