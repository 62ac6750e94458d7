//! A question at the foot of the live view, and the text that answers it.

use super::key::Key;
use super::operation::{Operation, PriorityChange};
use premath_kernel::json::id::{IssueId, WorkerName};

/// The most characters of an answer.
const TEXT_MAX: usize = 400;

/// The highest number of a priority.
const PRIORITY_MAX: i64 = 4;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Whether a running attempt is to end.
    Cancel { lane: WorkerName, issue: IssueId },
    /// Whether the batch is to drain.
    Drain,
    /// The note for the next attempt.
    Note(IssueId),
    /// An issue and its priority.
    Priority,
    /// What is looked for.
    Search,
}

/// A question with what is typed so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prompt {
    pub(super) asked: Asked,
    pub(super) text: String,
}

/// What a key makes of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// It is still asked.
    Open,
    /// It is answered by no.
    No,
    /// An operation is asked for.
    Operation(Operation),
    /// A text is looked for.
    Search(String),
    /// The answer does not fit.
    Unfit(&'static str),
}

impl Prompt {
    pub(super) fn new(asked: Asked, text: &str) -> Self {
        Self {
            asked,
            text: text.to_owned(),
        }
    }

    /// Returns the question.
    pub(super) fn question(&self) -> String {
        match &self.asked {
            Asked::Cancel { lane, issue } => format!(
                "cancel {issue} on {lane}? y: and defer it, o: and leave it open, other keys: no"
            ),
            Asked::Drain => {
                "drain: finish the running attempts, then end the batch? y: yes, other keys: no"
                    .to_owned()
            }
            Asked::Note(issue) => format!("reopen {issue}; note for the next attempt: "),
            Asked::Priority => "issue and priority, 0 (first) to 4: ".to_owned(),
            Asked::Search => "/".to_owned(),
        }
    }

    /// Returns whether a text is typed.
    pub(super) const fn is_text(&self) -> bool {
        !matches!(self.asked, Asked::Cancel { .. } | Asked::Drain)
    }

    /// Takes a key.
    pub(super) fn key(&mut self, key: Key) -> Answered {
        if !self.is_text() {
            return self.confirmed(key);
        }
        match key {
            Key::Escape => Answered::No,
            Key::Enter => self.entered(),
            Key::Backspace => match self.text.pop() {
                Some(_) => Answered::Open,
                None => Answered::No,
            },
            Key::Char(c) => {
                if self.text.chars().count() < TEXT_MAX {
                    self.text.push(c);
                }
                Answered::Open
            }
            _ => Answered::Open,
        }
    }

    fn confirmed(&self, key: Key) -> Answered {
        let operation = match (&self.asked, key) {
            (Asked::Cancel { issue, .. }, Key::Char('y' | 'o')) => Operation::Cancel {
                issue: issue.clone(),
                again: key == Key::Char('o'),
            },
            (Asked::Drain, Key::Char('y')) => Operation::Drain,
            _ => return Answered::No,
        };
        Answered::Operation(operation)
    }

    fn entered(&self) -> Answered {
        let text = self.text.trim();
        match &self.asked {
            Asked::Note(issue) => Answered::Operation(Operation::Reopen {
                issue: issue.clone(),
                note: (!text.is_empty()).then(|| text.to_owned()),
            }),
            Asked::Search => Answered::Search(text.to_owned()),
            _ => priority(text),
        }
    }
}

/// Reads an issue and a priority, as in `demo-4 0`.
fn priority(text: &str) -> Answered {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [issue, number] = parts[..] else {
        return Answered::Unfit("give an issue and a priority, for example: demo-4 0");
    };
    let number = number.trim_start_matches(['p', 'P']).parse::<i64>();
    match number {
        Ok(number) if (0..=PRIORITY_MAX).contains(&number) => {
            Answered::Operation(Operation::Priority {
                issue: issue.into(),
                change: PriorityChange::Set(number),
            })
        }
        _ => Answered::Unfit("a priority is a number from 0 (first) to 4 (last)"),
    }
}
