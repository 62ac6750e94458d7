//! How long a planned batch would take, and what it would cost, by earlier ones.

use crate::record::trajectory::{StepRow, action};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// What the attempts that closed issues took so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PastPace {
    durations_ms: Vec<u64>,
    costs_nano_usd: Vec<u64>,
}

impl PastPace {
    /// Reads what the rows of a trajectory say.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a StepRow>) -> Self {
        let mut pace = Self::default();
        let closes = |row: &&StepRow| row.action == action::WORKER_LOOP && row.succeeded();
        for row in rows.into_iter().filter(closes) {
            let took = row.started_at.as_ref().and_then(|began| {
                let took = row.finished_at.time().duration_since(began.time());
                Duration::try_from(took).ok()
            });
            if let Some(took) = took {
                let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
                let waited = row.waited_ms.unwrap_or(0);
                pace.durations_ms.push(took.saturating_sub(waited));
            }
            let cost = row.agent.as_ref().and_then(|agent| agent.cost_nano_usd);
            pace.costs_nano_usd.extend(cost);
        }
        pace
    }

    /// Estimates a batch that gives so many issues to its lanes in so many rounds.
    pub fn estimate(mut self, issues: u64, rounds: u64) -> PlanEstimate {
        let duration = median(&mut self.durations_ms);
        let cost = median(&mut self.costs_nano_usd);
        PlanEstimate {
            closed_attempts: self.durations_ms.len() as u64,
            issues,
            rounds,
            issue_ms: duration,
            time_ms: duration.map(|ms| ms.saturating_mul(rounds)),
            priced_attempts: self.costs_nano_usd.len() as u64,
            issue_cost_nano_usd: cost,
            cost_nano_usd: cost.map(|nano| nano.saturating_mul(issues)),
        }
    }
}

/// How long a batch would take, and what it would cost, if every attempt closed its
/// issue and took as long and cost as much as the median of earlier ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanEstimate {
    /// How many earlier attempts that closed their issue the time rests on.
    pub closed_attempts: u64,
    /// How many issues lanes would be given.
    pub issues: u64,
    /// In how many rounds of one issue a lane.
    pub rounds: u64,
    /// The median time of those attempts, in milliseconds; null where there is none.
    pub issue_ms: Option<u64>,
    /// The time of the batch, in milliseconds; null where it is unknown.
    pub time_ms: Option<u64>,
    /// How many earlier attempts that closed their issue reported their cost.
    pub priced_attempts: u64,
    /// Their median cost, in billionths of a dollar; null where there is none.
    pub issue_cost_nano_usd: Option<u64>,
    /// The cost of the batch, in billionths of a dollar; null where it is unknown.
    pub cost_nano_usd: Option<u64>,
}

/// Returns the middle of some figures; of two in the middle, the lower one.
fn median(figures: &mut [u64]) -> Option<u64> {
    figures.sort_unstable();
    let middle = figures.len().checked_sub(1)? / 2;
    figures.get(middle).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    /// A row of an attempt that took so many seconds, some of them waiting.
    fn row(result_class: &str, took: i64, waited_ms: Option<u64>) -> StepRow {
        let ended = Timestamp::from_second(1_000_000).unwrap();
        let began = Timestamp::from_second(1_000_000 - took).unwrap();
        let mut row = StepRow::new("s", action::WORKER_LOOP, result_class, ended);
        row.started_at = Some(began.into());
        row.waited_ms = waited_ms;
        row
    }

    #[test]
    fn the_median_of_what_closed_is_multiplied_by_the_rounds() {
        let rows = [
            row("accepted", 60, None),
            row("accepted", 600, Some(420_000)),
            row("accepted", 3_600, None),
            row("failed", 1, None),
        ];
        let found = PastPace::of(&rows).estimate(24, 3);
        assert_eq!(found.closed_attempts, 3);
        assert_eq!(found.issue_ms, Some(180_000));
        assert_eq!(found.time_ms, Some(540_000));
        assert_eq!((found.priced_attempts, found.cost_nano_usd), (0, None));
    }

    #[test]
    fn without_an_earlier_run_nothing_is_known() {
        let found = PastPace::of(&[row("failed", 5, None)]).estimate(2, 1);
        assert_eq!((found.time_ms, found.cost_nano_usd), (None, None));
    }
}
