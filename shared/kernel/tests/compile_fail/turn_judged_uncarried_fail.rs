//! Nothing is judged that was not carried.

use premath_kernel::record::world::{DestinationGate, Judged, WorkContext};

fn judged(context: WorkContext, gate: &DestinationGate<'_>) -> Judged {
    context.judge(gate)
}

fn main() {
    let _ = judged;
}
