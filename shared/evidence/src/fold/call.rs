//! One call, as the stream told it.

use super::word;
use crate::event::{Source, Speaker};
use crate::shell::CallEnd;

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// The agent's id of it.
    pub id: String,
    /// Its request; none where a result came alone.
    pub request: Option<RequestRecord>,
    /// Its end; none where it has not ended.
    pub result: Option<ResultRecord>,
}

/// How a call was requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRecord {
    /// The tool.
    pub tool: String,
    /// `D` of what it was called with.
    pub input_digest: String,
    /// Who asked.
    pub speaker: Speaker,
    /// Whether it was made up from the result.
    pub synthesized: bool,
    /// The line that said so.
    pub source: Source,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultRecord {
    /// Who it was given to; none for the agent itself.
    pub caller: Option<String>,
    /// How it ended.
    pub end: CallEnd,
    /// `D` of what it gave.
    pub digest: String,
    /// How many bytes that is.
    pub bytes: u64,
    /// The line that said so.
    pub source: Source,
    /// The first thing that the model said after it could have read it.
    pub read_at: Option<Source>,
}

impl CallRecord {
    pub(super) fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            request: None,
            result: None,
        }
    }

    /// Returns the class of its failure, where it failed.
    pub fn failure(&self) -> Option<&str> {
        match &self.result.as_ref()?.end {
            CallEnd::Ok => None,
            CallEnd::Error { class, .. } => Some(class),
        }
    }

    pub(super) fn end_word(&self) -> &str {
        match (&self.request, &self.result) {
            (_, None) => "open",
            (None, Some(_)) => "orphan",
            (Some(_), Some(result)) => word(&result.end),
        }
    }

    pub(super) fn retained_bytes(&self) -> usize {
        /// A line's digest, which the events of a line share.
        const DIGEST: usize = 64 + 16;
        let request = self.request.as_ref().map_or(0, |request| {
            let speaker = &request.speaker;
            request.tool.capacity()
                + request.input_digest.capacity()
                + speaker.caller.as_ref().map_or(0, String::capacity)
                + speaker.round.as_ref().map_or(0, String::capacity)
                + DIGEST
        });
        let result = self.result.as_ref().map_or(0, |result| {
            let end = match &result.end {
                CallEnd::Ok => 0,
                CallEnd::Error { class, message, .. } => class.capacity() + message.capacity(),
            };
            end + result.digest.capacity()
                + result.caller.as_ref().map_or(0, String::capacity)
                + DIGEST * 2
        });
        size_of::<Self>() + self.id.capacity() + request + result
    }
}
