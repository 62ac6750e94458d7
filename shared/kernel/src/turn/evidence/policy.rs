//! Policies that a call spec binds by their content
//! (`TOOL-CALLING-HARNESS-TYPESTATE 4.1`).
//!
//! The wire form of each is an object; a text in its place is a reference to a
//! policy that is kept elsewhere. A reference enters the digest of the call
//! spec like anything else, but nothing can be judged by it.

use super::super::word::{Checkpoint, StopReason, TransportOrdering};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// A policy as its content, or as a reference to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Policy<T> {
    /// The content, by which the gate judges.
    Content(T),
    /// A reference, which is bound and no more.
    Ref(String),
}

impl<T> Policy<T> {
    /// Returns the content, where it is given.
    pub const fn content(&self) -> Option<&T> {
        match self {
            Self::Content(content) => Some(content),
            Self::Ref(_) => None,
        }
    }
}

/// `toolPolicy`: which tools may be called, and by which schema.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolPolicy {
    /// The tools, by name; no other may be called.
    #[schemars(default)]
    pub tools: Vec<ToolRule>,
}

/// One tool of a [`ToolPolicy`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRule {
    /// The tool's name.
    pub tool_name: String,
    /// The digest of the schema that every call must have been checked against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_digest: Option<String>,
}

/// `parallelPolicy`: whether calls may run side by side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParallelPolicy {
    /// Whether more than one call of a group, or more than one branch, is admitted.
    pub admissible: bool,
    /// The most calls of one group, and the most branches; any number where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_branches: Option<u64>,
}

/// `toolTransportPolicy`: how calls and outputs are transported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransportPolicy {
    /// Whether a call may be sent while another's output is awaited.
    pub parallel_tool_calls: bool,
    /// Whether outputs must come in the order of their calls.
    pub ordering: TransportOrdering,
}

/// `toolResponseTruncationPolicy`: how much of a result may be shown, and how
/// a cut is marked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TruncationPolicy {
    /// The most bytes that a shown result has.
    pub max_bytes: u64,
    /// The text used in the middle of a cut result.
    pub marker: String,
}

/// `executionBoundaryPolicy`: where edits are made, and what the shell may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BoundaryPolicy {
    /// Tools whose results must carry shell evidence.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(default)]
    pub shell_tools: BTreeSet<String>,
    /// Tools that may write artifacts; any may where empty.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(default)]
    pub edit_surfaces: BTreeSet<String>,
    /// Folders in which shell commands may run; any where empty.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(default)]
    pub workdir_roots: BTreeSet<String>,
}

/// `stopPolicy`: when the loop must stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StopPolicy {
    /// The last turn that may run, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u64>,
    /// When a person must have looked.
    #[schemars(default)]
    pub checkpoint: Checkpoint,
}

/// `protocolStatePolicy`: which stop reasons are handled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProtocolStatePolicy {
    /// The stop reasons that are handled.
    #[schemars(default)]
    pub handled_stop_reasons: BTreeSet<StopReason>,
    /// Those after which the loop may continue; any handled one where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continue_on: Option<BTreeSet<StopReason>>,
}
