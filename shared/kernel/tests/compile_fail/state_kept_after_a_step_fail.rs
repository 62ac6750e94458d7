//! A step uses the state before it up.

use premath_kernel::turn::{CallSpec, ToolRequests};

fn change(spec: CallSpec) -> (ToolRequests, ToolRequests) {
    (spec.requests(), spec.requests())
}

fn main() {
    let _ = change;
}
