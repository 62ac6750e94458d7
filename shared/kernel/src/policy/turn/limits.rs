//! How many calls an agent may make in a turn, and how deep.

use crate::json::read::flag;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `calls` of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallLimits {
    /// The most calls of a turn.
    pub max_calls: u64,
    /// The most calls that are open at once.
    pub max_open: u64,
    /// Whether the agent may start others.
    #[serde(deserialize_with = "flag")]
    pub subagents: bool,
    /// How deep they may be nested; 1 is a sub-agent of the agent itself.
    pub max_depth: u64,
    /// The most sub-agents that run at once.
    pub max_branches: u64,
}

/// What of a turn has happened before a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// The calls that were allowed.
    pub calls: u64,
    /// Those of them that have not ended.
    pub open: u64,
    /// Those of these that are sub-agents.
    pub subagents: u64,
    /// The sub-agents that the caller is nested in.
    pub depth: u64,
}

impl CallLimits {
    /// Returns the limit that one more call would break, with a reason for the
    /// agent.
    pub(super) fn broken_by(
        &self,
        counts: &CallCounts,
        is_subagent: bool,
    ) -> Option<(&'static str, String)> {
        if counts.calls >= self.max_calls {
            let reason = format!(
                "This turn has made {} tool calls, which is all it may. Finish now.",
                self.max_calls
            );
            return Some(("calls.maxCalls", reason));
        }
        if counts.open >= self.max_open {
            let reason = format!(
                "At most {} tool calls may run at once. Wait until one has ended.",
                self.max_open
            );
            return Some(("calls.maxOpen", reason));
        }
        if !is_subagent {
            return None;
        }
        if !self.subagents {
            let reason = "Sub-agents are not allowed here. Do the work yourself.".to_owned();
            return Some(("calls.subagents", reason));
        }
        if counts.depth >= self.max_depth {
            let reason = format!(
                "Sub-agents may be nested {} deep. Do the work yourself.",
                self.max_depth
            );
            return Some(("calls.maxDepth", reason));
        }
        if counts.subagents >= self.max_branches {
            let reason = format!(
                "At most {} sub-agents may run at once. Wait until one has ended.",
                self.max_branches
            );
            return Some(("calls.maxBranches", reason));
        }
        None
    }
}
