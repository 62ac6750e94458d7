//! Guardrail stages, compaction, and the scope of a role
//! (`TOOL-CALLING-HARNESS-TYPESTATE 4.1`, `4.5`).

use super::super::word::{GuardrailStage, OrchestrationRole};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Which guardrail stages must have decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GuardrailConstraints {
    /// The stages.
    #[schemars(default)]
    pub required_stages: BTreeSet<GuardrailStage>,
}

/// What a compaction must carry forward.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactionConstraints {
    /// What must be among the carried references.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(default)]
    pub required_refs: BTreeSet<String>,
}

/// What a role may read and write; `D` of this block must be the call spec's
/// `contextScopeDigest`, where that is bound.
///
/// An entry that ends in `/` represents everything below it. A reference with a
/// part that is empty, `.` or `..` is in no scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScopeConstraints {
    /// The role that the scope is for; any where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<OrchestrationRole>,
    /// What may be read.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(default)]
    pub readable: BTreeSet<String>,
    /// What may be written, artifacts too.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(default)]
    pub writable: BTreeSet<String>,
    /// What only one role may write, whatever `writable` says; the narrowest
    /// entry decides.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    pub owners: BTreeMap<String, OrchestrationRole>,
}
