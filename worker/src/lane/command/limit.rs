//! How long a command of a lane may run, and by which setting.

use std::time::Duration;

/// How long a command may run, and the setting that bounds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeLimit {
    pub(crate) time: Duration,
    /// The setting, as a message names it.
    pub(crate) setting: &'static str,
}

impl TimeLimit {
    /// Returns the limit of a work command: what earlier rounds left of the step's
    /// time, or of the issue's budget where that is less.
    pub(super) fn of_work(step: Duration, worked: Duration, issue: Option<Duration>) -> Self {
        let time = step.saturating_sub(worked);
        if let Some(left) = issue.filter(|left| *left < time) {
            return Self {
                time: left,
                setting: "the rest of `issue_time` under [budget]",
            };
        }
        let setting = match worked.is_zero() {
            true => "`step_limit`",
            false => "the rest of `step_limit`",
        };
        Self { time, setting }
    }

    /// Returns the limit of any other command.
    pub(super) const fn of_other(time: Duration) -> Self {
        Self {
            time,
            setting: "`verify_limit`",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_time_bounds_the_work_and_is_named() {
        let seconds = Duration::from_secs;
        for (worked, issue, time, setting) in [
            (0, None, 60, "`step_limit`"),
            (0, Some(60), 60, "`step_limit`"),
            (20, Some(50), 40, "the rest of `step_limit`"),
            (20, Some(10), 10, "the rest of `issue_time` under [budget]"),
        ] {
            let limit = TimeLimit::of_work(seconds(60), seconds(worked), issue.map(seconds));
            let expected = TimeLimit {
                time: seconds(time),
                setting,
            };
            assert_eq!(limit, expected);
        }
    }
}
