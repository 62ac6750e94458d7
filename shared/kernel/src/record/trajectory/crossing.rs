//! What a row reports about a step that worked in another world.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The outcome of a crossing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CrossingResult {
    /// The destination's gate admits the turn.
    Accepted,
    /// The destination's gate refuses it.
    Rejected,
    /// It never came to the gate.
    TransportFailed,
}

impl CrossingResult {
    /// Returns the text used in rows and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::TransportFailed => "transport_failed",
        }
    }
}

/// The other world that a step worked in, and its outcome there (ours).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorldRecord {
    /// The name that the issue asked for it by.
    pub name: String,
    /// How the turn's crossing ended; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crossing: Option<CrossingResult>,
    /// The branch there that holds the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit there that holds the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

impl WorldRecord {
    /// Begins a record of a step that did nothing yet.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            crossing: None,
            branch: None,
            commit: None,
        }
    }
}

/// In a few words, for a line about the step.
impl fmt::Display for WorldRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let crossing = self.crossing.map_or("not crossed", CrossingResult::as_str);
        write!(f, "world {}: {crossing}", self.name)?;
        match &self.branch {
            Some(branch) => write!(f, ", on {branch} there"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::read::of_shape;
    use serde_json::json;

    #[test]
    fn a_record_reads_back_and_is_reported_in_a_line() {
        for (crossing, expected) in [
            (None, "world docs: not crossed, on b there"),
            (
                Some(CrossingResult::Accepted),
                "world docs: accepted, on b there",
            ),
            (
                Some(CrossingResult::Rejected),
                "world docs: rejected, on b there",
            ),
            (
                Some(CrossingResult::TransportFailed),
                "world docs: transport_failed, on b there",
            ),
        ] {
            let record = WorldRecord {
                crossing,
                branch: Some("b".into()),
                ..WorldRecord::named("docs")
            };
            let value = serde_json::to_value(&record).unwrap();
            assert_eq!(of_shape::<WorldRecord>(&value), Some(record.clone()));
            assert_eq!(record.to_string(), expected);
        }
        for other in [
            json!("docs"),
            json!({}),
            json!({"name": "a", "crossing": "x"}),
        ] {
            assert_eq!(of_shape::<WorldRecord>(&other), None, "{other}");
        }
    }
}
