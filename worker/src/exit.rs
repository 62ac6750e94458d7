//! Exit codes of the loops (`contracts.md` 10).

/// Every issue that was worked on ended well, or nothing was ready.
pub const OK: u8 = 0;
/// At least one issue ended otherwise, a lane had to be given up, a closed issue's
/// commit is not on the landing target, the last push failed, the last commit does
/// not pass the verification without build state, or a bound of the batch was reached.
pub const FAILED: u8 = 1;
/// Usage, configuration, or input that cannot be read, found before dispatch.
pub const USAGE: u8 = 2;
/// Refused before dispatch: a cycle, a policy mismatch, startup verification.
pub const REFUSED: u8 = 3;
/// Issue memory or trajectory cannot be read or written any more.
pub const STORE: u8 = 4;
/// Interrupted by SIGINT and drained.
pub const INTERRUPTED: u8 = 130;
/// Interrupted by SIGTERM and drained.
pub const TERMINATED: u8 = 143;

/// Returns the code of an end that a signal asked for.
pub const fn of_signal(signal: u64) -> u8 {
    match signal {
        2 => INTERRUPTED,
        _ => TERMINATED,
    }
}
