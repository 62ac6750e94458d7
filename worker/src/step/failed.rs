//! A step that failed, at whichever stage.

use super::log::StepLog;
use super::step_failure::StepFailure;
use super::work::WorkDone;
use premath_worktree::tree::Base;

/// A step that failed, with what is needed to stop.
#[derive(Debug)]
#[must_use = "a step that failed is stopped"]
pub(super) struct Failed {
    pub(super) log: StepLog,
    /// Where it began; none where it did not get that far.
    pub(super) base: Option<Base>,
    pub(super) work: WorkDone,
    pub(super) failure: StepFailure,
}
