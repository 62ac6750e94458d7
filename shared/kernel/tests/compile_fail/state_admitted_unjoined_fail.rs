//! A turn that is not joined is not asked for a right.

use premath_kernel::turn::{Close, MutationBinding, MutationReady, ToolUse};

fn change(turn: ToolUse, binding: &MutationBinding) -> Option<MutationReady<Close>> {
    turn.admit(binding).ok()
}

fn main() {
    let _ = change;
}
