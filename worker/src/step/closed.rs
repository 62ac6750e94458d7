//! A step whose issue is closed.

use super::log::StepLog;
use super::work::WorkDone;
use premath_worktree::tree::Base;

/// A step whose issue is closed.
#[derive(Debug)]
#[must_use = "a step whose issue is closed is stopped"]
pub(super) struct Closed {
    pub(super) log: StepLog,
    pub(super) base: Base,
    pub(super) work: WorkDone,
}
