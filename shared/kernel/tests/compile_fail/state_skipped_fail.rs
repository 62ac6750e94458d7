//! A turn is not joined before its results and uses are in.

use premath_kernel::turn::{CallSpec, JoinClosed};

fn change(spec: CallSpec) -> Option<JoinClosed> {
    spec.requests().join().ok()
}

fn main() {
    let _ = change;
}
