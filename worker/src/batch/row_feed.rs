//! The rows that a batch records, for the thread that exports them. A full queue
//! drops rows and counts them: recording never waits.

use premath_kernel::record::live::LiveTotals;
use premath_kernel::record::trajectory::StepRow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many rows wait at most.
const WAITING_MAX: usize = 1024;

/// A row that was recorded, and the totals with it where it changed them.
#[derive(Clone, Debug)]
pub struct RecordedRow {
    /// The row.
    pub row: Box<StepRow>,
    /// The totals of the batch.
    pub totals: Option<LiveTotals>,
}

#[derive(Debug)]
pub(super) struct RowFeed(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The end that a batch sends to; none where nothing is exported.
    send: Option<SyncSender<RecordedRow>>,
    /// The other end, until an exporter takes it.
    rows: Option<Receiver<RecordedRow>>,
    dropped: u64,
}

impl RowFeed {
    pub(super) fn new(is_on: bool) -> Self {
        let (send, rows) = is_on.then(|| sync_channel(WAITING_MAX)).unzip();
        Self(Mutex::new(State {
            send,
            rows,
            dropped: 0,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
