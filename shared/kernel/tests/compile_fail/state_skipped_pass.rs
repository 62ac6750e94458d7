//! The whole chain.

use premath_kernel::turn::{CallSpec, JoinClosed};

fn change(spec: CallSpec) -> Option<JoinClosed> {
    spec.requests().results().tool_use().join().ok()
}

fn main() {
    let _ = change;
}
