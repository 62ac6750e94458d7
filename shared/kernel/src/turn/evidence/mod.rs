//! The rows of a turn's evidence (`contracts.md` 2, `HARNESS-TYPESTATE 3`).
//!
//! Plain data with public fields: an adapter builds an [`Evidence`] by hand,
//! a command reads one from JSON (`ParsedInput::from_slice`). Nothing here is
//! trusted: [`normalize`](super::normal::normalize) trims, checks and sorts,
//! and the gate judges.

mod call;
mod context;
mod detail;
mod facts;
mod policy;
mod spec;

pub use call::{RequestRow, ResultRow, UseRow};
pub use context::{HandoffPacket, ProtocolState, QueueRow, RenderRow, StateViewRow};
pub use detail::{
    ArtifactWrite, RequestFacts, ResultFacts, SearchRef, ShellEvidence, TokenUsage, Truncation,
};
pub use facts::{BranchRow, Compaction, Facts, GuardrailRow, ScopeAccess, Trace, TransportRow};
pub use policy::{
    BoundaryPolicy, ParallelPolicy, Policy, ProtocolStatePolicy, StopPolicy, ToolPolicy, ToolRule,
    TransportPolicy, TruncationPolicy,
};
pub use spec::CallSpecRow;

use crate::json::read::or_default;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Everything that one turn left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// What the turn was bound to before it began.
    pub call_spec: CallSpecRow,
    /// The tool calls that the model asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub tool_requests: Vec<RequestRow>,
    /// The results of the requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub tool_results: Vec<ResultRow>,
    /// The outcome of the results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub tool_use: Vec<UseRow>,
    /// The stop reason, and whether the turn may continue.
    pub protocol_state: ProtocolState,
    /// A transfer to another agent, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffPacket>,
    /// How results were shown to the operator and to the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub tool_render: Vec<RenderRow>,
    /// The reductions of reminders.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub reminder_queue: Vec<QueueRow>,
    /// The state views that the next turn is rebuilt from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub state_views: Vec<StateViewRow>,
    /// The sessions that witness the turn.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(default)]
    pub session_refs: BTreeSet<String>,
    /// The trajectory rows that witness the turn.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(default)]
    pub trajectory_refs: BTreeSet<String>,
    /// What else is known about the turn (ours).
    #[serde(
        deserialize_with = "or_default",
        skip_serializing_if = "Facts::is_empty"
    )]
    #[schemars(default)]
    pub facts: Facts,
}

impl Evidence {
    /// Begins the evidence of a turn that called no tool.
    pub fn new(call_spec: CallSpecRow, protocol_state: ProtocolState) -> Self {
        Self {
            call_spec,
            tool_requests: Vec::new(),
            tool_results: Vec::new(),
            tool_use: Vec::new(),
            protocol_state,
            handoff: None,
            tool_render: Vec::new(),
            reminder_queue: Vec::new(),
            state_views: Vec::new(),
            session_refs: BTreeSet::new(),
            trajectory_refs: BTreeSet::new(),
            facts: Facts::default(),
        }
    }
}
