//! Two rights for two changes.

use premath_kernel::turn::{Close, MutationReady};

fn write(_: MutationReady<Close>) {}

fn change(ready: MutationReady<Close>, other: MutationReady<Close>) {
    write(ready);
    write(other);
}

fn main() {
    let _ = change;
}
