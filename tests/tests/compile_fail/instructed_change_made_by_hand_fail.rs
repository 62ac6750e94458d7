//! Nobody makes the right to a change that no instruction claims.

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
