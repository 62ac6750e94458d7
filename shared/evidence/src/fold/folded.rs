//! A stream that is over, and what it amounts to.

use super::call::CallRecord;
use super::usage::RunSpending;
use crate::adapter::Agent;
use crate::call::CallEnd;
use crate::event::{Begun, Compacted, Limit, LimitStatus, LineSource, Terminal};
use crate::flaw::{Flaw, StreamFault};
use crate::reader::StreamLog;
use indexmap::{IndexMap, IndexSet};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::canonical;
use premath_kernel::turn::word::TransportEvent;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many faults are kept; all are counted.
const KEPT_FAULTS: usize = 32;

/// How many unknown types are kept by name; all are counted.
const KEPT_TYPES: usize = 64;

/// A stream that is over.
#[derive(Debug)]
pub struct FoldedStream {
    pub(super) agent: Agent,
    pub(super) log: StreamLog,
    pub(super) begun: Option<Begun>,
    /// By the agent's id of them, in the order in which they were first
    /// spoken of. Boxed, so that room for more of them costs little.
    pub(super) calls: IndexMap<Arc<str>, Box<CallRecord>, foldhash::fast::RandomState>,
    /// Calls and outputs in their order, by the place of the call.
    pub(super) transport: Vec<(TransportEvent, u32)>,
    pub(super) messages: u64,
    pub(super) notices: u64,
    pub(super) retries: u64,
    /// How often the context was summarised, and the last time.
    pub(super) compactions: u64,
    pub(super) compacted: Option<(LineSource, Compacted)>,
    /// What the agent reported about the provider that it asks again, where it
    /// got no answer since.
    pub(super) waits: Option<String>,
    pub(super) last_notice: Option<String>,
    pub(super) unknown: BTreeMap<String, u64>,
    pub(super) unknown_events: u64,
    pub(super) limit: Option<Limit>,
    pub(super) terminal: Option<Terminal>,
    pub(super) faults: Vec<StreamFault>,
    pub(super) fault_count: u64,
    pub(super) spent: RunSpending,
}

impl FoldedStream {
    /// Returns whose stream it was.
    pub const fn agent(&self) -> Agent {
        self.agent
    }

    /// Returns what the stream was as bytes.
    pub const fn log(&self) -> &StreamLog {
        &self.log
    }

    /// Returns the agent's own session, by which it can be resumed.
    pub fn session_id(&self) -> Option<&str> {
        self.begun.as_ref()?.session_id.as_deref()
    }

    /// Returns the model.
    pub fn model(&self) -> Option<&str> {
        self.begun.as_ref()?.model.as_deref()
    }

    /// Returns every call, in the order in which they were first spoken of.
    pub fn calls(&self) -> impl ExactSizeIterator<Item = &CallRecord> + Clone {
        self.calls.values().map(|call| &**call)
    }

    /// Returns what went to tools and came from them, in its order.
    pub fn transport(&self) -> impl Iterator<Item = (TransportEvent, &CallRecord)> {
        self.transport.iter().filter_map(|(event, place)| {
            let (_, call) = self.calls.get_index(*place as usize)?;
            Some((*event, &**call))
        })
    }

    /// Returns how the agent ended, where it reported it.
    pub const fn terminal(&self) -> Option<&Terminal> {
        self.terminal.as_ref()
    }

    /// Returns what was spent.
    pub const fn spent(&self) -> RunSpending {
        self.spent
    }

    /// Returns the first faults; one is enough to refuse the stream.
    pub fn faults(&self) -> &[StreamFault] {
        &self.faults
    }

    /// Returns how many faults there were.
    pub const fn fault_count(&self) -> u64 {
        self.fault_count
    }

    /// Returns every tool that the agent has, where it lists them.
    pub fn tools(&self) -> Option<&BTreeSet<String>> {
        self.begun.as_ref()?.tools.as_ref()
    }

    /// Returns the state that the last summary of the context left; none where
    /// there was none.
    pub(crate) fn compaction_view(&self) -> Option<Value> {
        let (source, last) = self.compacted.as_ref()?;
        Some(json!({
            "compactions": self.compactions,
            "source": source.reference(),
            "tokensBefore": last.tokens_before,
            "trigger": last.trigger,
        }))
    }

    /// Returns how often the model spoke.
    pub(crate) const fn messages(&self) -> u64 {
        self.messages
    }

    /// Returns how often the agent asked its provider again.
    pub(crate) const fn retries(&self) -> u64 {
        self.retries
    }

    /// Returns what the agent reported about its provider, where it asked it
    /// again and got no answer since.
    pub(crate) fn waits(&self) -> Option<&str> {
        self.waits.as_deref()
    }

    /// Returns how many events of unknown types were skipped.
    pub const fn unknown_events(&self) -> u64 {
        self.unknown_events
    }

    /// Returns what the agent warned of last.
    pub fn last_notice(&self) -> Option<&str> {
        self.last_notice.as_deref()
    }

    /// Returns the limit that the provider refused the last work by.
    pub fn rejected(&self) -> Option<&Limit> {
        let rejected = |limit: &&Limit| limit.status == LimitStatus::Rejected;
        self.limit.as_ref().filter(rejected)
    }

    /// Returns the classes of the stream itself, the cause first; what its
    /// calls amount to is the gate's to say.
    pub fn classes(&self) -> Vec<FailureClass> {
        let finished = matches!(self.terminal, Some(Terminal::Finished { .. }));
        let limited = (self.rejected().is_some() && !finished).then_some(FailureClass::UsageLimit);
        let invalid = (self.fault_count > 0).then_some(FailureClass::AgentStreamInvalid);
        limited.into_iter().chain(invalid).collect()
    }

    /// Returns the state that the agent was left in: how every call ended, by
    /// its id, and how the agent did.
    pub fn state_view(&self) -> Value {
        let ends: BTreeMap<&str, &str> = self
            .calls()
            .map(|call| (&*call.id, call.end_word()))
            .collect();
        json!({
            "agent": self.agent.as_str(),
            "calls": ends,
            "faults": self.fault_count,
            "log": self.log.digest,
            "messages": self.messages,
            "model": self.model(),
            "session": self.session_id(),
            "spent": self.spent.view(),
            "terminal": match &self.terminal {
                None => json!(null),
                Some(Terminal::Finished { stop_reason }) => json!({"stopReason": stop_reason}),
                Some(Terminal::Failed { reason, .. }) => json!({"failed": reason}),
            },
            "unknown": self.unknown,
        })
    }

    /// Returns what the harness is reminded of: the class of every call that
    /// failed, in the order of their ends, each once; how often the provider was
    /// asked again, and what limit it refuses by.
    pub fn queue_reduction(&self) -> Value {
        let ends = self
            .transport()
            .filter(|(event, _)| *event == TransportEvent::Output);
        let classes = ends.filter_map(|(_, call)| call.failure());
        let failures: IndexSet<&str> = classes.collect();
        json!({
            "failures": failures.iter().collect::<Vec<_>>(),
            "limit": self.rejected().map(|limit| json!({"resetsAt": limit.resets_at})),
            "notices": self.notices,
            "retries": self.retries,
        })
    }

    /// Returns the digest of [`Self::state_view`].
    pub fn state_view_digest(&self) -> String {
        canonical::digest_ordered(&self.state_view())
    }

    /// Returns the digest of [`Self::queue_reduction`].
    pub fn queue_digest(&self) -> String {
        canonical::digest_ordered(&self.queue_reduction())
    }

    pub(super) fn limit(&mut self, limit: Limit) {
        // Said again without a time, the time that was reported still holds.
        let known = self.rejected().and_then(|known| known.resets_at);
        self.limit = Some(Limit {
            resets_at: limit
                .resets_at
                .or(known.filter(|_| limit.status == LimitStatus::Rejected)),
            ..limit
        });
    }

    pub(super) fn count_unknown(&mut self, kind: String) {
        self.unknown_events += 1;
        if self.unknown.len() < KEPT_TYPES || self.unknown.contains_key(&kind) {
            *self.unknown.entry(kind).or_default() += 1;
        }
    }

    pub(super) fn fault(&mut self, line: Option<u64>, flaw: Flaw) {
        self.fault_count += 1;
        if self.faults.len() < KEPT_FAULTS {
            self.faults.push(StreamFault { line, flaw });
        }
    }
}

/// The word for an end of a call.
pub(super) fn word(end: &CallEnd) -> &str {
    match end {
        CallEnd::Ok => "ok",
        CallEnd::Error { class, .. } => class,
    }
}
