//! One landing at a time: in the order of arrival within a process, by a file
//! lock between processes.

use super::{Landing, LandingError};
use premath_memory::LandingLock;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The steps of this process that wait to land, the first one first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<VecDeque<String>>,
}

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A step's place in the queue; dropping it gives the place up, and the right
/// to land where it was there already.
#[derive(Debug)]
pub struct Turn<'a> {
    landing: &'a Landing,
    step_id: String,
    lock: Option<LandingLock>,
}

impl Landing {
    /// Puts a step at the end of the queue.
    pub fn queue(&self, step_id: &str) -> Turn<'_> {
        self.queue.waiting().push_back(step_id.to_owned());
        Turn {
            landing: self,
            step_id: step_id.to_owned(),
            lock: None,
        }
    }
}

impl Turn<'_> {
    /// Tells whether the step may land now; does not wait.
    pub fn has_come(&mut self) -> Result<bool, LandingError> {
        let is_first = self.landing.queue.waiting().front() == Some(&self.step_id);
        if is_first && self.lock.is_none() {
            let git = self.landing.open()?;
            self.lock = LandingLock::try_acquire(git.commondir())?;
        }
        Ok(self.lock.is_some())
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.lock = None;
        let mut waiting = self.landing.queue.waiting();
        waiting.retain(|step| *step != self.step_id);
    }
}
