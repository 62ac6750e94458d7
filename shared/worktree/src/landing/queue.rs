//! One landing at a time: of the steps of a process that wait, in the order of
//! the ready frontier (priority, then id); by a file lock between processes.

use super::{Landing, LandingError};
use premath_memory::LandingLock;
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often the lock of other processes is tried. A wait for a file lock does
/// not end when the batch is asked to stop, so it is not waited for.
const TRY_LOCK: Duration = Duration::from_millis(10);

/// A step's place among those that wait: its issue's priority and id, then the
/// step itself.
type QueuePosition = (i64, String, String);

/// The steps of this process that wait to land, the first one first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<BTreeSet<QueuePosition>>,
    /// Notified when a step leaves.
    left: Condvar,
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

    /// Waits until the step may be able to land, for so long at most.
    ///
    /// A step that leaves the queue ends the wait. The first step waits for the
    /// lock of another process alone, which is tried again soon.
    pub fn wait(&self, most: Duration) {
        let queue = &self.landing.queue;
        let is_behind = |waiting: &mut BTreeSet<QueuePosition>| {
            waiting.first().is_some_and(|first| *first != self.place)
        };
        let mut waiting = queue.waiting();
        if is_behind(&mut waiting) {
            drop(queue.left.wait_timeout_while(waiting, most, is_behind));
        } else {
            drop(queue.left.wait_timeout(waiting, most.min(TRY_LOCK)));
        }
    }
}

impl Drop for LandingTicket<'_> {
    fn drop(&mut self) {
        self.lock = None;
        self.landing.queue.waiting().remove(&self.place);
        self.landing.queue.left.notify_all();
    }
}
