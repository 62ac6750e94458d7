//! The rows that a batch records, for the thread that exports them. A full queue
//! drops rows and counts them: recording never waits.

use premath_kernel::json::id::WorkerName;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::record::live::LiveTotals;
use premath_kernel::record::timed_call::TimedCall;
use premath_kernel::record::trajectory::StepRow;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many rows wait at most.
const WAITING_MAX: usize = 1024;

/// The first start and the last end of each lane's rows.
pub type LaneTimes = BTreeMap<WorkerName, (Stamp, Stamp)>;

/// A row that was recorded, and the totals with it where it changed them.
#[derive(Clone, Debug)]
pub struct RecordedRow {
    /// The row.
    pub row: Box<StepRow>,
    /// The totals of the batch.
    pub totals: Option<LiveTotals>,
    /// The calls of the agent, as far as their times are known; read for the export.
    pub calls: Vec<TimedCall>,
    /// How many calls it had beside those.
    pub more_calls: u64,
}

impl RecordedRow {
    /// A row whose calls were not read yet.
    pub(super) fn of(row: StepRow, totals: Option<LiveTotals>) -> Self {
        Self {
            row: Box::new(row),
            totals,
            calls: Vec::new(),
            more_calls: 0,
        }
    }
}

#[derive(Debug)]
pub(super) struct RowFeed {
    state: Mutex<State>,
    /// When the lanes worked before the batch was cut.
    earlier_lanes: LaneTimes,
}

#[derive(Debug)]
struct State {
    /// The end that a batch sends to; none where nothing is exported.
    send: Option<SyncSender<RecordedRow>>,
    /// The other end, until an exporter takes it.
    rows: Option<Receiver<RecordedRow>>,
    dropped: u64,
}

impl RowFeed {
    pub(super) fn new(is_on: bool, earlier_lanes: LaneTimes) -> Self {
        let (send, rows) = is_on.then(|| sync_channel(WAITING_MAX)).unzip();
        let state = Mutex::new(State {
            send,
            rows,
            dropped: 0,
        });
        Self {
            state,
            earlier_lanes,
        }
    }

    pub(super) const fn earlier_lanes(&self) -> &LaneTimes {
        &self.earlier_lanes
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_on(&self) -> bool {
        self.state().send.is_some()
    }

    pub(super) fn send(&self, row: RecordedRow) {
        let mut state = self.state();
        if let Some(send) = &state.send
            && send.try_send(row).is_err()
        {
            state.dropped += 1;
        }
    }

    /// Returns the rows, to one caller.
    pub(super) fn rows(&self) -> Option<Receiver<RecordedRow>> {
        self.state().rows.take()
    }

    /// Ends the rows; returns how many were dropped.
    pub(super) fn close(&self) -> u64 {
        let mut state = self.state();
        state.send = None;
        state.rows = None;
        state.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: usize) -> RecordedRow {
        let at = "2026-03-05T10:00:00Z".parse().unwrap();
        let id = format!("s{number}");
        RecordedRow::of(StepRow::new(id.as_str(), "a", "completed", at), None)
    }

    #[test]
    fn a_full_queue_drops_the_newest_rows_and_counts_them() {
        let feed = RowFeed::new(true, LaneTimes::new());
        let rows = feed.rows().unwrap();
        assert!(feed.rows().is_none());
        for number in 0..WAITING_MAX + 5 {
            feed.send(row(number));
        }
        assert_eq!(feed.close(), 5);
        let kept: Vec<_> = rows.iter().map(|kept| kept.row.step_id.clone()).collect();
        assert_eq!(kept.len(), WAITING_MAX);
        assert_eq!(*kept[WAITING_MAX - 1], *format!("s{}", WAITING_MAX - 1));
        // What comes after the end is not exported and not missed.
        feed.send(row(0));
        assert_eq!(feed.close(), 5);
    }
}
