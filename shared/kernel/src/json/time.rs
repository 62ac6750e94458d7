//! Times as values: the kernel never reads a clock.

use jiff::Timestamp;

/// One reading of the clocks of the process that asks, taken together.
///
/// `boot_ms` is milliseconds on CLOCK_BOOTTIME, comparable only under the
/// same `boot_id` (`contracts.md` 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Wall clock, UTC.
    pub wall: Timestamp,
    /// Milliseconds since this machine booted, suspended time included.
    pub boot_ms: u64,
}

/// Writes a time in UTC with `Z` and 0, 3, 6 or 9 fraction digits, the fewest
/// that lose nothing (`contracts.md` 1).
pub fn shortest(time: Timestamp) -> String {
    let nanos = time.subsec_nanosecond();
    if nanos == 0 {
        format!("{time:.0}")
    } else if nanos % 1_000_000 == 0 {
        format!("{time:.3}")
    } else if nanos % 1_000 == 0 {
        format!("{time:.6}")
    } else {
        format!("{time:.9}")
    }
}

/// Writes a time in UTC with `Z` and six fraction digits (`contracts.md` 6).
pub fn micros(time: Timestamp) -> String {
    format!("{time:.6}")
}

/// Reads an RFC 3339 time with any offset.
///
/// Returns `None` for anything else.
pub fn parse(text: &str) -> Option<Timestamp> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_digits_that_lose_nothing() {
        for (text, expected) in [
            ("2026-02-21T21:41:39Z", "2026-02-21T21:41:39Z"),
            ("2026-02-21T21:41:39.5Z", "2026-02-21T21:41:39.500Z"),
            ("2026-02-21T21:41:39.7244Z", "2026-02-21T21:41:39.724400Z"),
            (
                "2026-02-21T21:41:39.7244001Z",
                "2026-02-21T21:41:39.724400100Z",
            ),
            (
                "2025-11-02T21:58:07.295058-08:00",
                "2025-11-03T05:58:07.295058Z",
            ),
        ] {
            assert_eq!(shortest(parse(text).unwrap()), expected);
        }
        assert_eq!(
            micros(parse("2026-02-21T21:41:39Z").unwrap()),
            "2026-02-21T21:41:39.000000Z"
        );
    }
}
