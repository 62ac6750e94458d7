//! When a batch is to end, whatever is left to do.

use jiff::civil::Time;
use jiff::{Timestamp, ToSpan, Zoned};
use std::str::FromStr;
use std::time::Duration;

/// A time of day, or a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopAt {
    /// The next time that the clocks on the wall show it.
    Clock(Time),
    /// A moment.
    Moment(Timestamp),
}

/// A text is not a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid time `{0}`: expected a time of day such as 07:00, or an RFC 3339 time")]
pub struct NoTime(pub String);

impl FromStr for StopAt {
    type Err = NoTime;

    fn from_str(text: &str) -> Result<Self, NoTime> {
        let no_time = || NoTime(text.to_owned());
        let trimmed = text.trim();
        if let Ok(moment) = trimmed.parse() {
            return Ok(Self::Moment(moment));
        }
        let (hour, minute) = trimmed.split_once(':').ok_or_else(no_time)?;
        let number = |digits: &str, lengths: &[usize]| {
            let fits =
                lengths.contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
            fits.then(|| digits.parse::<i8>().ok()).flatten()
        };
        let hour = number(hour, &[1, 2]).ok_or_else(no_time)?;
        let minute = number(minute, &[2]).ok_or_else(no_time)?;
        let time = Time::new(hour, minute, 0, 0).map_err(|_| no_time())?;
        Ok(Self::Clock(time))
    }
}

impl StopAt {
    /// Returns when it is next, by the clocks of a zone; `None` where it has
    /// passed or never comes.
    pub fn next(self, now: &Zoned) -> Option<Timestamp> {
        match self {
            Self::Moment(at) => (at > now.timestamp()).then_some(at),
            Self::Clock(time) => (0..=2).find_map(|days| {
                let date = now.date().checked_add(days.days()).ok()?;
                let at = date.to_datetime(time).to_zoned(now.time_zone().clone());
                at.ok()
                    .map(|at| at.timestamp())
                    .filter(|at| *at > now.timestamp())
            }),
        }
    }
}

/// What bounds a batch in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deadline {
    /// When it is to end.
    pub stop_at: Option<Timestamp>,
    /// How long it may continue.
    pub max_duration: Option<Duration>,
    /// When its window closes.
    pub window_end: Option<Timestamp>,
}

/// The bound that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The time to end.
    StopAt,
    /// The longest duration.
    MaxDuration,
    /// The end of its window.
    Window,
}

impl Deadline {
    /// Returns whether a bound is reached, after a batch has run so long.
    pub fn reached(&self, now: Timestamp, ran: Duration) -> Option<Reached> {
        if self.stop_at.is_some_and(|at| now >= at) {
            return Some(Reached::StopAt);
        }
        if self.window_end.is_some_and(|at| now >= at) {
            return Some(Reached::Window);
        }
        let over = self.max_duration.is_some_and(|most| ran >= most);
        over.then_some(Reached::MaxDuration)
    }

    /// Returns how long it is until the first bound.
    pub fn left(&self, now: Timestamp, ran: Duration) -> Option<Duration> {
        let until = [self.stop_at, self.window_end].into_iter().flatten();
        let until = until.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
        let most = self.max_duration.map(|most| most.saturating_sub(ran));
        until.chain(most).min()
    }

    /// Returns when the first bound is reached, as it looks now.
    pub fn ends_at(&self, now: Timestamp, ran: Duration) -> Option<Timestamp> {
        now.checked_add(self.left(now, ran)?).ok()
    }
}

/// Says a moment as the clocks on the wall show it, with day and zone.
pub fn on_the_wall(at: &Zoned) -> String {
    let format = if at.second() == 0 {
        "%a %Y-%m-%d %H:%M %Z"
    } else {
        "%a %Y-%m-%d %H:%M:%S %Z"
    };
    at.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::{Offset, TimeZone};

    fn next(text: &str, now: &str) -> Option<String> {
        let zone = TimeZone::fixed(Offset::constant(2));
        let now = now.parse::<Timestamp>().unwrap().to_zoned(zone);
        let stop: StopAt = text.parse().unwrap();
        stop.next(&now).map(|at| at.to_string())
    }

    #[test]
    fn a_time_of_day_is_the_next_one_on_the_wall() {
        for (text, now, expected) in [
            (
                "07:00",
                "2026-03-05T21:00:00Z",
                Some("2026-03-06T05:00:00Z"),
            ),
            ("7:00", "2026-03-05T04:59:59Z", Some("2026-03-05T05:00:00Z")),
            (
                "07:00",
                "2026-03-05T05:00:00Z",
                Some("2026-03-06T05:00:00Z"),
            ),
            (
                "00:30",
                "2026-12-31T22:29:00Z",
                Some("2026-12-31T22:30:00Z"),
            ),
            (
                "2026-03-06T07:00:00+01:00",
                "2026-03-05T21:00:00Z",
                Some("2026-03-06T06:00:00Z"),
            ),
            ("2026-03-05T07:00:00Z", "2026-03-05T07:00:00Z", None),
        ] {
            assert_eq!(next(text, now).as_deref(), expected, "{text} {now}");
        }
    }

    #[test]
    fn what_is_not_a_time_is_named() {
        for text in ["", "7", "7:0", "24:00", "07:60", "-1:00", "007:00", "noon"] {
            assert_eq!(text.parse::<StopAt>(), Err(NoTime(text.into())));
        }
    }

    #[test]
    fn the_first_bound_counts() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let seconds = Duration::from_secs;
        let deadline = Deadline {
            stop_at: Some(at(100)),
            max_duration: Some(seconds(60)),
            window_end: Some(at(150)),
        };
        for (now, ran, reached, left) in [
            (10, 0, None, 60),
            (90, 10, None, 10),
            (100, 10, Some(Reached::StopAt), 0),
            (50, 60, Some(Reached::MaxDuration), 0),
            (200, 60, Some(Reached::StopAt), 0),
        ] {
            let ran = seconds(ran);
            assert_eq!(deadline.reached(at(now), ran), reached, "{now}");
            assert_eq!(deadline.left(at(now), ran), Some(seconds(left)), "{now}");
            let ends = deadline.ends_at(at(now), ran);
            assert_eq!(ends, at(now).checked_add(seconds(left)).ok(), "{now}");
        }
        let window = Deadline {
            stop_at: None,
            ..deadline
        };
        assert_eq!(window.left(at(140), seconds(1)), Some(seconds(10)));
        let reached = window.reached(at(150), seconds(1));
        assert_eq!(reached, Some(Reached::Window));
        let none = Deadline::default();
        assert_eq!(
            (
                none.reached(at(0), seconds(9)),
                none.left(at(0), seconds(9))
            ),
            (None, None)
        );
    }

    #[test]
    fn an_end_is_reported_with_its_day_and_its_zone() {
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        for (at, said) in [
            ("2026-11-23T06:00:00Z", "Mon 2026-11-23 07:00 CET"),
            ("2026-07-01T22:00:09Z", "Thu 2026-07-02 00:00:09 CEST"),
        ] {
            let at = at.parse::<Timestamp>().unwrap().to_zoned(berlin.clone());
            assert_eq!(on_the_wall(&at), said);
        }
    }
}
