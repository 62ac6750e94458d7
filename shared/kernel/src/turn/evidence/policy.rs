//! Policies that a call spec binds by their content
//! (`TOOL-CALLING-HARNESS-TYPESTATE 4.1`).
//!
//! The wire form of each is an object; a text in its place is a reference to a
//! policy that is kept elsewhere. A reference enters the digest of the call
//! spec like anything else, but nothing can be judged by it.

use super::super::block::{Normal, block};
use super::super::error::EvidenceError;
use super::super::word::{Checkpoint, StopReason, TransportOrdering};
use crate::json::path::Path;
use crate::json::read::{given, ordinal, unless_blank};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;

/// A policy as its content, or as a reference to it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(untagged)]
pub enum Policy<T> {
    /// The content, by which the gate judges.
    Content(T),
    /// A reference, which is bound and no more.
    Ref(String),
}

impl<T: Serialize> Serialize for Policy<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Content(content) => content.serialize(serializer),
            Self::Ref(reference) => serializer.serialize_str(reference),
        }
    }
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

impl<T: Normal> Normal for Policy<T> {
    fn normal(self, at: &Path<'_>) -> Result<Option<Self>, EvidenceError> {
        Ok(match self {
            Self::Content(content) => content.normal(at)?.map(Self::Content),
            Self::Ref(reference) => reference.normal(at)?.map(Self::Ref),
        })
    }
}

block! {
    /// `toolPolicy`: which tools may be called, and by which schema.
    #[derive(Default)]
    pub struct ToolPolicy {
        /// The tools, by name; no other may be called.
        #[schemars(default)]
        pub tools: Vec<ToolRule>,
    }
}

block! {
    /// One tool of a [`ToolPolicy`].
    #[derive(Default)]
    pub struct ToolRule by tool_name {
        /// The tool's name.
        pub tool_name: String,
        /// The digest of the schema that every call must have been checked against.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub schema_digest: Option<String>,
    }
}

block! {
    /// `parallelPolicy`: whether calls may run side by side.
    #[derive(Default)]
    pub struct ParallelPolicy {
        /// Whether more than one call of a group, or more than one branch, is admitted.
        pub admissible: bool,
        /// The most calls of one group, and the most branches; any number where absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub max_branches: Option<u64>,
    }
}

block! {
    /// `toolTransportPolicy`: how calls and outputs are transported.
    pub struct TransportPolicy {
        /// Whether a call may be sent while another's output is awaited.
        pub parallel_tool_calls: bool,
        /// Whether outputs must come in the order of their calls.
        pub ordering: TransportOrdering,
    }
}

block! {
    /// `toolResponseTruncationPolicy`: how much of a result may be shown, and how
    /// a cut is marked.
    #[derive(Default)]
    pub struct TruncationPolicy {
        /// The most bytes that a shown result has.
        pub max_bytes: u64,
        /// The text used in the middle of a cut result.
        pub marker: String,
    }
}

block! {
    /// `executionBoundaryPolicy`: where edits are made, and what the shell may do.
    #[derive(Default)]
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
}

block! {
    /// `stopPolicy`: when the loop must stop.
    #[derive(Default)]
    pub struct StopPolicy {
        /// The last turn that may run, counted from 1.
        #[serde(deserialize_with = "ordinal", skip_serializing_if = "Option::is_none")]
        pub max_turns: Option<u64>,
        /// When a person must have looked.
        #[serde(deserialize_with = "checkpoint")]
        #[schemars(default)]
        pub checkpoint: Checkpoint,
    }
}

block! {
    /// `protocolStatePolicy`: which stop reasons are handled.
    #[derive(Default)]
    pub struct ProtocolStatePolicy {
        /// The stop reasons that are handled.
        #[schemars(default)]
        pub handled_stop_reasons: BTreeSet<StopReason>,
        /// Those after which the loop may continue; any handled one where absent.
        #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
        pub continue_on: Option<BTreeSet<StopReason>>,
    }
}

/// Reads a checkpoint, where there is one.
fn checkpoint<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Checkpoint, D::Error> {
    Ok(unless_blank(deserializer)?.unwrap_or_default())
}
