//! A mode asks for the claims of what every batch does.

use premath_kernel::authority::MutationMode;
use premath_kernel::authority::instruction::{Instruction, InstructionPolicy};

fn mode(instruction: &Instruction, policy: &InstructionPolicy) -> Option<MutationMode> {
    MutationMode::instruction_linked(instruction, policy).ok()
}

fn main() {
    let _ = mode;
}
