//! Durations, times, tokens and money as a person reads them.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use premath_kernel::policy::budget::usd;
use std::time::Duration;

/// The word for what is not known.
pub const UNKNOWN: &str = "unknown";

/// The sign for it in a column.
pub const NONE: &str = "-";

/// Where and when a person looks.
#[derive(Clone, Debug)]
pub struct Viewer {
    /// Now.
    pub now: Timestamp,
    /// The zone of the machine.
    pub zone: TimeZone,
    /// How many columns a line has.
    pub width: usize,
}

impl Viewer {
    /// Writes a time as the clock on the wall shows it, with the day where it is
    /// another one.
    pub fn clock(&self, at: Timestamp) -> String {
        let (local, here) = (
            at.to_zoned(self.zone.clone()),
            self.now.to_zoned(self.zone.clone()),
        );
        let format = match local.date() == here.date() {
            true => "%H:%M",
            false => "%Y-%m-%d %H:%M",
        };
        local.strftime(format).to_string()
    }

    /// Writes a time with how far it is from now, as in `07:00 (in 2h 10m)`.
    pub fn when(&self, at: Timestamp) -> String {
        let clock = self.clock(at);
        let (span, ahead) = match at >= self.now {
            true => (at.duration_since(self.now), true),
            false => (self.now.duration_since(at), false),
        };
        let span = brief(Duration::try_from(span).unwrap_or_default());
        match ahead {
            true => format!("{clock} (in {span})"),
            false => format!("{clock} ({span} ago)"),
        }
    }
}

/// Writes a duration with two units at most, as in `45s`, `12m`, `2h 13m`.
pub fn brief(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, 1..10) => format!("{minutes}m {:02}s", seconds % 60),
        (0, 0, _) => format!("{minutes}m"),
        (0, _, _) => format!("{hours}h {:02}m", minutes % 60),
        _ => format!("{days}d {:02}h", hours % 24),
    }
}

/// Writes milliseconds as [`brief`] does.
pub(crate) fn brief_ms(ms: u64) -> String {
    brief(Duration::from_millis(ms))
}

/// Writes a count of tokens in three digits or so, as in `123`, `12.3k`, `4.1M`.
pub fn tokens(count: u64) -> String {
    let scaled = |unit: u64, letter: char| {
        let tenths = count / (unit / 10);
        match tenths < 1000 {
            true => format!("{}.{}{letter}", tenths / 10, tenths % 10),
            false => format!("{}{letter}", tenths / 10),
        }
    };
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => scaled(1_000, 'k'),
        1_000_000..1_000_000_000 => scaled(1_000_000, 'M'),
        _ => scaled(1_000_000_000, 'G'),
    }
}

/// Writes money in dollars and cents; less than a cent in full.
pub fn money(nano: u64) -> String {
    const CENT: u64 = 10_000_000;
    match nano {
        1..CENT => usd(nano),
        _ => {
            let cents = nano.saturating_add(CENT / 2) / CENT;
            format!("{}.{:02}", cents / 100, cents % 100)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units_at_most() {
        for (seconds, expected) in [
            (0, "0s"),
            (59, "59s"),
            (61, "1m 01s"),
            (3_599, "59m"),
            (7_980, "2h 13m"),
            (86_400 * 2 + 3_600, "2d 01h"),
        ] {
            assert_eq!(brief(Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn figures_are_short_and_lose_no_magnitude() {
        for (count, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1.0k"),
            (12_345, "12.3k"),
            (123_456, "123k"),
            (4_100_000, "4.1M"),
            (7_000_000_000, "7.0G"),
        ] {
            assert_eq!(tokens(count), expected);
        }
        for (nano, expected) in [
            (0, "0.00"),
            (4_000_000, "0.004"),
            (420_000_000, "0.42"),
            (12_345_000_000, "12.35"),
        ] {
            assert_eq!(money(nano), expected);
        }
    }

    #[test]
    fn a_time_has_its_day_where_it_is_another_one() {
        let viewer = Viewer {
            now: "2026-03-05T23:00:00Z".parse().unwrap(),
            zone: TimeZone::UTC,
            width: 80,
        };
        let at = |text: &str| viewer.when(text.parse().unwrap());
        assert_eq!(at("2026-03-05T22:00:00Z"), "22:00 (1h 00m ago)");
        assert_eq!(at("2026-03-06T07:00:00Z"), "2026-03-06 07:00 (in 8h 00m)");
    }
}
