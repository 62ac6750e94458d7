//! A call of an agent with its times.

use crate::json::stamp::Stamp;
use crate::policy::turn::ToolClass;

/// A call of an agent, with the times at which the harness took the events of its
/// hooks. They are of the harness's own clock; times that an agent reports are
/// not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedCall {
    /// The round of the agent, from 1.
    pub round: u32,
    /// The number in the round, from 1.
    pub number: u64,
    /// The agent's name of the tool.
    pub tool: String,
    /// What the tool does.
    pub class: ToolClass,
    /// The agent's id of the call, where its hooks have one.
    pub id: Option<String>,
    /// Whether a sub-agent made it.
    pub is_of_subagent: bool,
    /// The rule or limit that denied it; then it never ran.
    pub denied_by: Option<String>,
    /// When it was announced, and decided.
    pub began: Stamp,
    /// When its end was reported; none where that did not happen.
    pub ended: Option<Stamp>,
    /// Whether it was reported as failed.
    pub has_failed: bool,
}
