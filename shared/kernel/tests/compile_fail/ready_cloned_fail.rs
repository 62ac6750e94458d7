//! A right is good once: it cannot be copied.

use premath_kernel::turn::{Close, MutationReady};

fn write(_: MutationReady<Close>) {}

fn change(ready: MutationReady<Close>) {
    write(ready.clone());
    write(ready);
}

fn main() {
    let _ = change;
}
