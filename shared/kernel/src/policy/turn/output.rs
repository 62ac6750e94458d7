//! How much of a tool's result the model may be shown.

use crate::json::read::text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `output` of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputRules {
    /// The most bytes that a result may have: one that is shown whole and is
    /// larger refuses the turn.
    pub max_result_bytes: u64,
    /// The text in the middle of a result that was cut.
    #[serde(deserialize_with = "text")]
    #[schemars(regex(pattern = r"\S"))]
    pub marker: String,
}
