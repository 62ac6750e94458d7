//! The hours of the day in which a batch begins attempts.

use jiff::civil::Time;
use jiff::{Timestamp, ToSpan, Zoned};
use std::fmt;
use std::str::FromStr;

/// Hours of each day, by the clocks of a zone; they may go over midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayWindow {
    from: Time,
    to: Time,
}

/// A text is not a window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid window `{0}`: expected two times of day, for example 22:00-07:00")]
pub struct NoWindow(pub String);

impl FromStr for DayWindow {
    type Err = NoWindow;

    fn from_str(text: &str) -> Result<Self, NoWindow> {
        let window = || {
            let (from, to) = text.split_once('-')?;
            let (from, to) = (time_of_day(from.trim())?, time_of_day(to.trim())?);
            (from != to).then_some(Self { from, to })
        };
        window().ok_or_else(|| NoWindow(text.to_owned()))
    }
}

fn time_of_day(text: &str) -> Option<Time> {
    let (hour, minute) = text.split_once(':')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !matches!(hour.len(), 1 | 2) || minute.len() != 2 || !digits(hour) || !digits(minute) {
        return None;
    }
    Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()
}

impl fmt::Display for DayWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [from, to] = [self.from, self.to].map(|time| time.strftime("%H:%M").to_string());
        write!(f, "{from}-{to}")
    }
}

/// Whether a window is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowState {
    /// It is open, and closes at a time.
    Open {
        /// When it closes.
        until: Timestamp,
    },
    /// It is closed, and opens at a time.
    Closed {
        /// When it opens.
        opens: Timestamp,
    },
}

impl DayWindow {
    /// Returns whether it is open. A time that the clocks skip is the time after
    /// the gap; of one that they show twice the first counts. A night on which
    /// nothing of the window is left does not count.
    pub fn state(&self, now: &Zoned) -> WindowState {
        let at = now.timestamp();
        let mut opens: Option<Timestamp> = None;
        for days in -1..=8 {
            let Some((from, to)) = self.of_day(now, days) else {
                continue;
            };
            if from <= at && at < to {
                return WindowState::Open { until: to };
            }
            if from > at {
                opens = Some(opens.map_or(from, |known| known.min(from)));
            }
        }
        // One of the next days has hours of its own in every zone.
        WindowState::Closed {
            opens: opens.unwrap_or(Timestamp::MAX),
        }
    }

    /// Returns when it closes next: now or, where it is closed, after it opened.
    pub fn closes_next(&self, now: &Zoned) -> Timestamp {
        match self.state(now) {
            WindowState::Open { until } => until,
            WindowState::Closed { opens } => {
                match self.state(&opens.to_zoned(now.time_zone().clone())) {
                    WindowState::Open { until } => until,
                    WindowState::Closed { opens } => opens,
                }
            }
        }
    }

    /// Returns the hours that begin so many days from now.
    fn of_day(&self, now: &Zoned, days: i32) -> Option<(Timestamp, Timestamp)> {
        let date = now.date().checked_add(days.days()).ok()?;
        let ends = match self.to > self.from {
            true => date,
            false => date.tomorrow().ok()?,
        };
        let zone = now.time_zone();
        let from = date.to_datetime(self.from).to_zoned(zone.clone()).ok()?;
        let to = ends.to_datetime(self.to).to_zoned(zone.clone()).ok()?;
        let (from, to) = (from.timestamp(), to.timestamp());
        (from < to).then_some((from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;

    /// Central European time, by its rule.
    fn zone() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    fn state(window: &str, now: &str) -> (bool, String) {
        let window: DayWindow = window.parse().unwrap();
        let now = now.parse::<Timestamp>().unwrap().to_zoned(zone());
        match window.state(&now) {
            WindowState::Open { until } => (true, until.to_string()),
            WindowState::Closed { opens } => (false, opens.to_string()),
        }
    }

    /// Checks windows at moments: whether they are open, and when that changes.
    #[track_caller]
    fn holds(rows: &[(&str, &str, bool, &str)]) {
        for (window, now, open, then) in rows {
            let found = state(window, now);
            assert_eq!(found, (*open, (*then).to_owned()), "{window} at {now}");
        }
    }

    #[test]
    fn a_window_is_open_from_its_first_minute_until_its_last() {
        // In winter the clocks are one hour ahead.
        let (before, after) = ("2026-01-05T08:00:00Z", "2026-01-06T08:00:00Z");
        let end = "2026-01-05T16:30:00Z";
        holds(&[
            ("9:00-17:30", "2026-01-05T07:59:00Z", false, before),
            ("9:00-17:30", "2026-01-05T16:29:00Z", true, end),
            ("9:00-17:30", "2026-01-05T16:30:00Z", false, after),
        ]);
    }

    #[test]
    fn a_window_goes_over_midnight() {
        let (night, morning) = ("2026-01-05T21:00:00Z", "2026-01-06T06:00:00Z");
        holds(&[
            ("22:00-07:00", "2026-01-05T20:59:59Z", false, night),
            ("22:00-07:00", night, true, morning),
            ("22:00-07:00", "2026-01-06T00:30:00Z", true, morning),
            ("22:00-07:00", "2026-01-06T05:59:59Z", true, morning),
            ("22:00-07:00", morning, false, "2026-01-06T21:00:00Z"),
        ]);
        let midnight = "2026-01-05T23:00:00Z";
        holds(&[
            ("20:00-00:00", "2026-01-05T22:59:00Z", true, midnight),
            ("00:00-06:00", midnight, true, "2026-01-06T05:00:00Z"),
        ]);
    }

    #[test]
    fn the_clocks_on_the_wall_count_when_they_are_changed() {
        // On 2026-03-29 they go from 02:00 to 03:00, on 2026-10-25 from 03:00 to
        // 02:00: one night is short, one is long.
        let (short, long) = ("2026-03-29T05:00:00Z", "2026-10-25T06:00:00Z");
        holds(&[
            ("22:00-07:00", "2026-03-28T22:00:00Z", true, short),
            ("22:00-07:00", "2026-10-24T21:00:00Z", true, long),
        ]);
        // 02:30 does not exist: it opens at 03:30. Of 02:15 to 03:10 nothing is left.
        let (later, next) = ("2026-03-29T01:30:00Z", "2026-03-30T00:15:00Z");
        holds(&[
            ("02:30-05:00", "2026-03-29T00:59:00Z", false, later),
            ("02:15-03:10", "2026-03-29T00:00:00Z", false, next),
        ]);
        // 02:30 is there twice: the first one counts.
        let (first, next) = ("2026-10-25T00:30:00Z", "2026-10-26T00:00:00Z");
        holds(&[
            ("01:00-02:30", "2026-10-25T00:20:00Z", true, first),
            ("01:00-02:30", "2026-10-25T00:40:00Z", false, next),
        ]);
    }

    #[test]
    fn a_batch_ends_where_its_window_closes_next() {
        let window: DayWindow = "22:00-07:00".parse().unwrap();
        let closes = |now: &str| {
            let now = now.parse::<Timestamp>().unwrap().to_zoned(zone());
            window.closes_next(&now).to_string()
        };
        assert_eq!(closes("2026-01-05T23:00:00Z"), "2026-01-06T06:00:00Z");
        assert_eq!(closes("2026-01-05T12:00:00Z"), "2026-01-06T06:00:00Z");
    }

    #[test]
    fn what_is_no_window_is_named() {
        for text in [
            "",
            "22:00",
            "22:00-",
            "22-7",
            "22:00-22:00",
            "24:00-07:00",
            "a:00-07:00",
        ] {
            let error = text.parse::<DayWindow>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("invalid window `{text}`")),
                "{error}"
            );
        }
        let window: DayWindow = " 9:05 - 17:30 ".parse().unwrap();
        assert_eq!(window.to_string(), "09:05-17:30");
    }
}
