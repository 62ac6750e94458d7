//! What makes a stream no evidence.

use std::sync::Arc;

/// The most bytes that a line may have.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// The most bytes that are kept of a stream's calls: ids, names, digests and
/// what errors say. With ids of a usual length they are about 40,000 calls.
pub const MAX_CALL_BYTES: usize = 20 << 20;

/// One fault of a stream, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{flaw}", .line.map(|line| format!("line {line} ")).unwrap_or_default())]
pub struct StreamFault {
    /// The line, counted from 1; none where the stream as a whole is meant.
    pub line: Option<u64>,
    /// What is wrong.
    pub flaw: Flaw,
}

/// What is wrong with a line, or with the stream as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// The line is something else than a JSON object, or has too many
    /// parts to be read.
    #[error("is no JSON object, or one of too many parts")]
    NotJson,
    /// The line is too long to be looked at.
    #[error("is longer than {MAX_LINE_BYTES} bytes")]
    TooLong,
    /// The stream ends in the middle of a line.
    #[error("is cut off before its end")]
    Cut,
    /// A field is not what it must be.
    #[error("has a bad field: `{field}` must be {expected}")]
    Field {
        /// The field.
        field: &'static str,
        /// What would be right.
        expected: &'static str,
    },
    /// An unknown type that may be a tool call.
    #[error("is of the unknown type `{0}` and carries an id or a status: it could be a tool call")]
    UnknownCall(Arc<str>),
    /// A command was abandoned: it is said to be over, and has no exit code.
    #[error("ends call `{0}` without an exit code or a terminal status")]
    Abandoned(Arc<str>),
    /// There are more calls than are kept.
    #[error("has one call too many: what is kept of the calls would be over {} MiB", MAX_CALL_BYTES >> 20)]
    TooManyCalls,
    /// A call is requested twice.
    #[error("requests call `{0}` again")]
    RequestAgain(Arc<str>),
    /// A call ends twice.
    #[error("ends call `{0}` again")]
    ResultAgain(Arc<str>),
    /// The end of a call speaks of another input than its request.
    #[error("ends call `{0}`, but tells another input than was requested")]
    CallChanged(Arc<str>),
    /// The end of a call is given to somebody else than asked for it.
    #[error("ends call `{0}` for another caller than asked for it")]
    CallerChanged(Arc<str>),
    /// A step or turn ends that never began.
    #[error("ends a turn that never began")]
    TurnUnopened,
    /// A call is told outside of the steps that calls are made in.
    #[error("tells call `{0}` outside of a step")]
    CallOutside(Arc<str>),
    /// A step ended by tool calls, and none was reported.
    #[error("ends a step by tool calls, and none was reported")]
    StepCallsMissing,
    /// The line belongs to another session.
    #[error("belongs to another session")]
    OtherSession,
    /// The agent did something before it said that it is up.
    #[error("comes before the begin of the session")]
    BeginMissing,
    /// Nothing was printed at all.
    #[error("the stream is empty: the agent was not up")]
    Empty,
    /// The stream has no terminal event, or goes on after it.
    #[error("the stream ends without its terminal event")]
    TerminalMissing,
}

impl Flaw {
    pub(crate) const fn field(field: &'static str, expected: &'static str) -> Self {
        Self::Field { field, expected }
    }
}
