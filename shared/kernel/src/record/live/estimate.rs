//! When a batch will have done its work, by how fast it went.

use super::LiveBatch;
use std::time::Duration;

/// The fewest finished issues that give a pace.
const FINISHED_LEAST: u64 = 3;

/// The pace of a batch, and what follows from it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Closed issues an hour; unknown before the first one.
    pub closed_per_hour: Option<f64>,
    /// Issues that the batch can still work on, those that run with them.
    pub remaining: Option<u64>,
    /// How long they take at this pace; unknown where few issues are over, or
    /// lanes wait.
    pub time_left: Option<Duration>,
}

/// Estimates by what a batch did in the time that it ran.
pub fn estimate(batch: &LiveBatch, ran: Duration) -> Estimate {
    let hours = ran.as_secs_f64() / 3600.0;
    let per_hour = |count: u64| (count > 0 && hours > 0.0).then(|| to_float(count) / hours);
    let finished = batch.totals.closed + batch.totals.given_up;
    let runs = batch
        .lanes
        .iter()
        .filter(|lane| lane.step.is_some())
        .count() as u64;
    let remaining = batch.queue.as_ref().map(|queue| queue.workable() + runs);
    let pace = per_hour(finished).filter(|_| finished >= FINISHED_LEAST);
    let is_steady = batch.pauses.is_empty();
    let time_left = match (remaining, pace) {
        (Some(remaining), Some(pace)) if is_steady => {
            Duration::try_from_secs_f64(to_float(remaining) / pace * 3600.0).ok()
        }
        _ => None,
    };
    Estimate {
        closed_per_hour: per_hour(batch.totals.closed),
        remaining,
        time_left,
    }
}

fn to_float(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
mod tests {
    use super::super::{LiveQueue, LiveTotals, PauseEnd, PauseKind};
    use super::*;
    use crate::json::stamp::Stamp;
    use crate::record::trajectory::BatchHolder;

    fn batch(closed: u64, ready: u64) -> LiveBatch {
        let holder = BatchHolder {
            host: "h".into(),
            boot_id: "b".into(),
            pid: 1,
            started: 7,
            pid_ns: None,
        };
        let at = Stamp::parse("2026-03-05T10:00:00Z").unwrap();
        let mut live = LiveBatch::new("hb1_a".into(), holder, at, 0);
        live.totals = LiveTotals {
            closed,
            ..LiveTotals::default()
        };
        live.queue = Some(LiveQueue {
            ready,
            ..LiveQueue::default()
        });
        live
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn the_rest_takes_as_long_as_its_pace_says() {
        let found = estimate(&batch(4, 8), HOUR);
        assert_eq!(found.closed_per_hour, Some(4.0));
        assert_eq!(
            (found.remaining, found.time_left),
            (Some(8), Some(2 * HOUR))
        );
    }

    #[test]
    fn what_is_not_known_is_unknown_and_not_zero() {
        let few = estimate(&batch(2, 8), HOUR);
        assert_eq!((few.closed_per_hour, few.time_left), (Some(2.0), None));
        assert_eq!(estimate(&batch(0, 8), HOUR).closed_per_hour, None);
        let mut uncounted = batch(9, 8);
        uncounted.queue = None;
        let found = estimate(&uncounted, HOUR);
        assert_eq!((found.remaining, found.time_left), (None, None));
        let mut parked = batch(9, 8);
        parked.pause(PauseKind::Provider, "claude", Some(PauseEnd(None)));
        assert_eq!(estimate(&parked, HOUR).time_left, None);
    }
}
