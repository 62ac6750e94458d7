//! What a step's command asks of its harness: issues to file (`contracts.md` 8).

use crate::issue::dispatch::NO_CHANGE_LABEL;
use crate::json::id::{LeaseId, StepId};
use crate::json::plain::visible_line;
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
    /// A lower one runs first; a missing one reads as 2.
    #[serde(default)]
    pub priority: Option<i64>,
    /// Its type, any word; a missing one reads as `task`.
    #[serde(default)]
    pub issue_type: Option<String>,
    /// The labels of the new issue.
    #[serde(default)]
    pub labels: Option<Vec<String>>,
    /// The issue in progress, as the command received it; the new one is linked
    /// to the step's own issue regardless of this field.
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

/// The most requests that one step may leave.
pub const REQUESTS_MAX: usize = 20;
/// The longest title, in characters.
pub const TITLE_MAX: usize = 200;
/// The longest description, in bytes.
pub const DESCRIPTION_MAX: usize = 16 << 10;
/// The longest type or label, in characters.
pub const WORD_MAX: usize = 80;
/// The most labels.
pub(crate) const LABELS_MAX: usize = 20;

/// A request that is beyond its bounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestFault {
    /// The title is blank.
    #[error("`title` must not be empty")]
    TitleMissing,
    /// A text is too long.
    #[error("`{field}` has {length} {unit}; the limit is {most}")]
    TooLong {
        /// The field.
        field: &'static str,
        /// The length of the text, in `unit`.
        length: usize,
        /// The unit of the length.
        unit: &'static str,
        /// The bound.
        most: usize,
    },
    /// There are too many labels.
    #[error("there are {0} labels; the limit is {LABELS_MAX}")]
    TooManyLabels(usize),
    /// A label is one by which an operator says how an issue may close.
    #[error("the label `{NO_CHANGE_LABEL}` is given by an operator only")]
    OperatorLabel,
    /// The priority is sooner than anything a step may ask for.
    #[error("`priority` is {0}, and must not be negative")]
    NegativePriority(i64),
}

impl OutboxRequest {
    /// Checks the request against its bounds.
    ///
    /// # Errors
    ///
    /// The first bound that it breaks.
    pub fn check(&self) -> Result<(), RequestFault> {
        if visible_line(&self.title, TITLE_MAX).trim().is_empty() {
            return Err(RequestFault::TitleMissing);
        }
        let characters =
            |field, text: &str, most| bound(field, text.chars().count(), "characters", most);
        characters("title", &self.title, TITLE_MAX)?;
        let description = self.description.as_deref().unwrap_or_default();
        bound("description", description.len(), "bytes", DESCRIPTION_MAX)?;
        let issue_type = self.issue_type.as_deref().unwrap_or_default();
        characters("issueType", issue_type, WORD_MAX)?;
        let labels = self.labels.as_deref().unwrap_or_default();
        if labels.len() > LABELS_MAX {
            return Err(RequestFault::TooManyLabels(labels.len()));
        }
        for label in labels {
            characters("labels", label, WORD_MAX)?;
            if visible_line(label, WORD_MAX).trim() == NO_CHANGE_LABEL {
                return Err(RequestFault::OperatorLabel);
            }
        }
        match self.priority {
            Some(priority) if priority < 0 => Err(RequestFault::NegativePriority(priority)),
            _ => Ok(()),
        }
    }
}

fn bound(
    field: &'static str,
    length: usize,
    unit: &'static str,
    most: usize,
) -> Result<(), RequestFault> {
    if length <= most {
        return Ok(());
    }
    Err(RequestFault::TooLong {
        field,
        length,
        unit,
        most,
    })
}

/// Returns the priority of an issue that a step discovered: what was asked for,
/// but never sooner than the step's own issue, and never negative.
pub fn discovered_priority(asked: Option<i64>, parent: i64) -> i64 {
    asked
        .unwrap_or(crate::issue::DEFAULT_PRIORITY)
        .max(parent)
        .max(0)
}

/// A step and the lease that it runs under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskedUnder {
    /// The step.
    pub step_id: StepId,
    /// The lease.
    pub lease_id: LeaseId,
    /// The lease's generation.
    pub generation: u64,
}

/// Reads what nothing rests on, so that no value of it is an error.
fn text_if_it_is_one<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    let value = Value::deserialize(value)?;
    Ok(value.as_str().map(str::to_owned))
}

/// Reads a lease binding like [`text_if_it_is_one`].
fn binding_if_it_is_one<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<AskedUnder>, D::Error> {
    let value = Value::deserialize(value)?;
    Ok(serde_json::from_value(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(fields: Value) -> OutboxRequest {
        let mut request = json!({"title": "t"});
        request
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        serde_json::from_value(request).unwrap()
    }

    #[test]
    fn a_request_beyond_its_bounds_is_refused_with_the_bound() {
        assert_eq!(request(json!({"priority": 0})).check(), Ok(()));
        let long = |length: usize| "x".repeat(length);
        for (fields, expected) in [
            (json!({"title": " "}), "`title` must not be empty"),
            (
                json!({"title": long(201)}),
                "`title` has 201 characters; the limit is 200",
            ),
            (
                json!({"description": long(DESCRIPTION_MAX + 1)}),
                "`description` has 16385 bytes; the limit is 16384",
            ),
            (
                json!({"labels": vec!["l"; 21]}),
                "there are 21 labels; the limit is 20",
            ),
            (
                json!({"labels": ["a", "\u{1b} no-change "]}),
                "the label `no-change` is given by an operator only",
            ),
            (
                json!({"labels": [long(81)]}),
                "`labels` has 81 characters; the limit is 80",
            ),
            (
                json!({"issueType": long(81)}),
                "`issueType` has 81 characters; the limit is 80",
            ),
            (
                json!({"priority": -5}),
                "`priority` is -5, and must not be negative",
            ),
        ] {
            assert_eq!(request(fields).check().unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_discovered_issue_is_never_sooner_than_its_parent() {
        for (asked, parent, expected) in [
            (Some(-5), 2, 2),
            (Some(0), 1, 1),
            (Some(0), -3, 0),
            (Some(4), 1, 4),
            (None, 3, 3),
            (None, 0, 2),
        ] {
            assert_eq!(discovered_priority(asked, parent), expected, "{asked:?}");
        }
    }
}
