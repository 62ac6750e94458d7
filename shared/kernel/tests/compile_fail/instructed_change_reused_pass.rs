//! Each change has a right of its own.

use premath_kernel::authority::InstructedChange;

fn write(_: InstructedChange) {}

fn twice(first: InstructedChange, second: InstructedChange) {
    write(first);
    write(second);
}

fn main() {
    let _ = twice;
}
