//! The document that a notification command, or a webhook, gets.

use super::live::short;
use crate::json::id::{BatchId, IssueId};
use crate::json::plain::plain;
use crate::json::stamp::Stamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// How many failure classes a notification has at most.
const CLASSES_MAX: usize = 8;

/// What a notification is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotifyEvent {
    /// The batch ended.
    Done,
    /// An issue is blocked.
    Blocked,
    /// The batch used up its budget.
    Budget,
    /// A provider is parked.
    Parked,
    /// The verification fails without any work.
    RedBaseline,
    /// What landed did not pass its check, and was taken back.
    FailedCheck,
}

/// A word is not an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown event `{name}`: expected {}", known(), name = .0)]
pub struct UnknownNotifyEvent(pub String);

fn known() -> String {
    let words: Vec<&str> = NotifyEvent::ALL
        .iter()
        .map(|event| event.as_str())
        .collect();
    words.join(", ")
}

impl NotifyEvent {
    /// Every event.
    pub const ALL: [Self; 6] = [
        Self::Done,
        Self::Blocked,
        Self::Budget,
        Self::Parked,
        Self::RedBaseline,
        Self::FailedCheck,
    ];

    /// Returns the word used in settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Blocked => "blocked",
            Self::Budget => "budget",
            Self::Parked => "parked",
            Self::RedBaseline => "red_baseline",
            Self::FailedCheck => "failed_check",
        }
    }
}

impl fmt::Display for NotifyEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for NotifyEvent {
    type Err = UnknownNotifyEvent;

    fn from_str(text: &str) -> Result<Self, UnknownNotifyEvent> {
        let found = Self::ALL.into_iter().find(|event| event.as_str() == text);
        found.ok_or_else(|| UnknownNotifyEvent(text.to_owned()))
    }
}

/// A notification, as a command reads it. Every text is bounded and has its control
/// characters escaped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notification {
    #[schemars(schema_with = "crate::json::schema::one")]
    schema: u8,
    /// What it is about.
    pub event: NotifyEvent,
    /// When it was sent.
    pub at: Stamp,
    /// The batch.
    pub batch_id: BatchId,
    /// The text for a person, in a line.
    pub text: String,
    /// The issue; null where it is about none.
    pub issue_id: Option<IssueId>,
    /// The issue's title.
    pub title: Option<String>,
    /// The failure classes of its attempt.
    pub failure_classes: Vec<String>,
    /// The exit code of the batch; null where it did not end.
    pub exit_code: Option<u8>,
}

/// What a notification is made of, as it was found.
#[derive(Clone, Debug)]
pub struct NotifyFacts<'a> {
    /// The text for a person.
    pub text: &'a str,
    /// The issue and its title.
    pub issue: Option<(&'a IssueId, &'a str)>,
    /// The failure classes.
    pub failure_classes: &'a [String],
    /// The exit code of the batch.
    pub exit_code: Option<u8>,
}

impl Notification {
    /// Makes a notification; what is foreign is escaped and cut.
    pub fn new(event: NotifyEvent, at: Stamp, batch_id: &BatchId, facts: &NotifyFacts<'_>) -> Self {
        let safe = |text: &str| short(&plain(text));
        let classes = facts.failure_classes.iter().take(CLASSES_MAX);
        Self {
            schema: 1,
            event,
            at,
            batch_id: batch_id.clone(),
            text: safe(facts.text),
            issue_id: facts.issue.map(|(id, _)| IssueId::from(safe(id))),
            title: facts.issue.map(|(_, title)| safe(title)),
            failure_classes: classes.map(|class| safe(class)).collect(),
            exit_code: facts.exit_code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_holds_nothing_that_acts_on_a_terminal_and_is_bounded() {
        let title = format!("a\u{1b}[2J\n{}", "x".repeat(100_000));
        let classes = vec!["c\u{7}".to_owned(); 100];
        let facts = NotifyFacts {
            text: &title,
            issue: Some((&"i\u{1b}".into(), &title)),
            failure_classes: &classes,
            exit_code: None,
        };
        let at = Stamp::parse("2026-03-05T10:00:00Z").unwrap();
        let made = Notification::new(NotifyEvent::Blocked, at, &"b".into(), &facts);
        let json = serde_json::to_string(&made).unwrap();
        assert!(json.len() < 16_384, "{}", json.len());
        assert!(!json.contains("\\u001b[") && !made.text.contains(['\u{1b}', '\n']));
        assert_eq!(made.failure_classes.len(), CLASSES_MAX);
        assert_eq!(made.failure_classes[0], "c\\u{7}");
    }

    #[test]
    fn each_event_reads_as_it_is_written() {
        for event in NotifyEvent::ALL {
            assert_eq!(event.to_string().parse(), Ok(event));
        }
        let error = "all".parse::<NotifyEvent>().unwrap_err().to_string();
        assert!(error.ends_with("red_baseline, failed_check"), "{error}");
    }
}
