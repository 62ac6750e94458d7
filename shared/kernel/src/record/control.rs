//! What an operator asks of a batch that runs, and the answer.
//!
//! A request is one line of JSON over the batch's socket, and so is the answer.

use crate::json::id::{BatchId, IssueId, WorkerName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest line of a request or an answer, in bytes, its line feed included.
pub const LINE_MAX: usize = 1 << 20;

/// The most issues that one request names.
const ISSUES_MAX: usize = 1000;

/// The longest text for an agent, in bytes.
pub const TEXT_MAX: usize = 16 * 1024;

/// The most lanes that one request adds.
pub const LANES_MAX: u32 = 256;

/// The kind of a request.
const REQUEST_KIND: &str = "premath.harness.control_request.v1";

/// The kind of an answer.
const ANSWER_KIND: &str = "premath.harness.control_answer.v1";

/// The status of an issue whose attempt was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelThen {
    /// It is open: the batch may take it again.
    Open,
    /// It is deferred: no batch takes it until it is reopened.
    Deferred,
}

impl CancelThen {
    /// Returns the status of the issue.
    pub const fn status(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Deferred => "deferred",
        }
    }
}

/// What is asked of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum ControlOperation {
    /// Dispatch nothing new; running attempts continue.
    Pause,
    /// Dispatch again.
    Resume,
    /// Dispatch nothing new, and end when the running attempts have ended.
    Drain,
    /// End the running attempts now, then the batch.
    Stop,
    /// End the attempts of these issues now; no attempt counts.
    Cancel {
        /// The issues.
        issues: Vec<IssueId>,
        /// Their status afterwards.
        then: CancelThen,
    },
    /// Take these issues again although their attempts are used up.
    Retry {
        /// The issues.
        issues: Vec<IssueId>,
    },
    /// Give the agents that work on these issues a text.
    Say {
        /// The issues.
        issues: Vec<IssueId>,
        /// The text.
        text: String,
        /// Whether the answer comes once the agents have it, or cannot get it.
        wait: bool,
    },
    /// Add lanes.
    LanesAdd {
        /// How many.
        count: u32,
    },
    /// Give a lane no more work after its running attempt.
    LanesRemove {
        /// The name of its worker.
        lane: WorkerName,
    },
}

impl ControlOperation {
    /// Returns the operation as commands and answers name it.
    pub const fn action(&self) -> &'static str {
        match self {
            Self::Pause => "batch.pause",
            Self::Resume => "batch.resume",
            Self::Drain => "batch.drain",
            Self::Stop => "batch.stop",
            Self::Cancel { .. } => "cancel",
            Self::Retry { .. } => "retry",
            Self::Say { .. } => "say",
            Self::LanesAdd { .. } => "batch.lanes_add",
            Self::LanesRemove { .. } => "batch.lanes_remove",
        }
    }

    /// Returns the issues that it names.
    pub fn issues(&self) -> &[IssueId] {
        match self {
            Self::Cancel { issues, .. } | Self::Retry { issues } | Self::Say { issues, .. } => {
                issues
            }
            _ => &[],
        }
    }

    /// Returns why a batch does not perform it, whatever its state.
    fn fault(&self) -> Option<String> {
        let issues = self.issues();
        let names_issues = matches!(
            self,
            Self::Cancel { .. } | Self::Retry { .. } | Self::Say { .. }
        );
        match self {
            _ if names_issues && issues.is_empty() => Some("no issue is named".to_owned()),
            _ if issues.len() > ISSUES_MAX => {
                let count = issues.len();
                Some(format!(
                    "{count} issues are named; at most {ISSUES_MAX} may be"
                ))
            }
            Self::Say { text, .. } => text_fault(text),
            Self::LanesAdd { count } if !(1..=LANES_MAX).contains(count) => Some(format!(
                "{count} lanes cannot be added; 1 to {LANES_MAX} can"
            )),
            _ => None,
        }
    }
}

/// Returns why a text is none for an agent.
fn text_fault(text: &str) -> Option<String> {
    let is_control = |byte: &char| byte.is_control() && !matches!(byte, '\n' | '\t');
    if text.trim().is_empty() {
        return Some("the text is empty".to_owned());
    }
    if text.len() > TEXT_MAX {
        let length = text.len();
        return Some(format!(
            "the text has {length} bytes; it may have {TEXT_MAX}"
        ));
    }
    let control = text.chars().find(is_control)?;
    Some(format!(
        "the text has the control character U+{:04X}",
        u32::from(control)
    ))
}

impl fmt::Display for ControlOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pause => f.write_str("pause"),
            Self::Resume => f.write_str("resume"),
            Self::Drain => f.write_str("drain"),
            Self::Stop => f.write_str("stop"),
            Self::Cancel { issues, then } => {
                write!(f, "cancel {}, then {}", issues.join(", "), then.status())
            }
            Self::Retry { issues } => write!(f, "retry {}", issues.join(", ")),
            Self::Say { issues, .. } => write!(f, "say to {}", issues.join(", ")),
            Self::LanesAdd { count } => write!(f, "add {count} lane(s)"),
            Self::LanesRemove { lane } => write!(f, "remove lane {lane}"),
        }
    }
}

/// A request to a batch that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControlRequest {
    #[schemars(schema_with = "crate::json::schema::one")]
    schema: u8,
    #[schemars(extend("const" = REQUEST_KIND))]
    control_kind: String,
    /// The token of the batch, from `.premath/private/`, which no step reads.
    pub token: String,
    /// What is asked.
    pub operation: ControlOperation,
    /// The name of the person, as their system says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// Why it is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ControlRequest {
    /// Makes a request.
    pub fn new(token: String, operation: ControlOperation) -> Self {
        Self {
            schema: 1,
            control_kind: REQUEST_KIND.to_owned(),
            token,
            operation,
            operator: None,
            reason: None,
        }
    }

    /// Reads the line of a request.
    ///
    /// # Errors
    ///
    /// Why it is none, in words.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let request: Self =
            serde_json::from_slice(line).map_err(|error| format!("not a request: {error}"))?;
        if request.schema != 1 || request.control_kind != REQUEST_KIND {
            return Err(format!(
                "not a request: controlKind must be `{REQUEST_KIND}`"
            ));
        }
        match request.operation.fault() {
            Some(fault) => Err(fault),
            None => Ok(request),
        }
    }
}

/// Whether a batch did what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ControlResult {
    /// It is done.
    Done,
    /// It is not done; the detail says why.
    Refused,
}

impl ControlResult {
    /// Returns the word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
        }
    }
}

/// The outcome for one issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssueControl {
    /// The issue.
    pub issue_id: IssueId,
    /// Whether it is done.
    pub result: ControlResult,
    /// What was done, or why not.
    pub detail: String,
    /// The branch that keeps the work of the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub salvage: Option<String>,
}

impl IssueControl {
    /// Makes the outcome of an issue for which it is done.
    pub fn done(issue_id: &IssueId, detail: impl Into<String>) -> Self {
        Self {
            issue_id: issue_id.clone(),
            result: ControlResult::Done,
            detail: detail.into(),
            salvage: None,
        }
    }

    /// Makes the outcome of an issue for which it is refused.
    pub fn refused(issue_id: &IssueId, detail: impl Into<String>) -> Self {
        Self {
            result: ControlResult::Refused,
            ..Self::done(issue_id, detail)
        }
    }
}

/// The answer of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlAnswer {
    #[schemars(schema_with = "crate::json::schema::one")]
    schema: u8,
    #[schemars(extend("const" = ANSWER_KIND))]
    control_kind: String,
    /// The batch.
    pub batch_id: BatchId,
    /// Whether all of it is done.
    pub result: ControlResult,
    /// What was done, or why not.
    pub detail: String,
    /// The outcome for each issue that was named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<IssueControl>,
}

impl ControlAnswer {
    /// Makes an answer.
    pub fn new(batch_id: &BatchId, result: ControlResult, detail: impl Into<String>) -> Self {
        Self {
            schema: 1,
            control_kind: ANSWER_KIND.to_owned(),
            batch_id: batch_id.clone(),
            result,
            detail: detail.into(),
            issues: Vec::new(),
        }
    }

    /// Makes the answer over the outcomes of issues.
    pub fn of_issues(batch_id: &BatchId, issues: Vec<IssueControl>) -> Self {
        let is_done = |issue: &&IssueControl| issue.result == ControlResult::Done;
        let done = issues.iter().filter(is_done).count();
        let result = match done == issues.len() {
            true => ControlResult::Done,
            false => ControlResult::Refused,
        };
        let detail = match issues.as_slice() {
            [issue] => format!("{}: {}", issue.issue_id, issue.detail),
            all => format!("{done} of {} issue(s) done", all.len()),
        };
        Self {
            issues,
            ..Self::new(batch_id, result, detail)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(operation: ControlOperation) -> ControlRequest {
        ControlRequest::new("t".to_owned(), operation)
    }

    fn line(request: &ControlRequest) -> Vec<u8> {
        serde_json::to_vec(request).unwrap()
    }

    #[test]
    fn a_request_reads_back() {
        let issues = vec![IssueId::from("a"), IssueId::from("b")];
        for operation in [
            ControlOperation::Pause,
            ControlOperation::Cancel {
                issues: issues.clone(),
                then: CancelThen::Deferred,
            },
            ControlOperation::Retry {
                issues: issues.clone(),
            },
            ControlOperation::Say {
                issues,
                text: "use the new parser\n\tnot the old one".to_owned(),
                wait: true,
            },
            ControlOperation::LanesAdd { count: LANES_MAX },
            ControlOperation::LanesRemove {
                lane: "worker.1".into(),
            },
        ] {
            let request = request(operation);
            assert_eq!(ControlRequest::parse(&line(&request)), Ok(request));
        }
    }

    #[test]
    fn what_is_no_request_is_refused_with_the_reason() {
        let many = (0..=ISSUES_MAX).map(|n| IssueId::from(n.to_string()));
        let too_many = ControlOperation::Retry {
            issues: many.collect(),
        };
        let say = |text: String| ControlOperation::Say {
            issues: vec![IssueId::from("a")],
            text,
            wait: false,
        };
        for (operation, said) in [
            (say(" \n".to_owned()), "the text is empty"),
            (say("x".repeat(TEXT_MAX + 1)), "the text has 16385 bytes"),
            (say("a\u{1b}[2J".to_owned()), "U+001B"),
            (
                ControlOperation::Retry { issues: vec![] },
                "no issue is named",
            ),
            (too_many, "1001 issues are named"),
            (ControlOperation::LanesAdd { count: 0 }, "0 lanes"),
            (ControlOperation::LanesAdd { count: 257 }, "257 lanes"),
        ] {
            let why = ControlRequest::parse(&line(&request(operation))).unwrap_err();
            assert!(why.contains(said), "{why}");
        }
        for (text, said) in [
            ("", "not a request"),
            ("{}", "missing field"),
            ("[]", "not a request"),
            (
                r#"{"schema":1,"controlKind":"x","token":"t","operation":{"kind":"pause"}}"#,
                "controlKind",
            ),
            (
                r#"{"schema":1,"controlKind":"x","token":"t","operation":{"kind":"burn"}}"#,
                "unknown variant `burn`",
            ),
        ] {
            let why = ControlRequest::parse(text.as_bytes()).unwrap_err();
            assert!(why.contains(said), "{text}: {why}");
        }
    }

    #[test]
    fn an_answer_over_issues_is_done_where_all_are() {
        let batch = BatchId::from("b");
        let [a, b] = ["a", "b"].map(IssueId::from);
        let done = ControlAnswer::of_issues(&batch, vec![IssueControl::done(&a, "ended")]);
        assert_eq!(
            (done.result, &*done.detail),
            (ControlResult::Done, "a: ended")
        );
        let mixed = vec![IssueControl::done(&a, ""), IssueControl::refused(&b, "no")];
        let mixed = ControlAnswer::of_issues(&batch, mixed);
        assert_eq!(mixed.result, ControlResult::Refused);
        assert_eq!(mixed.detail, "1 of 2 issue(s) done");
    }
}
