//! A right to close is none to block.

use premath_kernel::turn::{Block, Close, MutationReady};

fn block(_: MutationReady<Block>) {}

fn change(ready: MutationReady<Close>) {
    block(ready);
}

fn main() {
    let _ = change;
}
