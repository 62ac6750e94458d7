//! Guardrail stages, compaction, and the scope of a role
//! (`TOOL-CALLING-HARNESS-TYPESTATE 4.1`, `4.5`).

use super::super::block::block;
use super::super::word::{GuardrailStage, OrchestrationRole};
use crate::json::read::{or_default, unless_blank};
use std::collections::{BTreeMap, BTreeSet};

block! {
    /// Which guardrail stages must have decided.
    #[derive(Default)]
    pub struct GuardrailConstraints {
        /// The stages.
        #[schemars(default)]
        pub required_stages: BTreeSet<GuardrailStage>,
    }
}

block! {
    /// What a compaction must carry forward.
    #[derive(Default)]
    pub struct CompactionConstraints {
        /// What must be among the carried references.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        #[schemars(default)]
        pub required_refs: BTreeSet<String>,
    }
}

block! {
    /// What a role may read and write; `D` of this block must be the call spec's
    /// `contextScopeDigest`, where that is bound.
    ///
    /// An entry that ends in `/` represents everything below it. A reference with a
    /// part that is empty, `.` or `..` is in no scope.
    #[derive(Default)]
    pub struct ScopeConstraints {
        /// The role that the scope is for; any where absent.
        #[serde(deserialize_with = "unless_blank", skip_serializing_if = "Option::is_none")]
        pub role: Option<OrchestrationRole>,
        /// The references that may be read.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        #[schemars(default)]
        pub readable: BTreeSet<String>,
        /// What may be written, artifacts too.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        #[schemars(default)]
        pub writable: BTreeSet<String>,
        /// What only one role may write, whatever `writable` says; the narrowest
        /// entry decides.
        #[serde(deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
        #[schemars(default)]
        pub owners: BTreeMap<String, OrchestrationRole>,
    }
}
