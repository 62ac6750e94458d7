//! The right to a change cannot be made without an instruction's claim.

use premath_kernel::authority::InstructedChange;
use premath_kernel::authority::claim::ChangeMorphism;

fn right(mine: InstructedChange) -> InstructedChange {
    InstructedChange {
        kind: ChangeMorphism::IssueUpdate,
        ..mine
    }
}

fn main() {
    let _ = right;
}
