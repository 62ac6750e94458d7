//! The verification that work which rides rests on: that of the work behind it,
//! whose tree contains it.

use premath_evidence::ShellCall;
use premath_kernel::json::id::StepId;
use premath_worktree::tree::TreeState;

/// A verification that passed, for the work in its tree that rides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedPass {
    /// The step whose verification it is.
    pub(crate) step_id: StepId,
    /// The commit and the tree that passed.
    pub(crate) state: TreeState,
    /// The command as the evidence has it, with its witness.
    pub(crate) call: ShellCall,
}
