//! Which tools there are, how they are used, and who may call them
//! (`TOOL-CALLING-HARNESS-TYPESTATE 4.1`–`4.3`).

use super::super::block::block;
use crate::json::read::given;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

block! {
    /// The content of the tool policies that a call spec binds by digest.
    #[derive(Default)]
    pub struct ToolConstraints {
        /// Every tool that can be discovered; `D` of the sorted list must be
        /// `toolCatalogDigest`.
        #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
        pub tool_catalog: Option<BTreeSet<String>>,
        /// Tools that are loaded only when searched for; `D` of the sorted list
        /// must be `deferPolicyDigest`.
        #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
        pub deferred_tools: Option<BTreeSet<String>>,
        /// Usage examples, by tool; `D` of the object must be `toolExampleDigest`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tool_examples: Option<BTreeMap<String, Value>>,
        /// Callers, by tool; `D` of the object must be `allowedCallersDigest`. A
        /// tool that is not in it may be called by anybody.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub allowed_callers: Option<BTreeMap<String, BTreeSet<String>>>,
        /// Tools that run code which calls tools; any may be a parent where empty.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        #[schemars(default)]
        pub code_execution_tools: BTreeSet<String>,
        /// Callers that are code: what they call needs a parent call.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        #[schemars(default)]
        pub programmatic_callers: BTreeSet<String>,
    }
}
