//! A step uses the state before it up.

use premath_kernel::turn::{CallSpec, ToolRequests};

fn change(spec: CallSpec) -> Option<(ToolRequests, ToolRequests)> {
    Some((spec.requests().ok()?, spec.requests().ok()?))
}

fn main() {
    let _ = change;
}
