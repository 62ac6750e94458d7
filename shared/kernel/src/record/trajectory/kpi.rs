//! Throughput over the trajectory's worker rows (`contracts.md` 6).

use super::{StepRow, action};
use crate::json::stamp::Stamp;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::Duration;

/// The kind of a throughput document.
pub(crate) const KPI_KIND: &str = "premath.multithread.throughput.v1";

/// The window where none is given.
pub const KPI_WINDOW: Duration = Duration::from_secs(24 * 60 * 60);

/// How many rows a verdict needs.
const MIN_ROWS: usize = 3;

/// What the throughput reports about running several lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KpiDecision {
    /// 0.8 and above.
    Pass,
    /// From 0.4.
    Watch,
    /// Under 0.4.
    Rollback,
    /// Under three rows, or an empty window.
    InsufficientData,
}

/// The throughput of a window, `premath.multithread.throughput.v1`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Throughput {
    #[schemars(schema_with = "crate::json::schema::one")]
    schema: u8,
    #[schemars(extend("const" = KPI_KIND))]
    kpi_kind: &'static str,
    /// The window's length.
    pub window_seconds: u64,
    /// The window's begin; null without a row.
    pub window_start: Option<Stamp>,
    /// The window's end, which is the newest row's; null without a row.
    pub window_end: Option<Stamp>,
    /// Worker rows in the window, both ends included.
    pub row_count: usize,
    /// Worker rows that succeeded.
    pub completed_count: usize,
    /// Workers with a row in the window.
    pub active_workers: usize,
    /// Completed rows a day and worker.
    pub completed_per_worker_day: f64,
    /// Completed rows over rows.
    pub success_rate: f64,
    /// The product of the two.
    pub throughput: f64,
    /// The decision by the thresholds.
    pub decision: KpiDecision,
}

/// Returns the throughput of the window that ends at the newest worker row.
///
/// The thresholds are compared exactly, not in floating point. A worker is
/// `workerId` or, for foreign rows, what is before the issue in the step id;
/// rows that say neither count as one worker.
pub fn throughput<'a>(rows: impl IntoIterator<Item = &'a StepRow>, window: Duration) -> Throughput {
    let rows: Vec<&StepRow> = rows
        .into_iter()
        .filter(|row| row.action == action::WORKER_LOOP)
        .collect();
    let end = rows.iter().map(|row| row.finished_at.time()).max();
    let start = end.map(|end| before(end, window));
    let inside: Vec<&StepRow> = rows
        .into_iter()
        .filter(|row| start.is_some_and(|start| row.finished_at.time() >= start))
        .collect();
    let completed = inside.iter().filter(|row| row.succeeded()).count();
    let workers: BTreeSet<&str> = inside.iter().map(|row| worker_of(row)).collect();
    let divisor = workers.len().max(1);
    let days = window.as_secs_f64() / KPI_WINDOW.as_secs_f64();
    let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    let per_day = ratio(completed as f64, days * divisor as f64);
    let success_rate = ratio(completed as f64, inside.len() as f64);
    Throughput {
        schema: 1,
        kpi_kind: KPI_KIND,
        window_seconds: window.as_secs(),
        window_start: start.map(Stamp::at),
        window_end: end.map(Stamp::at),
        row_count: inside.len(),
        completed_count: completed,
        active_workers: workers.len(),
        completed_per_worker_day: per_day,
        success_rate,
        throughput: per_day * success_rate,
        decision: decide(inside.len(), completed, divisor, window),
    }
}

/// Compares `completed² · day / (window · workers · rows)` with the thresholds.
fn decide(rows: usize, completed: usize, workers: usize, window: Duration) -> KpiDecision {
    if rows < MIN_ROWS || window.is_zero() {
        return KpiDecision::InsufficientData;
    }
    let wide = |n: usize| n as u128;
    let value = wide(completed)
        .saturating_mul(wide(completed))
        .saturating_mul(KPI_WINDOW.as_nanos());
    let unit = window
        .as_nanos()
        .saturating_mul(wide(workers))
        .saturating_mul(wide(rows));
    let tenths = value.saturating_mul(10);
    if tenths >= unit.saturating_mul(8) {
        KpiDecision::Pass
    } else if tenths >= unit.saturating_mul(4) {
        KpiDecision::Watch
    } else {
        KpiDecision::Rollback
    }
}

fn before(end: Timestamp, window: Duration) -> Timestamp {
    SignedDuration::try_from(window)
        .ok()
        .and_then(|window| end.checked_sub(window).ok())
        .unwrap_or(Timestamp::MIN)
}

/// Returns a row's worker, empty where nothing says.
fn worker_of(row: &StepRow) -> &str {
    if let Some(worker) = &row.worker_id {
        return worker;
    }
    let Some(issue) = row.issue_id.as_deref() else {
        return "";
    };
    let separator = |c: char| matches!(c, '.' | '/' | ':' | '-' | '_');
    let bounded = |(at, _): &(usize, &str)| {
        let after = row.step_id.get(at + issue.len()..).unwrap_or_default();
        let head = row.step_id.get(..*at).unwrap_or_default();
        head.ends_with(separator) && (after.is_empty() || after.starts_with(separator))
    };
    row.step_id
        .match_indices(issue)
        .find(bounded)
        .and_then(|(at, _)| row.step_id.get(..at))
        .map(|head| head.trim_end_matches(separator))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 60 * 60;

    fn row(worker: Option<&str>, step_id: &str, result: &str, minute: i64) -> StepRow {
        let start: Timestamp = "2026-03-05T10:00:00Z".parse().unwrap();
        let at = start
            .checked_add(SignedDuration::from_mins(minute))
            .unwrap();
        StepRow {
            worker_id: worker.map(Into::into),
            issue_id: Some("bd-1".into()),
            ..StepRow::new(step_id, action::WORKER_LOOP, result, at)
        }
    }

    fn many(completed: usize, failed: usize, workers: usize) -> Vec<StepRow> {
        (0..completed + failed)
            .map(|n| {
                let result = if n < completed { "completed" } else { "failed" };
                row(Some(&format!("w{}", n % workers)), "s", result, 0)
            })
            .collect()
    }

    #[test]
    fn the_thresholds_are_exact() {
        for (completed, failed, workers, days, expected) in [
            (2, 0, 1, 1, KpiDecision::InsufficientData),
            (3, 0, 1, 1, KpiDecision::Pass),
            (4, 0, 1, 5, KpiDecision::Pass),  // exactly 0.8
            (8, 2, 8, 1, KpiDecision::Pass),  // exactly 0.8
            (4, 6, 4, 1, KpiDecision::Watch), // exactly 0.4
            (4, 7, 4, 1, KpiDecision::Rollback),
            (0, 3, 1, 1, KpiDecision::Rollback),
            (3, 0, 1, 0, KpiDecision::InsufficientData),
        ] {
            let window = Duration::from_secs(days * DAY);
            let found = throughput(&many(completed, failed, workers), window);
            assert_eq!(
                found.decision, expected,
                "{completed} {failed} {workers} {days}"
            );
            assert_eq!(found.active_workers, workers);
            assert!(found.throughput.is_finite());
        }
    }

    #[test]
    fn the_window_ends_at_the_newest_worker_row() {
        let mut rows: Vec<_> = [-60, 0, 30, 60]
            .map(|minute| row(Some("w"), "s", "completed", minute))
            .into();
        rows.push(StepRow::new(
            "x",
            action::BATCH_END,
            "completed",
            Timestamp::MAX,
        ));
        let found = throughput(&rows, Duration::from_secs(3600));
        assert_eq!((found.row_count, found.completed_count), (3, 3));
        assert_eq!(
            found.window_end.unwrap().as_str(),
            "2026-03-05T11:00:00.000000Z"
        );
        let empty = throughput(&[], KPI_WINDOW);
        assert_eq!(empty.decision, KpiDecision::InsufficientData);
        assert_eq!(throughput(&rows, Duration::MAX).row_count, 4);
    }

    #[test]
    fn foreign_rows_name_their_worker_in_the_step_id() {
        for (step_id, expected) in [
            ("worker.1.bd-1.3", "worker.1"),
            ("lane-2/bd-1", "lane-2"),
            ("w.bd-10.bd-1.1", "w.bd-10"),
            ("bd-1.1", ""),
            ("elsewhere", ""),
        ] {
            assert_eq!(
                worker_of(&row(None, step_id, "ok", 0)),
                expected,
                "{step_id}"
            );
        }
        assert_eq!(worker_of(&row(Some("w"), "x.bd-1", "ok", 0)), "w");
    }
}
