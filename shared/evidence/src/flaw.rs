//! What makes a stream no evidence.

/// The most bytes that a line may have.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// The most members, and values in lists, of a line that are read: what is read
/// has a bound by that, as the line has. No agent comes near it.
pub(crate) const MAX_PARTS: usize = 1 << 14;

/// The most calls that may be open at once, where an adapter needs to know them.
pub(crate) const MAX_OPEN: usize = 4096;

/// The most bytes that are kept of a stream's calls: ids, names, digests and
/// what errors say. With ids of a usual length they are about 40,000 calls.
pub const MAX_CALL_BYTES: usize = 20 << 20;

/// One fault of a stream, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{flaw}", .line.map(|line| format!("line {line} ")).unwrap_or_default())]
pub struct StreamFault {
    /// The line, counted from 1; none where the stream as a whole is meant.
    pub line: Option<u64>,
    /// The fault in the stream.
    pub flaw: Flaw,
}

/// What is wrong with a line, or with the stream as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// The line is something else than a JSON object.
    #[error("is not a JSON object")]
    NotJson,
    /// The line is an object of more members and values than are read.
    #[error("has more than {MAX_PARTS} parts")]
    TooManyParts,
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
        /// The value that was expected.
        expected: &'static str,
    },
    /// An unknown type that may be a tool call.
    #[error("is of the unknown type `{0}` and carries an id or a status: it could be a tool call")]
    UnknownCall(String),
    /// A command was abandoned: it is reported to be over, and has no exit
    /// code.
    #[error("ends call `{0}` without an exit code or a terminal status")]
    Abandoned(String),
    /// There are more calls than are kept.
    #[error("has too many calls: their records exceed {} MiB", MAX_CALL_BYTES >> 20)]
    TooManyCalls,
    /// More calls are open at once than any agent has.
    #[error("begins a call while {MAX_OPEN} calls are open")]
    TooManyOpen,
    /// A call is requested twice.
    #[error("requests call `{0}` again")]
    RequestAgain(String),
    /// A call ends twice.
    #[error("ends call `{0}` again")]
    ResultAgain(String),
    /// The end of a call refers to another input than its request.
    #[error("ends call `{0}` with a different input than its request")]
    CallChanged(String),
    /// The result's parent call differs from the request's.
    #[error("ends call `{0}` with a different parent call than its request")]
    CallerChanged(String),
    /// A step or turn ends that never began.
    #[error("ends a turn that was not started")]
    TurnUnopened,
    /// A call is reported outside of the steps that calls are made in.
    #[error("reports call `{0}` outside a step")]
    CallOutside(String),
    /// A step ended by tool calls, and none was reported.
    #[error("ends a step by tool calls, but reported none")]
    StepCallsMissing,
    /// The line belongs to another session.
    #[error("belongs to another session")]
    OtherSession,
    /// The agent did something before it said that it is up.
    #[error("comes before the start of the session")]
    BeginMissing,
    /// Nothing was printed at all.
    #[error("the stream is empty: the agent did not start")]
    Empty,
    /// What the agent began in the background had not ended with it.
    #[error("the stream ends while {0} of the agent's tasks run in the background")]
    TasksRunning(u64),
    /// The stream has no terminal event, or continues after it.
    #[error("the stream ends without its terminal event")]
    TerminalMissing,
}

impl Flaw {
    pub(crate) const fn field(field: &'static str, expected: &'static str) -> Self {
        Self::Field { field, expected }
    }
}
