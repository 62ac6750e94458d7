//! What work uses up, and what it may (`agents.md`, "Supervision").

use std::fmt;
use std::time::Duration;

/// What was used, as far as it is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens, read and written.
    pub tokens: Option<u64>,
    /// Billionths of a dollar.
    pub cost_nano_usd: Option<u64>,
}

impl Spent {
    /// Returns the sum; what only one of the two tells counts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (one, None) | (None, one) => one,
        };
        Self {
            tokens: sum(self.tokens, other.tokens),
            cost_nano_usd: sum(self.cost_nano_usd, other.cost_nano_usd),
        }
    }
}

impl fmt::Display for Spent {
    /// Writes what is reported, as in `1200 tokens, 0.35 USD`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tokens = self.tokens.map(|tokens| format!("{tokens} tokens"));
        let money = self.cost_nano_usd.map(|nano| usd(nano) + " USD");
        let parts: Vec<String> = tokens.into_iter().chain(money).collect();
        if parts.is_empty() {
            return f.write_str("nothing reported");
        }
        f.write_str(&parts.join(", "))
    }
}

/// What may be used; what is absent has no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Tokens, read and written.
    pub tokens: Option<u64>,
    /// Billionths of a dollar.
    pub cost_nano_usd: Option<u64>,
    /// Time, from claims to rows.
    pub time: Option<Duration>,
}

impl Budget {
    /// Returns whether a bound is reached.
    pub fn is_used_up(&self, spent: Spent, time: Duration) -> bool {
        let reached = |used: Option<u64>, bound: Option<u64>| {
            bound.is_some_and(|bound| used.unwrap_or(0) >= bound)
        };
        reached(spent.tokens, self.tokens)
            || reached(spent.cost_nano_usd, self.cost_nano_usd)
            || self.time.is_some_and(|bound| time >= bound)
    }

    /// Returns what is left of each bound.
    #[must_use]
    pub fn left(&self, spent: Spent, time: Duration) -> Self {
        let left = |bound: Option<u64>, used: Option<u64>| {
            bound.map(|bound| bound.saturating_sub(used.unwrap_or(0)))
        };
        Self {
            tokens: left(self.tokens, spent.tokens),
            cost_nano_usd: left(self.cost_nano_usd, spent.cost_nano_usd),
            time: self.time.map(|bound| bound.saturating_sub(time)),
        }
    }

    /// Returns what was used of each bound, as in `1200 of 1000 tokens, 90 s of 60 s`.
    pub fn describe(&self, spent: Spent, time: Duration) -> String {
        let mut parts = Vec::new();
        if let Some(bound) = self.tokens {
            parts.push(format!("{} of {bound} tokens", spent.tokens.unwrap_or(0)));
        }
        if let Some(bound) = self.cost_nano_usd {
            let used = usd(spent.cost_nano_usd.unwrap_or(0));
            parts.push(format!("{used} of {} USD", usd(bound)));
        }
        if let Some(bound) = self.time {
            parts.push(format!("{} of {}", shown(time), shown(bound)));
        }
        parts.join(", ")
    }
}

/// Writes a duration in seconds, a short one in milliseconds.
fn shown(duration: Duration) -> String {
    if duration < Duration::from_secs(10) {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{} s", duration.as_secs())
    }
}

/// A text is not a sum of money.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid amount `{0}`: expected dollars, for example 25 or 0.50")]
pub struct NoSum(pub String);

/// Reads a sum in dollars, with nine digits after the point at most, as
/// billionths.
///
/// # Errors
///
/// [`NoSum`].
pub fn nano_usd(text: &str) -> Result<u64, NoSum> {
    let no_sum = || NoSum(text.to_owned());
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > 9 {
        return Err(no_sum());
    }
    let whole: u64 = whole.parse().map_err(|_| no_sum())?;
    let part: u64 = format!("{part:0<9}").parse().map_err(|_| no_sum())?;
    whole
        .checked_mul(1_000_000_000)
        .and_then(|nano| nano.checked_add(part))
        .ok_or_else(no_sum)
}

/// Writes billionths of a dollar with two digits after the point, or as many
/// more as a small sum needs.
pub fn usd(nano: u64) -> String {
    let (whole, part) = (nano / 1_000_000_000, nano % 1_000_000_000);
    let digits = format!("{part:09}");
    let digits = digits.trim_end_matches('0');
    let shown = if whole > 0 { 2 } else { 9 };
    let digits = &digits[..digits.len().min(shown)];
    format!("{whole}.{digits:0<2}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_sum_is_read_and_shown_as_people_write_it() {
        for (text, nano, shown) in [
            ("25", 25_000_000_000, "25.00"),
            ("0.5", 500_000_000, "0.50"),
            ("0.000000001", 1, "0.000000001"),
            ("12.349", 12_349_000_000, "12.34"),
            ("0", 0, "0.00"),
        ] {
            assert_eq!(nano_usd(text), Ok(nano), "{text}");
            assert_eq!(usd(nano), shown, "{text}");
        }
        for text in ["", ".5", "5.", "-1", "1e3", "0.0000000001", "99999999999"] {
            assert_eq!(nano_usd(text), Err(NoSum(text.into())));
        }
    }

    #[test]
    fn a_budget_is_used_up_when_a_bound_is_reached() {
        let budget = Budget {
            tokens: Some(100),
            cost_nano_usd: Some(1_000_000_000),
            time: Some(Duration::from_secs(60)),
        };
        for (tokens, cost, time, expected) in [
            (Some(99), Some(999_999_999), 59, false),
            (Some(100), None, 0, true),
            (None, Some(1_000_000_000), 0, true),
            (None, None, 60, true),
            (None, None, 0, false),
        ] {
            let spent = Spent {
                tokens,
                cost_nano_usd: cost,
            };
            let time = Duration::from_secs(time);
            assert_eq!(budget.is_used_up(spent, time), expected, "{spent:?}");
            let none = Budget::default();
            assert!(!none.is_used_up(spent, time));
            assert_eq!(none.describe(spent, time), "");
        }
        let spent = Spent {
            tokens: Some(120),
            cost_nano_usd: Some(250_000_000),
        };
        let time = Duration::from_secs(6);
        assert_eq!(
            budget.describe(spent, time),
            "120 of 100 tokens, 0.25 of 1.00 USD, 6000 ms of 60 s"
        );
        let left = budget.left(spent, time);
        assert_eq!(
            (left.tokens, left.time),
            (Some(0), Some(Duration::from_secs(54)))
        );
        assert_eq!(left.cost_nano_usd, Some(750_000_000));
        assert_eq!(spent.to_string(), "120 tokens, 0.25 USD");
        assert_eq!(Spent::default().to_string(), "nothing reported");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,24}") {
            let _ = nano_usd(&text);
        }

        #[test]
        fn sums_add_up(a: Option<u32>, b: Option<u32>) {
            let of = |tokens: Option<u32>| Spent {
                tokens: tokens.map(u64::from),
                cost_nano_usd: None,
            };
            prop_assert_eq!(of(a).plus(of(b)), of(b).plus(of(a)));
            let sum = u64::from(a.unwrap_or(0)) + u64::from(b.unwrap_or(0));
            prop_assert_eq!(of(a).plus(of(b)).tokens.unwrap_or(0), sum);
        }
    }
}
