//! Whether an agent may summarise its context within a turn.

use crate::json::canonical;
use crate::json::read::flag;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `compaction` of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactionRules {
    /// Whether a turn in which it happened may close its issue.
    #[serde(deserialize_with = "flag")]
    pub allowed: bool,
}

impl Default for CompactionRules {
    fn default() -> Self {
        Self { allowed: true }
    }
}

impl CompactionRules {
    /// Returns the digest that a compaction is done under.
    pub fn digest(&self) -> String {
        canonical::digest(self)
    }
}
