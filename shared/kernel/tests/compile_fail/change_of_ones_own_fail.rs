//! The kinds of change are the kernel's to name.

use premath_kernel::turn::MutationKind;

#[derive(Debug)]
enum Delete {}

impl MutationKind for Delete {
    const NAME: &'static str = "delete";
    const CLAIM: &'static str = "";
    const NEEDS_VERIFICATION: bool = false;
}

fn main() {}
