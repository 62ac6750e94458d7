//! A right is used once: writing the change consumes it.

use premath_kernel::turn::{Close, MutationReady};

fn write(_: MutationReady<Close>) {}

fn change(ready: MutationReady<Close>) {
    write(ready);
    write(ready);
}

fn main() {
    let _ = change;
}
