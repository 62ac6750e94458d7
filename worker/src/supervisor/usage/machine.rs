//! The memory of the whole machine.

use premath_kernel::policy::usage::MachineMemory;
use premath_platform::machine::Memory;

/// Reads it.
pub(super) fn memory_now() -> MachineMemory {
    memory_of(Memory::now())
}

fn memory_of(memory: Memory) -> MachineMemory {
    let available = memory.available.unwrap_or_default();
    MachineMemory {
        available: available.saturating_add(memory.swap.unwrap_or_default()),
        shared: memory.shared.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_swapped_out_is_available() {
        let read = memory_of(Memory {
            available: Some(5 << 10),
            swap: Some(2 << 10),
            shared: Some(3 << 10),
        });
        assert_eq!((read.available, read.shared), (7 << 10, 3 << 10));
        assert!(memory_now().available > 0);
    }
}
