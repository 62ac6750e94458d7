//! What was carried is judged.

use premath_kernel::record::world::{Carried, DestinationGate, Judged};

fn judged(carried: Carried, gate: &DestinationGate<'_>) -> Judged {
    carried.judge(gate)
}

fn main() {
    let _ = judged;
}
