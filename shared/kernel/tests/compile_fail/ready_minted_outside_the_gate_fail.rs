//! The gate's mint is its own.

use premath_kernel::turn::{Close, MutationBinding, MutationReady, Normalized};

fn change(turn: &Normalized, binding: &MutationBinding) -> MutationReady<Close> {
    MutationReady::mint(turn, binding)
}

fn main() {
    let _ = change;
}
