//! Facts of a turn beside its calls, from which the gate derives what others
//! give as a verdict (`TOOL-CALLING-HARNESS-TYPESTATE 4.2`–`4.5`).
//!
//! All are optional. Those that are present enter `factSetDigest`, and with it
//! the digest of the join; a turn without any has no such digest.

use super::super::block::{Normal, block, field};
use super::super::error::EvidenceError;
use super::super::word::{GuardrailStage, ObservabilityMode, ScopeMode, TransportEvent};
use crate::json::path::Path;
use crate::json::read::ordinal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use std::collections::BTreeSet;

block! {
    /// The facts of a turn beside its calls.
    #[derive(Default)]
    pub struct Facts {
        /// Which turn of the loop this is, counted from 1.
        #[serde(deserialize_with = "ordinal", skip_serializing_if = "Option::is_none")]
        pub turn: Option<u64>,
        /// Where a person looked before the turn.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub checkpoint_ref: Option<String>,
        /// What the guardrails decided, by `sequence`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schemars(default)]
        pub guardrails: Vec<GuardrailRow>,
        /// Calls and outputs as they were transported, by `sequence`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schemars(default)]
        pub transport: Vec<TransportRow>,
        /// The branches of a turn that was split up, by `branchId`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schemars(default)]
        pub branches: Vec<BranchRow>,
        /// What was read and written of the context.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        #[schemars(default)]
        pub scope_accesses: BTreeSet<ScopeAccess>,
        /// A compaction of the context before the turn.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub compaction: Option<Compaction>,
        /// How the turn was traced.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub trace: Option<Trace>,
    }
}

impl Facts {
    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

block! {
    /// One decision of one guardrail.
    pub struct GuardrailRow by sequence {
        /// Its place among the turn's decisions.
        pub sequence: u64,
        /// The stage that it decides at.
        pub stage: GuardrailStage,
        /// The guardrail.
        pub guardrail_id: String,
        /// Whether it was set off.
        pub triggered: bool,
        /// The threshold that it decided by.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub threshold: Option<Number>,
        /// The model that decided.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub model_ref: Option<String>,
        /// The stage policy that it decided under.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub policy_digest: Option<String>,
    }
}

block! {
    /// One message between model and tools.
    pub struct TransportRow by sequence {
        /// Its place in the transport.
        pub sequence: u64,
        /// The event that was sent.
        pub event: TransportEvent,
        /// The call that it belongs to.
        pub tool_call_id: String,
    }
}

block! {
    /// One branch of a turn that was split up.
    pub struct BranchRow by branch_id {
        /// The branch.
        pub branch_id: String,
        /// Whether its own join is closed.
        pub join_closed: bool,
        /// The digest of that join.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub join_set_digest: Option<String>,
    }
}

/// One access to the context.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScopeAccess {
    /// The reference that was accessed.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The mode of the access.
    pub access: ScopeMode,
    /// The call that made the access.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl Normal for ScopeAccess {
    fn normal(self, at: &Path<'_>) -> Result<Option<Self>, EvidenceError> {
        Ok(Some(Self {
            reference: field(self.reference, &at.field("ref"))?,
            access: self.access,
            tool_call_id: field(self.tool_call_id, at)?,
        }))
    }
}

block! {
    /// A compaction of the context, as it was done.
    #[derive(Default)]
    pub struct Compaction {
        /// The policy that it was done under.
        pub policy_digest: String,
        /// The references that the compaction kept.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        #[schemars(default)]
        pub carried_forward_refs: BTreeSet<String>,
        /// The state view that it left, which the turn must have begun from.
        pub view_digest: String,
    }
}

block! {
    /// How the turn was traced.
    pub struct Trace {
        /// The mode that was in force.
        pub mode: ObservabilityMode,
        /// The processor that the trace went to.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub processor_ref: Option<String>,
        /// The traces that were stored.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        #[schemars(default)]
        pub trace_refs: BTreeSet<String>,
    }
}
