//! Each change has a right of its own.

use premath_kernel::authority::InstructedChange;
use premath_kernel::issue::lease::LeaseKey;
use premath_memory::{IssueChange, IssueMemory};

fn twice(memory: &IssueMemory, rights: [InstructedChange; 2], change: IssueChange) {
    let [first, second] = rights;
    let _ = memory.instruct(first, change.clone(), LeaseKey::default());
    let _ = memory.instruct(second, change, LeaseKey::default());
}

fn main() {
    let _ = twice;
}
