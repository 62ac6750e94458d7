//! No file gives a right.

use premath_kernel::turn::{Close, MutationReady};
use serde::Deserialize as _;

fn write(_: MutationReady<Close>) {}

fn change(value: serde_json::Value) {
    write(MutationReady::<Close>::deserialize(value).unwrap());
}

fn main() {
    let _ = change;
}
