//! How many issues are worked on at once, as far as a step knows of it: it
//! says when its work is done, and asks before its agent works again.

use std::fmt::Debug;

/// What bounds how many issues are worked on at once.
pub trait WorkBound: Debug {
    /// Says that the step's work is done: it needs its worktree only to land,
    /// and another step may begin elsewhere.
    fn work_done(&self);

    /// Asks to work again.
    fn ask_again(&self);

    /// Returns whether the step may work again, once it asked.
    fn may_work(&self) -> bool;
}

/// A lane without others: nothing begins while it lands.
#[derive(Clone, Copy, Debug)]
pub struct Unbounded;

impl WorkBound for Unbounded {
    fn work_done(&self) {}

    fn ask_again(&self) {}

    fn may_work(&self) -> bool {
        true
    }
}
