//! What the operator states about an agent's set-up. The harness cannot observe
//! it: a turn is bound to it as it is (`TOOL-CALLING-HARNESS-TYPESTATE 4.1`).

use crate::json::read::{given, unless_blank};
use crate::turn::word::PreContextFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The `setup` of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetupStatement {
    /// Tools that the agent loads only when it searches for them: a call of one
    /// without its search refuses the turn.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    pub deferred_tools: Option<BTreeSet<String>>,
    /// The usage examples that are attached to tools, by tool.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    pub tool_examples: Option<BTreeMap<String, Value>>,
    /// Whether tools may filter data before the model sees it; `forbidden`
    /// refuses a turn with a result that was filtered.
    #[serde(
        default,
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub pre_context_filter: Option<PreContextFilter>,
    /// The benchmark profile that the agent's set-up was measured by.
    #[serde(
        default,
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub eval_profile_ref: Option<String>,
    /// The policy of the evaluation gate that the set-up passed.
    #[serde(
        default,
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub eval_gate_policy_digest: Option<String>,
    /// The adversarial regression policy that the set-up passed.
    #[serde(
        default,
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub red_team_policy_digest: Option<String>,
}
