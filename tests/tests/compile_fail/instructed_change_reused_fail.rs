//! The right to a change is used up by it.

use premath_kernel::authority::InstructedChange;
use premath_kernel::issue::lease::LeaseKey;
use premath_memory::{IssueChange, IssueMemory};

fn twice(memory: &IssueMemory, right: InstructedChange, change: IssueChange) {
    let _ = memory.instruct(right, change.clone(), LeaseKey::default());
    let _ = memory.instruct(right, change, LeaseKey::default());
}

fn main() {
    let _ = twice;
}
