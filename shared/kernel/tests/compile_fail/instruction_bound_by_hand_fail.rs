//! An instruction cannot be bound to less than a batch binds it to.

use premath_kernel::authority::MutationMode;
use premath_kernel::authority::instruction::{Instruction, InstructionPolicy};

fn mode(instruction: &Instruction, policy: &InstructionPolicy) -> Option<MutationMode> {
    let link = instruction.bind(policy, &[]).ok()?;
    Some(MutationMode::InstructionLinked(link))
}

fn main() {
    let _ = mode;
}
