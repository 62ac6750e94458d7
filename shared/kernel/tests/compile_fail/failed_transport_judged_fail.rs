//! A failed transport does not reach a gate.

use premath_kernel::record::world::{DestinationGate, Judged, NotCarried};

fn judged(lost: NotCarried, gate: &DestinationGate<'_>) -> Judged {
    lost.judge(gate)
}

fn main() {
    let _ = judged;
}
