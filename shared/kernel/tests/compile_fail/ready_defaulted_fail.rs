//! There is no right by default.

use premath_kernel::turn::{Close, MutationReady};

fn write(_: MutationReady<Close>) {}

fn change() {
    write(MutationReady::<Close>::default());
}

fn main() {
    let _ = change;
}
