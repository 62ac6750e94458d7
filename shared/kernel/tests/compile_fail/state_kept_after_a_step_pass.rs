//! One step from one state.

use premath_kernel::turn::{CallSpec, ToolRequests};

fn change(spec: CallSpec, other: CallSpec) -> (ToolRequests, ToolRequests) {
    (spec.requests(), other.requests())
}

fn main() {
    let _ = change;
}
