//! What an agent's event stream says, in one model for every agent.
//!
//! Events are values that only ever are appended to each other: what they
//! amount to is a fold over them ([`StreamFold`](crate::StreamFold)). None
//! holds a payload: of inputs and outputs there are digests, of messages the
//! line's digest, of errors an excerpt.

use crate::call::CallEnd;
use crate::flaw::Flaw;
use premath_kernel::json::canonical::Sum;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// One thing that a line of a stream says; names may be borrowed from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEvent<'a> {
    /// The line of the event.
    pub source: LineSource,
    /// The kind of the event, with its content.
    pub kind: EventKind<'a>,
}

/// The line that an event was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineSource {
    /// Its number, counted from 1.
    pub line: u64,
    /// The SHA-256 of its bytes, without the line feed.
    pub sha256: Sum,
}

impl LineSource {
    /// Returns `stream://line/<number>/<sha256>`, by which evidence names the line.
    pub(crate) fn reference(&self) -> String {
        format!("stream://line/{}/{}", self.line, self.sha256.hex())
    }
}

/// The kinds of things that are reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind<'a> {
    /// The agent is up.
    Begun(Begun),
    /// The model asked for a tool call.
    Request(CallRequest<'a>),
    /// A tool call ended.
    Result(CallResult<'a>),
    /// A message of the model that is not a call.
    Message(Speaker),
    /// Tokens and money were used.
    Usage(ReportedUsage),
    /// The provider spoke of a limit.
    Limit(Limit),
    /// A request to the provider will be made again.
    Retry(Retry),
    /// The agent summarised its context.
    Compacted(Compacted),
    /// The agent warns of something and continues.
    Notice(String),
    /// How many tasks of the agent run in the background: it is not done before
    /// they are.
    Running(u64),
    /// A task in the background is over: the agent continues with its output.
    TaskOver,
    /// The agent is done.
    Terminal(Terminal),
    /// An unknown type that cannot be a call.
    Unknown(String),
    /// The line or its content is not evidence.
    Invalid(Flaw),
}

/// The begin of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Begun {
    /// The agent's own session, by which it can be resumed.
    pub session_id: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Every tool that the agent has, where it lists them.
    pub tools: Option<BTreeSet<String>>,
}

/// A summary that an agent made of its context, to work on with it alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// What made it do so, in the agent's own word.
    pub trigger: String,
    /// How many tokens the context had before, where that is reported.
    pub tokens_before: Option<u64>,
}

/// Who speaks: the agent itself or one that it called, and in which round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Speaker {
    /// The call that the sub-agent runs in; none for the agent itself.
    pub caller: Option<Arc<str>>,
    /// The answer of the model that it belongs to, where the format reports it:
    /// what is in one answer cannot have read results of its own calls.
    pub round: Option<Arc<str>>,
}

/// A requested tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRequest<'a> {
    /// The agent's id of the call.
    pub call_id: Cow<'a, str>,
    /// The tool.
    pub tool: Cow<'a, str>,
    /// `D` of what it was called with.
    pub input_digest: Sum,
    /// `D` of what hooks report of the input, where that differs.
    pub hook_digest: Option<Sum>,
    /// The speaker that made the call.
    pub speaker: Speaker,
    /// Whether the agent reports finished calls only, and the request was
    /// made up from the result.
    pub synthesized: bool,
}

/// The end of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult<'a> {
    /// The agent's id of the call.
    pub call_id: Cow<'a, str>,
    /// The sub-agent that the result was given to; none for the agent itself.
    pub caller: Option<Arc<str>>,
    /// `D` of what it was called with, where the result reports it again.
    pub input_digest: Option<Sum>,
    /// The end of the call.
    pub end: CallEnd,
    /// `D` of what it gave.
    pub digest: Sum,
    /// How many bytes that is, as it is stored in the line.
    pub bytes: u64,
}

/// Tokens and money.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedUsage {
    /// What the figures are of.
    pub basis: UsageBasis,
    /// The tokens, where they are given.
    pub tokens: Option<Tokens>,
    /// The cost in billionths of a dollar, where it is given.
    pub cost_nano_usd: Option<u64>,
}

/// What usage figures are of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UsageBasis {
    /// The whole run so far: it takes the place of what was reported before.
    #[default]
    RunningTotal,
    /// Tokens of a turn that is over, in place of those of its messages; the
    /// cost is the session's so far.
    Turn,
    /// One step: it adds to what was reported before.
    Step,
    /// One message, which may be reported in several lines: it adds once.
    Message(Arc<str>),
}

/// Tokens of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// What went in, with what came out of a cache.
    pub input: u64,
    /// The part of it that came out of a cache.
    pub cached: u64,
    /// What came out, with reasoning.
    pub output: u64,
}

impl Tokens {
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            output: self.output.saturating_add(other.output),
        }
    }

    pub(crate) const fn minus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_sub(other.input),
            cached: self.cached.saturating_sub(other.cached),
            output: self.output.saturating_sub(other.output),
        }
    }
}

/// A limit of the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What the provider makes of it.
    pub status: LimitStatus,
    /// When it resets, in seconds since 1970, where that is reported.
    pub resets_at: Option<i64>,
}

/// What a provider makes of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitStatus {
    /// Work continues; this is routine.
    Allowed,
    /// Work is refused until the limit resets.
    Rejected,
    /// Something else, as it is reported.
    Other(String),
}

/// A request to the provider that will be made again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    /// Which attempt it was, where that is reported.
    pub attempt: Option<u64>,
    /// How long the agent waits, in milliseconds.
    pub delay_ms: Option<u64>,
    /// The HTTP status that it failed with.
    pub status: Option<u64>,
    /// What the agent reports about it.
    pub said: String,
}

/// The end of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// The agent ended.
    Finished {
        /// The stop reason of the model.
        stop_reason: String,
    },
    /// The agent failed.
    Failed {
        /// The agent's own word for it.
        reason: String,
        /// The message of the failure.
        message: String,
    },
}
