//! A closed join is asked for it.

use premath_kernel::turn::{Close, JoinClosed, MutationBinding, MutationReady};

fn change(joined: JoinClosed, binding: &MutationBinding) -> Option<MutationReady<Close>> {
    joined.admit(binding).ok()
}

fn main() {
    let _ = change;
}
