//! What a stream amounts to: a fold over its events, one by one.
//!
//! Nothing but the events enters it, so it is the same on every run, and
//! wherever the stream was cut. What is kept grows with the number of calls
//! (ids, names, digests, an excerpt of each error), never with their payloads,
//! and no further than [`MAX_CALL_BYTES`].

mod call;
mod folded;
mod unread;
mod usage;

pub use call::{CallRecord, RequestRecord, ResultRecord};
pub use folded::FoldedStream;
pub use usage::RunSpending;

use crate::adapter::Agent;
use crate::event::{
    Begun, CallRequest, CallResult, EventKind, Limit, LineSource, Speaker, StreamEvent, Terminal,
};
use crate::flaw::{Flaw, MAX_CALL_BYTES};
use crate::reader::StreamLog;
use indexmap::IndexMap;
use premath_kernel::turn::word::TransportEvent;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use unread::Unread;
use usage::UsageFold;

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
