//! What agents used, with how much of it is not known.

use super::attempt::AttemptView;
use crate::figures::{UNKNOWN, money, tokens};
use premath_kernel::record::trajectory::TokenCounts;
use schemars::JsonSchema;
use serde::Serialize;

/// What attempts used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageView {
    /// The tokens that were reported; null where no attempt reported any.
    pub tokens: Option<TokenCounts>,
    /// How many attempts reported none.
    pub tokens_unknown: u64,
    /// What was reported as its cost, in billionths of a dollar; null where no
    /// attempt reported any.
    pub cost_nano_usd: Option<u64>,
    /// How many attempts reported none.
    pub cost_unknown: u64,
}

impl UsageView {
    /// Adds what an attempt used.
    pub(super) fn add(&mut self, attempt: &AttemptView) {
        self.add_reported(attempt.tokens, attempt.cost_nano_usd);
    }

    /// Adds what an attempt reported.
    pub(super) fn add_reported(&mut self, used: Option<TokenCounts>, cost: Option<u64>) {
        match used {
            Some(new) => {
                let sum = self.tokens.get_or_insert_default();
                sum.input = sum.input.saturating_add(new.input);
                sum.cached = sum.cached.saturating_add(new.cached);
                sum.output = sum.output.saturating_add(new.output);
            }
            None => self.tokens_unknown += 1,
        }
        match cost {
            Some(new) => {
                let sum = self.cost_nano_usd.get_or_insert_default();
                *sum = sum.saturating_add(new);
            }
            None => self.cost_unknown += 1,
        }
    }

    /// Returns the sum over attempts.
    pub(super) fn of<'a>(attempts: impl IntoIterator<Item = &'a AttemptView>) -> Self {
        let mut sum = Self::default();
        for attempt in attempts {
            sum.add(attempt);
        }
        sum
    }

    /// Returns whether some attempts reported what others did not.
    pub(super) const fn is_partial(&self) -> bool {
        (self.tokens.is_some() && self.tokens_unknown > 0)
            || (self.cost_nano_usd.is_some() && self.cost_unknown > 0)
    }

    /// Returns the tokens for a column: `unknown`, or the sum with a `+` where some
    /// attempts reported none.
    pub(super) fn tokens_cell(&self) -> String {
        cell(
            self.tokens.map(|sum| tokens(sum.total())),
            self.tokens_unknown,
        )
    }

    /// Returns the cost in dollars for a column, likewise.
    pub(super) fn cost_cell(&self) -> String {
        cell(self.cost_nano_usd.map(money), self.cost_unknown)
    }

    /// Returns both in a sentence.
    pub(super) fn sentence(&self) -> String {
        let missing = |count: u64| match count {
            0 => String::new(),
            1 => " (1 attempt reported none)".to_owned(),
            count => format!(" ({count} attempts reported none)"),
        };
        let read = match self.tokens {
            Some(sum) => format!(
                "{} tokens: {} read, {} of them cached, {} written{}",
                tokens(sum.total()),
                tokens(sum.input),
                tokens(sum.cached),
                tokens(sum.output),
                missing(self.tokens_unknown)
            ),
            None => format!("tokens {UNKNOWN}"),
        };
        let cost = match self.cost_nano_usd {
            Some(sum) => format!("{} USD{}", money(sum), missing(self.cost_unknown)),
            None => format!("cost {UNKNOWN}"),
        };
        format!("{read}; {cost}")
    }
}

fn cell(sum: Option<String>, unknown: u64) -> String {
    match (sum, unknown) {
        (Some(sum), 0) => sum,
        (Some(sum), _) => format!("{sum}+"),
        (None, _) => UNKNOWN.to_owned(),
    }
}
