//! What the lanes of a process share of the build state that verifications
//! begin with, and whether the last commit is yet to be verified without it.

use premath_kernel::record::event::TipCheck;
use premath_memory::WarmUse;
use premath_worktree::tree::Layer;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Build state of the operator's base, ready to be used.
#[derive(Debug)]
pub(crate) struct WarmState {
    /// The commit that it is of.
    pub(crate) base: String,
    /// The folder with its files.
    pub(crate) folder: PathBuf,
    /// The layer with the build state.
    pub(crate) layer: Layer,
    /// The cache folders at its top, which the work of a step begins with too.
    pub(crate) caches: Vec<String>,
    /// Keeps other harnesses from replacing it.
    pub(crate) _in_use: WarmUse,
}

/// What lanes share of it.
#[derive(Debug, Default)]
pub struct Warmth {
    /// What was found out about the build state; nothing where no lane asked.
    state: Mutex<Option<Option<Arc<WarmState>>>>,
    /// Whether work landed that was verified with it.
    has_landed: AtomicBool,
    /// How many lanes have not ended.
    lanes: AtomicUsize,
    tips: Mutex<Vec<TipCheck>>,
}

/// A lane that has not ended; dropping it is its end.
#[derive(Debug)]
pub struct Leaving<'a> {
    warmth: &'a Warmth,
    is_counted: bool,
}

impl Warmth {
    /// Locks what is known; one lane finds it out, and the others wait for it.
    pub(crate) fn state(&self) -> MutexGuard<'_, Option<Option<Arc<WarmState>>>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note_landed(&self) {
        self.has_landed.store(true, Ordering::Relaxed);
    }

    /// Returns whether the last commit is yet to be verified without build
    /// state.
    pub(crate) fn has_landed(&self) -> bool {
        self.has_landed.load(Ordering::Relaxed)
    }

    /// Says how many lanes there are, before the first of them begins.
    pub fn expect(&self, lanes: usize) {
        self.lanes.store(lanes, Ordering::SeqCst);
    }

    /// Says that there is one lane more, before it begins.
    pub fn expect_another(&self) {
        self.lanes.fetch_add(1, Ordering::SeqCst);
    }

    /// Begins a lane.
    pub fn enter(&self) -> Leaving<'_> {
        Leaving {
            warmth: self,
            is_counted: true,
        }
    }

    pub(crate) fn note_tip(&self, check: TipCheck) {
        let mut tips = self.tips.lock().unwrap_or_else(PoisonError::into_inner);
        tips.push(check);
    }

    /// Returns the outcomes of the verifications without build state.
    pub(crate) fn tips(&self) -> Vec<TipCheck> {
        let tips = self.tips.lock().unwrap_or_else(PoisonError::into_inner);
        tips.clone()
    }
}

impl Leaving<'_> {
    /// Says that the lane has no more work; returns whether no other has.
    pub fn is_last(mut self) -> bool {
        self.is_counted = false;
        self.warmth.lanes.fetch_sub(1, Ordering::SeqCst) == 1
    }
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if self.is_counted {
            self.warmth.lanes.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lane_is_known_whatever_the_others_did() {
        let warmth = Warmth::default();
        warmth.expect(3);
        let [one, two, three] = [(); 3].map(|()| warmth.enter());
        assert!(!one.is_last());
        drop(two);
        assert!(three.is_last());
    }
}
