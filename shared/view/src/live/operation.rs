//! What a person asks for in the live view.

use premath_kernel::json::id::{BatchId, IssueId};

/// What the view asks of the program that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Leave the view; the batch continues.
    Quit,
    /// Read what the attempt of a lane or an issue prints, and hand it over.
    Open(String),
    /// Read it no more.
    Close,
    /// Carry out an operation, and hand the answer over.
    Perform(Request),
}

/// An operation, and the batch that is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The batch that is shown; `None` where none runs.
    pub batch: Option<BatchId>,
    /// The operation.
    pub operation: Operation,
}

/// What can be done with a batch and its issues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Start no new attempts.
    Pause,
    /// Start attempts again.
    Resume,
    /// Finish the running attempts, then end the batch.
    Drain,
    /// End the running attempt of an issue.
    Cancel {
        /// The issue.
        issue: IssueId,
        /// Whether the batch may take it again at once; else it is deferred.
        again: bool,
    },
    /// Change the priority of an issue.
    Priority {
        /// The issue.
        issue: IssueId,
        /// How.
        change: PriorityChange,
    },
    /// Open an issue for another attempt.
    Reopen {
        /// The issue.
        issue: IssueId,
        /// What is added to its notes.
        note: Option<String>,
    },
}

/// How a priority changes: 0 comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityChange {
    /// By one towards 0.
    Raise,
    /// By one away from 0.
    Lower,
    /// To a number.
    Set(i64),
}

impl Operation {
    /// Returns what is asked, for the status line.
    pub fn words(&self) -> String {
        match self {
            Self::Pause => "pause".to_owned(),
            Self::Resume => "resume".to_owned(),
            Self::Drain => "drain".to_owned(),
            Self::Cancel { issue, .. } => format!("cancel {issue}"),
            Self::Priority { issue, .. } => format!("priority of {issue}"),
            Self::Reopen { issue, .. } => format!("reopen {issue}"),
        }
    }
}
