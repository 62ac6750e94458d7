//! The whole chain.

use premath_kernel::turn::{CallSpec, JoinClosed};

fn change(spec: CallSpec) -> Option<JoinClosed> {
    let requests = spec.requests().ok()?;
    requests.results().ok()?.tool_use().ok()?.join().ok()
}

fn main() {
    let _ = change;
}
