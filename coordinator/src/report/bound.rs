//! The message for a reached bound of the batch.

use premath_kernel::json::plain::plain;
use premath_kernel::policy::admission::EndedBy;

/// That a bound of the batch's own is reached.
pub(super) fn ending(ended_by: EndedBy, detail: &str) -> String {
    let what = match ended_by {
        EndedBy::Budget | EndedBy::BrokenTarget => "running attempts are cancelled",
        EndedBy::StopAt | EndedBy::MaxDuration | EndedBy::Window | EndedBy::Room => {
            "running attempts finish"
        }
        EndedBy::Revoked => "running attempts finish, and change no issue",
    };
    let detail = match detail {
        "" => String::new(),
        detail => format!(" ({})", plain(detail)),
    };
    let reached = ended_by.reached();
    format!("{reached}{detail}: no new attempts start, {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_says_what_happens_to_running_attempts() {
        assert_eq!(
            ending(EndedBy::MaxDuration, ""),
            "`max_duration` reached: no new attempts start, running attempts finish"
        );
        assert_eq!(
            ending(EndedBy::Budget, "12 of 10 tokens"),
            "the batch's budget reached (12 of 10 tokens): no new attempts start, running \
            attempts are cancelled"
        );
    }
}
