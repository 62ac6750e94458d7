//! What was refused stays what it was.

use premath_kernel::turn::{JoinClosed, ToolUse};

fn change(turn: ToolUse) -> JoinClosed {
    match turn.join() {
        Ok(joined) => joined,
        Err(refused) => refused.into_state(),
    }
}

fn main() {
    let _ = change;
}
