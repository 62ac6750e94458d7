//! A right is good once: whoever writes the change uses it up.

use premath_kernel::turn::{Close, MutationReady};

fn write(_: MutationReady<Close>) {}

fn change(ready: MutationReady<Close>) {
    write(ready);
    write(ready);
}

fn main() {
    let _ = change;
}
