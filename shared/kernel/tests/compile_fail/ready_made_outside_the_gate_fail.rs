//! Only the gate creates a right.

use premath_kernel::authority::StepIdentity;
use premath_kernel::turn::{Close, MutationReady, MutationWitness};

fn change(step: StepIdentity, witness: MutationWitness) -> MutationReady<Close> {
    MutationReady {
        step,
        witness,
        change: std::marker::PhantomData,
    }
}

fn main() {
    let _ = change;
}
