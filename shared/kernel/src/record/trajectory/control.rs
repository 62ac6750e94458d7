//! The row of an operator's request to a batch that runs.

use super::{StepRow, action};
use crate::json::read::unless_blank;
use crate::json::stamp::{Stamp, compact};
use crate::record::control::{ControlAnswer, ControlOperation, ControlResult, IssueControl};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An operator's request as the trajectory records it (ours).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlRecord {
    /// What was asked.
    pub operation: ControlOperation,
    /// The user of the process that asked.
    pub uid: u32,
    /// The process that asked.
    pub pid: u32,
    /// The name of the person, as their system says it.
    #[serde(
        default,
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub operator: Option<String>,
    /// Why it was asked.
    #[serde(
        default,
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub reason: Option<String>,
    /// What was done, or why not.
    pub detail: String,
    /// The outcome for each issue that was named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<IssueControl>,
}

/// Returns the row of a request, `number` in the order of this process.
pub fn control_row(
    record: ControlRecord,
    answer: &ControlAnswer,
    (asked, now): (Timestamp, Timestamp),
    number: u64,
) -> StepRow {
    let batch_id = &answer.batch_id;
    let nanos = asked.subsec_nanosecond();
    let id = format!(
        "{}.{batch_id}.{}.{nanos:09}.{number}",
        action::CONTROL,
        compact(asked)
    );
    let result = match answer.result {
        ControlResult::Done => "ok",
        ControlResult::Refused => "refused",
    };
    StepRow {
        batch_id: Some(batch_id.clone()),
        started_at: Some(Stamp::at(asked)),
        control: Some(record),
        ..StepRow::new(id, action::CONTROL, result, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_of_a_request_reads_back() {
        let now: Timestamp = "2026-03-05T10:00:00Z".parse().unwrap();
        let answer = ControlAnswer::new(&"b".into(), ControlResult::Done, "paused");
        let record = ControlRecord {
            operation: ControlOperation::Pause,
            uid: 1000,
            pid: 7,
            operator: Some("ada".to_owned()),
            reason: None,
            detail: answer.detail.clone(),
            issues: Vec::new(),
        };
        let row = control_row(record, &answer, (now, now), 3);
        let again = StepRow::parse(row.line().unwrap().as_bytes()).unwrap();
        assert_eq!(again, row);
        assert_eq!(
            row.step_id.as_str(),
            "operator.control.b.20260305T100000Z.000000000.3"
        );
    }
}
