//! One step from one state.

use premath_kernel::turn::{CallSpec, ToolRequests};

fn change(spec: CallSpec, other: CallSpec) -> Option<(ToolRequests, ToolRequests)> {
    Some((spec.requests().ok()?, other.requests().ok()?))
}

fn main() {
    let _ = change;
}
