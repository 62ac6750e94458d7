//! A file gives a text, which is not a right.

use premath_kernel::turn::{Close, MutationReady};
use serde::Deserialize as _;

fn write(_: MutationReady<Close>) {}

fn change(value: serde_json::Value, ready: MutationReady<Close>) {
    let _ = String::deserialize(value).unwrap();
    write(ready);
}

fn main() {
    let _ = change;
}
