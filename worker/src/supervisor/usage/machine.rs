//! The memory of the whole machine.

use premath_platform::machine::Memory;

/// What the machine has of memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MachineMemory {
    /// What programs could still have, swap included.
    pub(super) available: u64,
    /// What files in memory and shared mappings take.
    pub(super) shared: u64,
}

impl MachineMemory {
    pub(super) fn now() -> Self {
        Self::of(Memory::now())
    }

    fn of(memory: Memory) -> Self {
        let available = memory.available.unwrap_or_default();
        Self {
            available: available.saturating_add(memory.swap.unwrap_or_default()),
            shared: memory.shared.unwrap_or_default(),
        }
    }

    /// Returns how many bytes another state has less of what is available, or more of
    /// what is shared.
    pub(super) fn lost(self, now: Self) -> u64 {
        let lost = self.available.saturating_sub(now.available);
        lost.max(now.shared.saturating_sub(self.shared))
    }

    /// Returns the better of two states, in each of the numbers. One that could not be
    /// read is all zero, and does not count.
    pub(super) fn at_best(self, other: Self) -> Self {
        let unread = Self::default();
        if self == unread || other == unread {
            return if self == unread { other } else { self };
        }
        Self {
            available: self.available.max(other.available),
            shared: self.shared.min(other.shared),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_read_and_the_best_are_kept() {
        let read = MachineMemory::of(Memory {
            available: Some(5 << 10),
            swap: Some(2 << 10),
            shared: Some(3 << 10),
        });
        assert_eq!((read.available, read.shared), (7 << 10, 3 << 10));
        let worse = MachineMemory {
            available: 1,
            shared: 4 << 10,
        };
        assert_eq!(read.at_best(worse), read);
        let unread = MachineMemory::default();
        assert_eq!(read.at_best(unread), read);
        assert_eq!(unread.at_best(read), read);
        assert_eq!(read.lost(worse), (7 << 10) - 1);
        let shared = MachineMemory {
            shared: 30 << 10,
            ..read
        };
        assert_eq!((read.lost(shared), shared.lost(read)), (27 << 10, 0));
        assert!(MachineMemory::now().available > 0);
    }
}
