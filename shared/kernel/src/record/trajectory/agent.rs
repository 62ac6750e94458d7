//! Which agent worked in a step, and what it used: the `agent` of a row.

use crate::json::read::{flag, or_default, text, unless_blank};
use crate::json::stamp::Stamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Tokens that an agent's model counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenCounts {
    /// Tokens read, those from a cache included.
    pub input: u64,
    /// Those of them that came from a cache.
    pub cached: u64,
    /// Tokens written.
    pub output: u64,
}

impl TokenCounts {
    /// Returns how many there are, read and written.
    pub const fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// The agent of a step (ours).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentRecord {
    /// What read its stream, as in `codex`; its provider's name.
    #[serde(deserialize_with = "text")]
    pub adapter: String,
    /// The model, where it is reported.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub model: Option<String>,
    /// The agent's own session, where it is reported.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub session_id: Option<String>,
    /// The worktree that the session belongs to, from the repository root; absent
    /// where the session ended with the private home of its attempt.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub session_folder: Option<String>,
    /// How many calls of tools it made.
    pub calls: u64,
    /// What its model counted, where it is reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenCounts>,
    /// What it cost, in billionths of a dollar, where it is reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_nano_usd: Option<u64>,
    /// How often it was run again in its session after a verification that
    /// failed; absent where it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair_rounds: Option<u64>,
    /// Whether it resumed the session of the attempt before.
    #[serde(
        default,
        deserialize_with = "flag",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub resumed: bool,
    /// When a limit that refused it resets, where it is reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_resets_at: Option<Stamp>,
    /// How many of its calls the turn policy denied before they ran, by the rule or
    /// the limit.
    #[serde(
        deserialize_with = "or_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub denials: BTreeMap<String, u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::read::of_shape;
    use serde_json::json;

    #[test]
    fn a_record_reads_back_and_another_shape_is_none() {
        let full = json!({
            "adapter": "codex", "model": "m", "sessionId": "s",
            "sessionFolder": "../lane", "calls": 3,
            "tokens": {"input": 10, "cached": 4, "output": 2},
            "costNanoUsd": 1_500_000, "repairRounds": 2, "limitResetsAt": "2026-03-05T10:00:00.000000Z",
            "denials": {"no_push": 2},
        });
        let record = of_shape::<AgentRecord>(&full).unwrap();
        assert_eq!(record.tokens.unwrap().total(), 12);
        assert_eq!(serde_json::to_value(&record).unwrap(), full);
        let least = json!({"adapter": "shell", "calls": 0});
        let record = of_shape::<AgentRecord>(&least).unwrap();
        assert_eq!(serde_json::to_value(&record).unwrap(), least);
        for (field, value) in [
            ("adapter", json!(" ")),
            ("calls", json!("3")),
            ("tokens", json!({"input": 1})),
            ("costNanoUsd", json!(-1)),
            ("limitResetsAt", json!("soon")),
            ("denials", json!({"no_push": -1})),
        ] {
            let mut other = full.clone();
            other[field] = value;
            assert_eq!(of_shape::<AgentRecord>(&other), None, "{field}");
        }
    }
}
