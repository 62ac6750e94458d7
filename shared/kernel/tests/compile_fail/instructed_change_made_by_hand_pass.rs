//! A surface mints the right to a change that its instruction claims.

use premath_kernel::authority::{InstructedChange, InstructedSurface};
use premath_kernel::authority::claim::ChangeMorphism;

fn right(surface: &InstructedSurface) -> Option<InstructedChange> {
    surface.authorise(ChangeMorphism::IssueUpdate, "me").ok()
}

fn main() {
    let _ = right;
}
