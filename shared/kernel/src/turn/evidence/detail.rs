//! What may further be known about a request or a result
//! (`TOOL-CALLING-HARNESS-TYPESTATE 4.2`, `4.3`).
//!
//! All of it is under `facts` in its row, is optional, and enters the digest of
//! the row's set only where present. Fields are in the byte order of their
//! names on the wire.

use super::super::block::{Normal, block};
use super::super::error::EvidenceError;
use crate::json::path::Path;
use crate::json::read::flag;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

block! {
    /// What may further be known about a request.
    #[derive(Default)]
    pub struct RequestFacts {
        /// The action object that contained the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub action_id: Option<String>,
        /// The group of calls that were sent side by side.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub call_group: Option<String>,
        /// `D` of what the tool was called with.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub input_digest: Option<String>,
        /// The call of the code that made this call.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub parent_call_id: Option<String>,
        /// The search by which the tool was found.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub search_ref: Option<SearchRef>,
        /// The record that the request was read from.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub source_ref: Option<String>,
        /// Whether the request was not recorded, and was derived from its result.
        #[serde(deserialize_with = "flag", skip_serializing_if = "is_false")]
        #[schemars(default)]
        pub synthesized: bool,
    }
}

block! {
    /// A search in the tool catalog.
    #[derive(Default)]
    pub struct SearchRef {
        /// The catalog that was searched.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub catalog_digest: Option<String>,
        /// The query of the search.
        pub query: String,
        /// `D` of the sorted list of tool names that were found.
        pub result_set_digest: String,
        /// The tools that were found, where they are shown.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        #[schemars(default)]
        pub result_tool_names: BTreeSet<String>,
    }
}

block! {
    /// What may further be known about a result.
    #[derive(Default)]
    pub struct ResultFacts {
        /// The artifacts that the call wrote.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        #[schemars(default)]
        pub artifact_writes: BTreeSet<ArtifactWrite>,
        /// The call of the code that made this call, as the runtime saw it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub parent_call_id: Option<String>,
        /// How many bytes were shown to the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub payload_bytes: Option<u64>,
        /// The command, interface or route that gave the result.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub provenance_ref: Option<String>,
        /// Where and how a shell command ran.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub shell: Option<ShellEvidence>,
        /// What filtering before the model's context saved.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub token_usage: Option<TokenUsage>,
        /// How the result was cut.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub truncation: Option<Truncation>,
    }
}

block! {
    /// A file that a call wrote.
    #[derive(Default, PartialOrd, Ord)]
    pub struct ArtifactWrite {
        /// The digest of what it holds.
        pub digest: String,
        /// The file.
        pub path: String,
    }
}

block! {
    /// The boundary of a shell command. Each part is optional here, so that the
    /// gate can say which one is missing.
    #[derive(Default)]
    pub struct ShellEvidence {
        /// The digest of the command.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub command_digest: Option<String>,
        /// The sandbox profile that it ran under.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub sandbox_ref: Option<String>,
        /// The folder that it ran in.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub workdir: Option<String>,
    }
}

block! {
    /// Tokens of a result, with and without filtering.
    #[derive(Default)]
    pub struct TokenUsage {
        /// Tokens that reached the model.
        pub filtered: u64,
        /// Tokens without filtering.
        pub unfiltered: u64,
    }
}

/// How a result was cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Truncation {
    /// How many bytes are left.
    pub kept_bytes: u64,
    /// The text that marks the cut.
    pub marker: String,
    /// How many bytes there were.
    pub original_bytes: u64,
}

/// An empty marker stays: the gate refuses it.
impl Normal for Truncation {
    fn normal(mut self, _: &Path<'_>) -> Result<Option<Self>, EvidenceError> {
        self.marker = self.marker.trim().to_owned();
        Ok(Some(self))
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is serde's"
)]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
