//! It may be asked again.

use premath_kernel::turn::{JoinClosed, ToolUse};

fn change(turn: ToolUse) -> Option<JoinClosed> {
    match turn.join() {
        Ok(joined) => Some(joined),
        Err(refused) => refused.into_state().join().ok(),
    }
}

fn main() {
    let _ = change;
}
