//! A right comes as an argument.

use premath_kernel::turn::{Close, MutationReady};

fn write(_: MutationReady<Close>) {}

fn change(ready: MutationReady<Close>) {
    write(ready);
}

fn main() {
    let _ = change;
}
