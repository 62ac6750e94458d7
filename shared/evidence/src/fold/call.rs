//! One call, as the stream reports it.

use super::folded::word;
use crate::call::CallEnd;
use crate::event::{LineSource, Speaker};
use premath_kernel::json::canonical::Sum;
use premath_kernel::turn::word::TransportEvent;
use std::sync::Arc;

/// The counts that are before a shared text, in bytes.
const COUNTS: usize = 16;

/// A call of an agent, with its request and result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// The agent's id of it.
    pub id: Arc<str>,
    /// Its request; none where a result came alone.
    pub request: Option<RequestRecord>,
    /// Its end; none where it has not ended.
    pub result: Option<ResultRecord>,
}

/// How a call was requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRecord {
    /// The tool.
    pub tool: Arc<str>,
    /// `D` of what it was called with.
    pub input_digest: Sum,
    /// `D` of what hooks report of the input, where that differs.
    pub hook_digest: Option<Sum>,
    /// The speaker that made the call.
    pub speaker: Speaker,
    /// Whether it was made up from the result.
    pub synthesized: bool,
    /// The line that reported it.
    pub source: LineSource,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultRecord {
    /// Who it was given to; none for the agent itself.
    pub caller: Option<Arc<str>>,
    /// The end of the call.
    pub end: CallEnd,
    /// `D` of what it gave.
    pub digest: Sum,
    /// How many bytes that is.
    pub bytes: u64,
    /// The line that reported it.
    pub source: LineSource,
    /// The first thing that the model said after it could have read it.
    pub read_at: Option<LineSource>,
}

impl CallRecord {
    /// What its place among the others holds, in bytes.
    pub(super) const PLACE: usize = size_of::<(u64, Arc<str>, Box<Self>)>() + size_of::<usize>();

    /// What a call costs in bytes, without what its names and excerpts hold:
    /// its record, its place and the order of calls and outputs, of all of
    /// which half may be room for more.
    pub(super) const COST: usize =
        size_of::<Self>() + COUNTS + 2 * (Self::PLACE + 2 * size_of::<(TransportEvent, u32)>());

    pub(super) const fn new(id: Arc<str>) -> Self {
        Self {
            id,
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

    /// Returns whether it ended well.
    pub(crate) fn is_ok(&self) -> bool {
        let result = self.result.as_ref();
        result.is_some_and(|result| result.end == CallEnd::Ok)
    }

    /// Returns how many bytes it holds, with itself.
    pub(super) fn retained_bytes(&self) -> usize {
        let request = self.request.as_ref();
        let result = self.result.as_ref();
        size_of::<Self>()
            + self.id.len()
            + COUNTS
            + request.map_or(0, RequestRecord::retained_bytes)
            + result.map_or(0, ResultRecord::retained_bytes)
    }

    pub(super) fn end_word(&self) -> &str {
        match (&self.request, &self.result) {
            (_, None) => "open",
            (None, Some(_)) => "orphan",
            (Some(_), Some(result)) => word(&result.end),
        }
    }
}

impl RequestRecord {
    /// Returns `D` of what hooks report of the input.
    pub(crate) fn join_digest(&self) -> Sum {
        self.hook_digest.unwrap_or(self.input_digest)
    }

    /// Returns how many bytes its names hold.
    pub(super) fn retained_bytes(&self) -> usize {
        let Speaker { caller, round } = &self.speaker;
        self.tool.len() + held(caller) + held(round)
    }
}

impl ResultRecord {
    /// Returns how many bytes its names and its excerpt hold.
    pub(super) fn retained_bytes(&self) -> usize {
        let end = match &self.end {
            CallEnd::Ok => 0,
            CallEnd::Error { class, message, .. } => class.capacity() + message.capacity(),
        };
        end + held(&self.caller)
    }
}

fn held(name: &Option<Arc<str>>) -> usize {
    name.as_ref().map_or(0, |name| name.len() + COUNTS)
}
