//! What a stream amounts to: a fold over its events, one by one.
//!
//! Nothing but the events enters it, so it is the same on every run, and
//! wherever the stream was cut. What is kept grows with the number of calls
//! (ids, names, digests, an excerpt of each error), never with their payloads,
//! and no further than [`MAX_CALL_BYTES`].

mod call;
mod unread;
mod usage;

pub use call::{CallRecord, RequestRecord, ResultRecord};
pub use usage::RunSpending;

use crate::adapter::Agent;
use crate::call::CallEnd;
use crate::event::{
    Begun, CallRequest, CallResult, Compacted, EventKind, Limit, LimitStatus, LineSource, Speaker,
    StreamEvent, Terminal,
};
use crate::flaw::{Flaw, MAX_CALL_BYTES, StreamFault};
use crate::reader::StreamLog;
use indexmap::{IndexMap, IndexSet};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::canonical;
use premath_kernel::turn::word::TransportEvent;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use unread::Unread;
use usage::UsageFold;

/// How many faults are kept; all are counted.
const KEPT_FAULTS: usize = 32;

/// How many unknown types are kept by name; all are counted.
const KEPT_TYPES: usize = 64;

/// How many names of tools are kept once each, however often they are called.
const KEPT_TOOLS: usize = 256;

/// Takes events and folds them.
#[derive(Debug)]
pub struct StreamFold {
    stream: FoldedStream,
    unread: Unread,
    /// How many calls have begun and not ended.
    open: usize,
    /// How many tasks run in the background.
    running: u64,
    tools: BTreeSet<Arc<str>>,
    /// How many bytes are kept of calls, and rather more than less.
    call_bytes: usize,
    /// Whether more would be too many.
    full: bool,
    usage: UsageFold,
}

/// A stream that is over.
#[derive(Debug)]
pub struct FoldedStream {
    agent: Agent,
    log: StreamLog,
    begun: Option<Begun>,
    /// By the agent's id of them, in the order in which they were first
    /// spoken of. Boxed, so that room for more of them costs little.
    calls: IndexMap<Arc<str>, Box<CallRecord>, foldhash::fast::RandomState>,
    /// Calls and outputs in their order, by the place of the call.
    transport: Vec<(TransportEvent, u32)>,
    messages: u64,
    notices: u64,
    retries: u64,
    /// How often the context was summarised, and the last time.
    compactions: u64,
    compacted: Option<(LineSource, Compacted)>,
    /// What the agent reported about the provider that it asks again, where it
    /// got no answer since.
    waits: Option<String>,
    last_notice: Option<String>,
    unknown: BTreeMap<String, u64>,
    unknown_events: u64,
    limit: Option<Limit>,
    terminal: Option<Terminal>,
    faults: Vec<StreamFault>,
    fault_count: u64,
    spent: RunSpending,
}

impl StreamFold {
    /// Begins with nothing.
    pub fn new(agent: Agent) -> Self {
        Self {
            stream: FoldedStream {
                agent,
                log: StreamLog::default(),
                begun: None,
                calls: IndexMap::default(),
                transport: Vec::new(),
                messages: 0,
                notices: 0,
                retries: 0,
                compactions: 0,
                compacted: None,
                waits: None,
                last_notice: None,
                unknown: BTreeMap::new(),
                unknown_events: 0,
                limit: None,
                terminal: None,
                faults: Vec::new(),
                fault_count: 0,
                spent: RunSpending::default(),
            },
            unread: Unread::default(),
            open: 0,
            running: 0,
            tools: BTreeSet::new(),
            call_bytes: 0,
            full: false,
            usage: UsageFold::default(),
        }
    }

    /// Begins with nothing, in a session that used so much before: where the
    /// agent reports the totals of the session, that is not counted again.
    pub(crate) fn resumed(agent: Agent, before: RunSpending) -> Self {
        let mut fold = Self::new(agent);
        if agent.spec().totals_are_of_session {
            fold.usage = UsageFold::after(before);
        }
        fold
    }

    /// Takes the next event.
    pub fn apply(&mut self, event: StreamEvent<'_>) {
        let StreamEvent { source, kind } = event;
        match kind {
            EventKind::Begun(begun) => {
                self.stream.begun.get_or_insert(begun);
            }
            EventKind::Request(request) => {
                self.spoke(source, &request.speaker);
                self.request(source, request);
            }
            EventKind::Result(result) => {
                self.active(source);
                self.result(source, result);
            }
            EventKind::Compacted(compacted) => {
                self.active(source);
                self.stream.compactions += 1;
                self.stream.compacted = Some((source, compacted));
            }
            EventKind::Message(speaker) => {
                self.stream.messages += 1;
                self.spoke(source, &speaker);
            }
            EventKind::Usage(usage) => self.usage.take(usage),
            EventKind::Limit(limit) => self.stream.limit(limit),
            EventKind::Retry(retry) => {
                self.stream.retries += 1;
                self.stream.waits = Some(retry.said);
            }
            EventKind::Notice(said) => {
                self.stream.notices += 1;
                self.stream.last_notice = Some(said);
            }
            EventKind::Running(tasks) => self.running = tasks,
            EventKind::TaskOver => self.active(source),
            EventKind::Terminal(terminal) => self.end(source, terminal),
            EventKind::Unknown(kind) => self.stream.count_unknown(kind),
            EventKind::Invalid(flaw) => self.stream.fault(Some(source.line), flaw),
        }
    }

    /// Returns what was spent so far, for a budget.
    pub fn spent(&self) -> RunSpending {
        self.usage.spent()
    }

    /// Returns how many calls were reported so far.
    pub fn calls(&self) -> usize {
        self.stream.calls.len()
    }

    /// Returns the tool that was called last so far.
    pub fn last_tool(&self) -> Option<&str> {
        let (_, last) = self.stream.calls.last()?;
        last.request.as_ref().map(|request| &*request.tool)
    }

    /// Returns the limit that the provider refuses work by, as of now.
    pub fn rejected(&self) -> Option<&Limit> {
        self.stream.rejected()
    }

    /// Returns how often the agent asked its provider again.
    pub(crate) const fn retries(&self) -> u64 {
        self.stream.retries
    }

    /// Returns whether calls were requested that have not ended, or tasks run in
    /// the background: what a limit on silence depends on.
    pub const fn is_in_call(&self) -> bool {
        self.open > 0 || self.running > 0
    }

    /// Returns whether the agent said that it is done, and it waits for nothing.
    pub fn is_over(&self) -> bool {
        self.stream.terminal.is_some() && self.running == 0
    }

    /// Returns whether more was reported than is kept: the stream is lost,
    /// whatever comes.
    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// Ends the fold with the stream.
    pub fn close(mut self, log: StreamLog) -> FoldedStream {
        if log.lines == 0 {
            self.stream.fault(None, Flaw::Empty);
        } else if self.stream.terminal.is_none() {
            self.stream.fault(None, Flaw::TerminalMissing);
        } else if self.running > 0 {
            self.stream.fault(None, Flaw::TasksRunning(self.running));
        }
        self.stream.log = log;
        self.stream.spent = self.usage.spent();
        self.stream
    }

    /// Returns about how many bytes the fold holds.
    pub(crate) fn retained_bytes(&self) -> usize {
        let stream = &self.stream;
        let calls: usize = stream
            .calls
            .values()
            .map(|call| call.retained_bytes())
            .sum();
        let types: usize = stream.unknown.keys().map(String::capacity).sum();
        size_of::<Self>()
            + calls
            + stream.calls.capacity() * CallRecord::PLACE
            + stream.transport.capacity() * size_of::<(TransportEvent, u32)>()
            + self.unread.retained_bytes()
            + types
            + self.usage.retained_bytes()
    }

    /// Something happened that only a running agent does.
    fn active(&mut self, source: LineSource) {
        let stream = &mut self.stream;
        // What comes after a terminal event needs another one.
        stream.terminal = None;
        stream.waits = None;
        if stream.begun.is_none() && stream.agent.spec().says_begin {
            stream.begun = Some(Begun::default());
            stream.fault(Some(source.line), Flaw::BeginMissing);
        }
    }

    /// The model spoke: it had read what it was given in earlier rounds.
    fn spoke(&mut self, source: LineSource, speaker: &Speaker) {
        self.active(source);
        // A provider that answers refuses no more.
        self.stream.limit = None;
        let calls = &mut self.stream.calls;
        self.unread
            .read_by(&speaker.caller, &speaker.round, |place| {
                let call = calls.get_index_mut(place);
                if let Some(result) = call.and_then(|(_, call)| call.result.as_mut()) {
                    result.read_at = Some(source);
                }
            });
    }

    fn request(&mut self, source: LineSource, request: CallRequest<'_>) {
        let tool = self.tool(&request.tool);
        let record = RequestRecord {
            tool,
            input_digest: request.input_digest,
            hook_digest: request.hook_digest,
            speaker: request.speaker,
            synthesized: request.synthesized,
            source,
        };
        let is_reported = |call: &CallRecord| call.request.is_some();
        let cost = record.retained_bytes();
        let Some(place) = self.place(source, &request.call_id, cost, is_reported) else {
            return;
        };
        self.add_transport(TransportEvent::Call, place);
        let call = &mut self.stream.calls[place];
        if call.request.is_some() {
            self.stream.fault(
                Some(source.line),
                Flaw::RequestAgain(request.call_id.into_owned()),
            );
            return;
        }
        self.open += usize::from(call.result.is_none());
        call.request = Some(record);
    }

    fn result(&mut self, source: LineSource, result: CallResult<'_>) {
        let line = Some(source.line);
        let record = ResultRecord {
            caller: result.caller,
            end: result.end,
            digest: result.digest,
            bytes: result.bytes,
            source,
            read_at: None,
        };
        let is_reported = |call: &CallRecord| call.result.is_some();
        let cost = record.retained_bytes() + self.unread.cost(&record.caller);
        let Some(place) = self.place(source, &result.call_id, cost, is_reported) else {
            return;
        };
        self.add_transport(TransportEvent::Output, place);
        let call = &mut self.stream.calls[place];
        if call.result.is_some() {
            self.stream
                .fault(line, Flaw::ResultAgain(result.call_id.into_owned()));
            return;
        }
        let asked = call.request.as_ref();
        let caller_changed = asked.is_some_and(|asked| asked.speaker.caller != record.caller);
        let input_changed = asked
            .zip(result.input_digest)
            .is_some_and(|(asked, again)| asked.input_digest != again);
        self.open -= usize::from(asked.is_some());
        let round = asked.and_then(|asked| asked.speaker.round.clone());
        self.unread
            .push(record.caller.clone(), round, number(place));
        call.result = Some(record);
        if caller_changed {
            let flaw = Flaw::CallerChanged(result.call_id.to_string());
            self.stream.fault(line, flaw);
        }
        if input_changed {
            self.stream
                .fault(line, Flaw::CallChanged(result.call_id.into_owned()));
        }
    }

    fn end(&mut self, source: LineSource, terminal: Terminal) {
        // A failure that nothing happened after stays one.
        let failed = matches!(self.stream.terminal, Some(Terminal::Failed { .. }));
        let before = self.stream.terminal.take();
        self.active(source);
        self.stream.terminal = if failed { before } else { Some(terminal) };
    }

    fn add_transport(&mut self, event: TransportEvent, place: usize) {
        self.stream.transport.push((event, number(place)));
    }

    /// Returns the place of a call of which more is to be kept, a new one where
    /// it is not known; none where that would be too much. What was reported
    /// before costs a whole call: repeats are evidence too and cost as much
    /// there.
    fn place(
        &mut self,
        source: LineSource,
        call_id: &str,
        bytes: usize,
        is_reported: impl Fn(&CallRecord) -> bool,
    ) -> Option<usize> {
        let known = self.stream.calls.get_index_of(call_id);
        let bytes = match known {
            Some(place) if !is_reported(&self.stream.calls[place]) => bytes,
            _ => bytes + CallRecord::COST + call_id.len(),
        };
        self.full |= self.call_bytes + bytes > MAX_CALL_BYTES;
        if self.full {
            self.stream.fault(Some(source.line), Flaw::TooManyCalls);
            return None;
        }
        self.call_bytes += bytes;
        Some(known.unwrap_or_else(|| {
            let id: Arc<str> = call_id.into();
            let record = Box::new(CallRecord::new(id.clone()));
            self.stream.calls.insert_full(id, record).0
        }))
    }

    /// Returns a tool's name, the same one each time.
    fn tool(&mut self, tool: &str) -> Arc<str> {
        if let Some(known) = self.tools.get(tool) {
            return known.clone();
        }
        let tool: Arc<str> = tool.into();
        if self.tools.len() < KEPT_TOOLS {
            self.tools.insert(tool.clone());
        }
        tool
    }
}

/// A place as it is kept. No stream has more calls than [`MAX_CALL_BYTES`] has bytes.
const fn number(place: usize) -> u32 {
    place as u32
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

    fn limit(&mut self, limit: Limit) {
        // Said again without a time, the time that was reported still holds.
        let known = self.rejected().and_then(|known| known.resets_at);
        self.limit = Some(Limit {
            resets_at: limit
                .resets_at
                .or(known.filter(|_| limit.status == LimitStatus::Rejected)),
            ..limit
        });
    }

    fn count_unknown(&mut self, kind: String) {
        self.unknown_events += 1;
        if self.unknown.len() < KEPT_TYPES || self.unknown.contains_key(&kind) {
            *self.unknown.entry(kind).or_default() += 1;
        }
    }

    fn fault(&mut self, line: Option<u64>, flaw: Flaw) {
        self.fault_count += 1;
        if self.faults.len() < KEPT_FAULTS {
            self.faults.push(StreamFault { line, flaw });
        }
    }
}

/// The word for an end of a call.
fn word(end: &CallEnd) -> &str {
    match end {
        CallEnd::Ok => "ok",
        CallEnd::Error { class, .. } => class,
    }
}
