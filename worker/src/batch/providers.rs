//! Which provider each lane of a batch works with.

use premath_kernel::policy::provider::{Answer, ProviderChange, ProviderDesk, Seat};
use premath_memory::clock;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Which provider each lane works with now.
#[derive(Debug)]
pub struct Providers {
    desk: Mutex<ProviderDesk>,
}

impl Providers {
    pub(super) const fn new(desk: ProviderDesk) -> Self {
        Self {
            desk: Mutex::new(desk),
        }
    }

    fn desk(&self) -> MutexGuard<'_, ProviderDesk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the provider that a worker's lane uses now: its own, or a
    /// fallback while its own is parked; `None` where the lane waits.
    pub fn of(&self, worker: &str) -> Option<String> {
        let desk = self.desk();
        desk.of(worker, clock::now().wall).map(str::to_owned)
    }

    pub(super) fn seats(&self, workers: &[&str]) -> Vec<Option<Seat>> {
        self.desk().seats(workers, clock::now().wall)
    }

    pub(super) fn next(&self, worker: &str) -> Option<jiff::Timestamp> {
        self.desk().next(worker)
    }

    pub(super) fn take(&self, worker: &str, seat: Seat) {
        self.desk().take(worker, seat);
    }

    pub(super) fn ended(&self, worker: &str, answer: Answer) -> Option<ProviderChange> {
        self.desk().ended(worker, answer, clock::now().wall)
    }
}
