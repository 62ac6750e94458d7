//! What the next turn is rebuilt from, why this one stopped, and who continues
//! (`HARNESS-TYPESTATE 3.2`).
//!
//! The fields of each row are in the byte order of their names on the wire, so
//! that a row is written canonically as it is.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// Why the turn stopped, and whether it continues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProtocolState {
    /// The stop reason; which ones are handled is the gate's to say.
    pub stop_reason: String,
    /// Whether another round may follow.
    #[schemars(default)]
    pub continuation_allowed: bool,
}

impl ProtocolState {
    /// Makes the state of a turn that is over.
    pub fn ended(stop_reason: impl Into<String>) -> Self {
        Self {
            stop_reason: stop_reason.into(),
            continuation_allowed: false,
        }
    }
}

/// A transfer of the work to another agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandoffPacket {
    /// Who takes over.
    pub target: String,
    /// The artifacts that go with it.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(default)]
    pub required_artifact_refs: BTreeSet<String>,
    /// The way back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub return_path_ref: Option<String>,
}

/// How one result was shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenderRow {
    /// Where it was injected.
    pub injection_point: String,
    /// The digest of what the operator sees.
    pub operator_payload_digest: String,
    /// The policy that it was shown under.
    pub policy_digest: String,
    /// The digest of what the model is reminded of.
    pub reminder_render_digest: String,
    /// The call's identity.
    pub tool_call_id: String,
}

/// How one reminder queue was reduced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueRow {
    /// The policy that it was reduced under.
    pub policy_digest: String,
    /// The queue's identity.
    pub queue_id: String,
    /// The digest of what was left.
    pub reduced_digest: String,
}

/// One view of the conversation's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateViewRow {
    /// The policy that defines it.
    pub policy_digest: String,
    /// What it was made from.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(default)]
    pub source_refs: BTreeSet<String>,
    /// The digest of the view.
    pub view_digest: String,
    /// The view's identity.
    pub view_id: String,
}
