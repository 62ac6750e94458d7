//! A transport that failed is recorded.

use premath_kernel::record::world::{Crossing, NotCarried};

fn recorded(lost: NotCarried) -> Crossing {
    lost.into()
}

fn main() {
    let _ = recorded;
}
