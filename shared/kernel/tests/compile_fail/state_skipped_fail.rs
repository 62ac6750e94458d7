//! A turn is not joined before its results and uses are in.

use premath_kernel::turn::{CallSpec, JoinClosed};

fn change(spec: CallSpec) -> Option<JoinClosed> {
    let requests = spec.requests().ok()?;
    requests.join().ok()
}

fn main() {
    let _ = change;
}
