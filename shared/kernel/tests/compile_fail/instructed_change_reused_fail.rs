//! The right to a change is used up by it.

use premath_kernel::authority::InstructedChange;

fn write(_: InstructedChange) {}

fn twice(right: InstructedChange) {
    write(right);
    write(right);
}

fn main() {
    let _ = twice;
}
