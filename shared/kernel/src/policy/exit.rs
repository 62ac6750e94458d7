//! Exit codes of the loops (`contracts.md` 10).

use super::admission::EndedBy;

/// Every issue that was worked on ended well, or nothing was ready.
pub const OK: u8 = 0;
/// At least one issue ended otherwise, a lane had to be disabled, a closed issue's
/// commit is not on the landing target, the last push failed, the last commit does
/// not pass the verification without build state, or a bound of the batch was reached.
pub const FAILED: u8 = 1;
/// Usage, configuration, or input that cannot be read, found before dispatch.
pub const USAGE: u8 = 2;
/// Refused before dispatch: a cycle, a policy mismatch, startup verification.
pub const REFUSED: u8 = 3;
/// The issue store or the trajectory cannot be read or written any more.
pub const STORE: u8 = 4;
/// Interrupted by SIGINT and drained.
const INTERRUPTED: u8 = 130;
/// Interrupted by SIGTERM and drained.
const TERMINATED: u8 = 143;

/// Returns the code of an end that a signal asked for.
pub const fn of_signal(signal: u64) -> u8 {
    match signal {
        2 => INTERRUPTED,
        _ => TERMINATED,
    }
}

/// Returns the result class of a batch that ended with a code.
pub const fn batch_result(code: u8) -> &'static str {
    match code {
        OK => "completed",
        INTERRUPTED | TERMINATED => "interrupted",
        _ => "failed",
    }
}

/// Returns whether a batch takes no more work after a step. A step that a
/// provider's limit ended has not failed.
pub const fn is_last_step(stop_on_failure: bool, succeeded: bool, limited: bool) -> bool {
    stop_on_failure && !succeeded && !limited
}

/// How a loop ended, as far as its exit code depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopEnd {
    /// The last signal.
    pub signal: Option<u64>,
    /// The issue store or the trajectory were lost.
    pub store_lost: bool,
    /// A startup verification refused before anything was dispatched.
    pub refused: bool,
    /// An issue ended otherwise than closed.
    pub failed: bool,
    /// A lane had to be disabled, or could not be made.
    pub lane_lost: bool,
    /// A closed issue's commit is not on the landing target.
    pub missing: bool,
    /// The last push failed.
    pub unpushed: bool,
    /// The last commit does not pass the verification without build state.
    pub tip_fails: bool,
    /// The bound that ended the batch.
    pub ended_by: Option<EndedBy>,
}

impl LoopEnd {
    /// Returns the exit code: the first that applies of signal, store, refusal,
    /// failure.
    pub fn exit_code(&self) -> u8 {
        let is_short = self.ended_by.is_some_and(EndedBy::is_shortage);
        let is_failed = self.failed
            || self.lane_lost
            || self.missing
            || self.unpushed
            || self.tip_fails
            || is_short;
        match self.signal {
            Some(signal) => of_signal(signal),
            None if self.store_lost => STORE,
            None if self.refused => REFUSED,
            None if is_failed => FAILED,
            None => OK,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_alone_decides_and_the_gravest_wins() {
        let none = LoopEnd::default();
        assert_eq!(none.exit_code(), OK);
        let by = |ended_by| LoopEnd {
            ended_by: Some(ended_by),
            ..none
        };
        let failing = [
            LoopEnd {
                failed: true,
                ..none
            },
            LoopEnd {
                lane_lost: true,
                ..none
            },
            LoopEnd {
                missing: true,
                ..none
            },
            LoopEnd {
                unpushed: true,
                ..none
            },
            LoopEnd {
                tip_fails: true,
                ..none
            },
            by(EndedBy::Budget),
            by(EndedBy::Room),
            by(EndedBy::Revoked),
            by(EndedBy::BrokenTarget),
        ];
        for end in failing {
            assert_eq!(end.exit_code(), FAILED, "{end:?}");
        }
        for bound in [EndedBy::StopAt, EndedBy::MaxDuration, EndedBy::Window] {
            assert_eq!(by(bound).exit_code(), OK, "{bound:?}");
        }
        let mut end = LoopEnd {
            failed: true,
            refused: true,
            ..none
        };
        assert_eq!(end.exit_code(), REFUSED);
        end.store_lost = true;
        assert_eq!(end.exit_code(), STORE);
        end.signal = Some(2);
        assert_eq!(end.exit_code(), INTERRUPTED);
        end.signal = Some(15);
        assert_eq!(end.exit_code(), TERMINATED);
    }
}
