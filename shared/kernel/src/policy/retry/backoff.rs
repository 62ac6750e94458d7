//! How long a backoff class waits: configuration, not policy.

use crate::json::canonical::sha256_hex;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long to wait before the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// The same each time.
    Fixed(Duration),
    /// Doubled after each attempt, up to a cap.
    Exponential {
        /// The wait after the first attempt.
        base: Duration,
        /// The longest wait.
        cap: Duration,
    },
}

impl Backoff {
    /// Returns the wait after an attempt, which counts from 1.
    pub(crate) fn wait(self, attempt: u32) -> Duration {
        match self {
            Self::Fixed(wait) => wait,
            Self::Exponential { base, cap } => {
                let doublings = attempt.saturating_sub(1).min(31);
                base.saturating_mul(1 << doublings).min(cap)
            }
        }
    }
}

/// What each backoff class waits.
///
/// Deterministic: a wait is longer by a share that its seed decides, so that
/// issues that failed together are not tried again together. A class that the
/// table does not have waits 30 s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackoffTable {
    classes: BTreeMap<String, Backoff>,
    jitter_percent: u32,
}

impl BackoffTable {
    /// What a class waits that the table does not have.
    pub(crate) const UNMAPPED: Backoff = Backoff::Fixed(Duration::from_secs(30));

    /// Maps a class, over what was there.
    pub fn set(&mut self, class: impl Into<String>, backoff: Backoff) {
        self.classes.insert(class.into(), backoff);
    }

    /// Sets by how many hundredths a wait may be longer, at most 100.
    pub fn set_jitter(&mut self, percent: u32) {
        self.jitter_percent = percent.min(100);
    }

    /// Returns by how many hundredths a wait may be longer.
    pub const fn jitter_percent(&self) -> u32 {
        self.jitter_percent
    }

    /// Returns the wait of a class after an attempt, which counts from 1, with
    /// the jitter of a seed: the same for the same seed, never shorter than
    /// [`BackoffTable::wait`].
    pub fn wait_of(&self, class: &str, attempt: u32, seed: &str) -> Duration {
        let wait = self.wait(class, attempt);
        wait.saturating_add(jitter(wait, self.jitter_percent, seed))
    }

    /// Returns the wait of a class after an attempt, which counts from 1.
    pub fn wait(&self, class: &str, attempt: u32) -> Duration {
        self.classes
            .get(class)
            .copied()
            .unwrap_or(Self::UNMAPPED)
            .wait(attempt)
    }
}

impl Default for BackoffTable {
    /// `none` waits not at all, `fixed_short` 30 s, `exponential_short` 15 s
    /// doubled up to 10 min; each is up to a tenth longer.
    fn default() -> Self {
        let classes = [
            ("none", Backoff::Fixed(Duration::ZERO)),
            ("fixed_short", Backoff::Fixed(Duration::from_secs(30))),
            (
                "exponential_short",
                Backoff::Exponential {
                    base: Duration::from_secs(15),
                    cap: Duration::from_secs(600),
                },
            ),
        ];
        Self {
            classes: classes.map(|(c, b)| (c.to_owned(), b)).into(),
            jitter_percent: 10,
        }
    }
}

/// Returns by how much a wait is longer: up to so many hundredths, as its seed
/// decides.
pub(crate) fn jitter(wait: Duration, percent: u32, seed: &str) -> Duration {
    let share = sha256_hex(seed.as_bytes());
    let share = u32::from_str_radix(&share[..4], 16).unwrap_or(0);
    wait.saturating_mul(percent.min(100) * share) / (100 * 0xFFFF)
}

/// Returns when the next attempt may start: `now` plus the wait, or the end of
/// time.
pub fn retry_at(now: Timestamp, wait: Duration) -> Timestamp {
    SignedDuration::try_from(wait)
        .ok()
        .and_then(|wait| now.checked_add(wait).ok())
        .unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_default_table_waits_as_documented() {
        let table = BackoffTable::default();
        for (class, attempt, seconds) in [
            ("none", 1, 0),
            ("fixed_short", 1, 30),
            ("fixed_short", 9, 30),
            ("exponential_short", 0, 15),
            ("exponential_short", 1, 15),
            ("exponential_short", 2, 30),
            ("exponential_short", 6, 480),
            ("exponential_short", 7, 600),
            ("exponential_short", u32::MAX, 600),
            ("of_my_own", 1, 30),
        ] {
            assert_eq!(
                table.wait(class, attempt),
                Duration::from_secs(seconds),
                "{class} {attempt}"
            );
        }
    }

    #[test]
    fn a_table_can_be_overridden() {
        let mut table = BackoffTable::default();
        table.set("none", Backoff::Fixed(Duration::from_secs(1)));
        assert_eq!(table.wait("none", 1), Duration::from_secs(1));
    }

    #[test]
    fn jitter_is_decided_by_its_seed_and_never_shortens_a_wait() {
        let mut table = BackoffTable::default();
        let plain = table.wait("fixed_short", 1);
        let waits: BTreeSet<Duration> = (0..100)
            .map(|n| table.wait_of("fixed_short", 1, &n.to_string()))
            .collect();
        assert!(waits.len() > 90, "{}", waits.len());
        assert!(
            waits
                .iter()
                .all(|wait| *wait >= plain && *wait <= plain * 11 / 10)
        );
        let again = table.wait_of("fixed_short", 1, "7");
        assert_eq!(table.wait_of("fixed_short", 1, "7"), again);
        assert_eq!(table.wait_of("none", 1, "7"), Duration::ZERO);
        table.set_jitter(0);
        assert_eq!(table.wait_of("fixed_short", 1, "7"), plain);
        table.set("none", Backoff::Fixed(Duration::MAX));
        table.set_jitter(100);
        assert!(table.wait_of("none", 1, "7") >= Duration::MAX / 2);
    }

    #[test]
    fn time_ends_where_it_must() {
        let now: Timestamp = "2026-03-05T10:00:00Z".parse().unwrap();
        assert_eq!(retry_at(now, Duration::ZERO), now);
        assert_eq!(retry_at(now, Duration::MAX), Timestamp::MAX);
    }
}
