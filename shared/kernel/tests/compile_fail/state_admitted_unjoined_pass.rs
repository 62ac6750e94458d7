//! It is joined first.

use premath_kernel::turn::{Close, MutationBinding, MutationReady, ToolUse};

fn change(turn: ToolUse, binding: &MutationBinding) -> Option<MutationReady<Close>> {
    turn.join().ok()?.admit(binding).ok()
}

fn main() {
    let _ = change;
}
