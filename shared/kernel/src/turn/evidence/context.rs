//! What the next turn is rebuilt from, why this one stopped, and who continues
//! (`HARNESS-TYPESTATE 3.2`).
//!
//! The fields of each row are in the byte order of their names on the wire, so
//! that a row is written canonically as it is.

use super::super::block::block;
use crate::json::read::flag;
use std::collections::BTreeSet;

block! {
    /// Why the turn stopped, and whether it continues.
    #[derive(Default)]
    pub struct ProtocolState {
        /// The stop reason; which ones are handled is the gate's to say.
        pub stop_reason: String,
        /// Whether another round may follow.
        #[serde(deserialize_with = "flag")]
        #[schemars(default)]
        pub continuation_allowed: bool,
    }
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

block! {
    /// A transfer of the work to another agent.
    #[derive(Default)]
    pub struct HandoffPacket {
        /// The target of the handoff.
        pub target: String,
        /// The artifacts that go with it.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        #[schemars(default)]
        pub required_artifact_refs: BTreeSet<String>,
        /// The way back.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub return_path_ref: Option<String>,
    }
}

block! {
    /// How one result was shown.
    #[derive(Default)]
    pub struct RenderRow by tool_call_id {
        /// The place where it was injected.
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
}

block! {
    /// How one reminder queue was reduced.
    #[derive(Default)]
    pub struct QueueRow by queue_id {
        /// The policy that it was reduced under.
        pub policy_digest: String,
        /// The queue's identity.
        pub queue_id: String,
        /// The digest of what was left.
        pub reduced_digest: String,
    }
}

block! {
    /// One view of the conversation's state.
    #[derive(Default)]
    pub struct StateViewRow by view_id {
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
}
