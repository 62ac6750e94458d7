//! One landing at a time: of the steps of a process that wait, in the order of
//! the ready frontier (priority, then id); by a file lock between processes.

use super::{Landing, LandingError};
use premath_memory::LandingLock;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A step's place among those that wait: its issue's priority and id, then the
/// step itself.
type QueuePosition = (i64, String, String);

/// The steps of this process that wait to land, the first one first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<BTreeSet<QueuePosition>>,
}

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, BTreeSet<QueuePosition>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A step's place in the queue; dropping it gives the place up, and the right
/// to land where it was there already.
#[derive(Debug)]
pub struct LandingTicket<'a> {
    landing: &'a Landing,
    place: QueuePosition,
    lock: Option<LandingLock>,
}

impl Landing {
    /// Puts a step into the queue.
    pub fn queue(&self, priority: i64, issue_id: &str, step_id: &str) -> LandingTicket<'_> {
        let place = (priority, issue_id.to_owned(), step_id.to_owned());
        self.queue.waiting().insert(place.clone());
        LandingTicket {
            landing: self,
            place,
            lock: None,
        }
    }
}

impl LandingTicket<'_> {
    /// Returns whether the step may land now; does not wait.
    pub fn has_come(&mut self) -> Result<bool, LandingError> {
        let is_first = self.landing.queue.waiting().first() == Some(&self.place);
        if is_first && self.lock.is_none() {
            let git = self.landing.open()?;
            self.lock = LandingLock::try_acquire(git.commondir())?;
        }
        Ok(self.lock.is_some())
    }
}

impl Drop for LandingTicket<'_> {
    fn drop(&mut self) {
        self.lock = None;
        self.landing.queue.waiting().remove(&self.place);
    }
}
