//! A right to block is one.

use premath_kernel::turn::{Block, MutationReady};

fn block(_: MutationReady<Block>) {}

fn change(ready: MutationReady<Block>) {
    block(ready);
}

fn main() {
    let _ = change;
}
