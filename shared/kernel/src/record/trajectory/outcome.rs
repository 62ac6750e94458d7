//! The outcome of a row in one word, for people.

use super::{is_retry_needed, is_success, normal};

/// The outcome of a row. Its result class says more, to programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOutcome {
    /// It succeeded.
    Completed,
    /// It asks for a retry.
    Retry,
    /// Its issue is blocked.
    Blocked,
    /// It did not end by itself, and released its issue.
    Released,
    /// It failed, and is not retried.
    Failed,
}

impl RowOutcome {
    /// Reads it from a result class, also from another program's.
    pub fn of(result_class: &str) -> Self {
        let class = normal(result_class);
        if is_success(&class) {
            Self::Completed
        } else if is_retry_needed(&class) {
            Self::Retry
        } else if class.contains("blocked") {
            Self::Blocked
        } else if class.contains("released") && !class.starts_with("failed") {
            Self::Released
        } else {
            Self::Failed
        }
    }

    /// Returns the word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Retry => "retry",
            Self::Blocked => "blocked",
            Self::Released => "released",
            Self::Failed => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::transport::Transported;
    use crate::issue::handoff::HandoffResult;

    #[test]
    fn every_class_of_a_stop_has_its_word() {
        for (result, word) in [
            (HandoffResult::Completed, "completed"),
            (HandoffResult::IssueClosed, "failed"),
            (HandoffResult::LeaseActive, "retry"),
            (HandoffResult::LeaseLost, "failed"),
            (HandoffResult::LeaseStale, "retry"),
            (HandoffResult::LeaseContended, "retry"),
            (HandoffResult::LeaseMissing, "failed"),
            (HandoffResult::IssueMissing, "failed"),
            (HandoffResult::LeaseInvariant, "failed"),
            (HandoffResult::IssueBlocked, "blocked"),
            (HandoffResult::LeaseReleased, "failed"),
            (HandoffResult::Interrupted, "released"),
        ] {
            let class = result.as_str();
            assert_eq!(RowOutcome::of(class).as_str(), word, "{class}");
            if result != HandoffResult::Completed {
                let class = Transported::Dispatched.ends(class);
                assert_eq!(RowOutcome::of(&class).as_str(), word, "{class}");
            }
        }
        for (foreign, word) in [
            ("OK", "completed"),
            ("gate-timeout", "retry"),
            ("", "failed"),
        ] {
            assert_eq!(RowOutcome::of(foreign).as_str(), word, "{foreign}");
        }
    }
}
