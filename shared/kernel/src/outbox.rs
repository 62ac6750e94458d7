//! What a step's command asks of its harness: issues to file (`contracts.md` 8).

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A line of a step's outbox: an issue to file once the step's turn passes the
/// gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutboxRequest {
    /// What it is about, in a line.
    #[schemars(regex(pattern = r"\S"))]
    pub title: String,
    /// What is to be done.
    #[serde(default)]
    pub description: Option<String>,
    /// Smaller is sooner; a missing one reads as 2.
    #[serde(default)]
    pub priority: Option<i64>,
    /// Its type, any word; a missing one reads as `task`.
    #[serde(default)]
    pub issue_type: Option<String>,
    /// Its labels.
    #[serde(default)]
    pub labels: Option<Vec<String>>,
    /// The issue that was being worked on, as the command was told; the new
    /// one is linked to the step's own issue whatever stands here.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "text_if_it_is_one"
    )]
    pub parent: Option<String>,
    /// The step and the lease that it was asked under, as the server that is
    /// bound to them says; what is filed bears those of the step's own turn.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "binding_if_it_is_one"
    )]
    pub asked_under: Option<AskedUnder>,
}

/// A step and the lease that it runs under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskedUnder {
    /// The step.
    pub step_id: String,
    /// The lease.
    pub lease_id: String,
    /// The lease's generation.
    pub generation: u64,
}

/// Reads what nothing rests on, so that no value of it is an error.
fn text_if_it_is_one<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    let value = Value::deserialize(value)?;
    Ok(value.as_str().map(str::to_owned))
}

/// As [`text_if_it_is_one`].
fn binding_if_it_is_one<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<AskedUnder>, D::Error> {
    let value = Value::deserialize(value)?;
    Ok(serde_json::from_value(value).ok())
}
