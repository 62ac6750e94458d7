//! What a command is charged with of the machine, against its bounds
//! (`isolation.md` 11).
//!
//! The supervisor reads the numbers; what they amount to is decided here. The
//! kernel of the system does not show everything that a process uses: memory
//! outlasts a mapping, and descriptors wait in sockets. Where a command has means
//! to hide something, it is charged with what the machine has lost since the
//! command began.

mod headroom;
mod lasting;
mod machine;

pub use headroom::{Headroom, ProcessTotals};
pub use lasting::Lasting;
pub use machine::MachineMemory;

/// What all processes of a command together may use; no bound where absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageBounds {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Processes at once.
    pub processes: Option<u64>,
}

impl UsageBounds {
    /// Returns whether a command may use more than its memory, where its processes
    /// show so many bytes and the machine lost so many: memory is counted
    /// closely only then.
    pub fn may_be_over(&self, resident: u64, lost: u64) -> bool {
        self.memory
            .is_some_and(|bound| resident.saturating_add(lost) > bound)
    }
}

/// The memory of a command's processes as they show it, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Memory of their own, mapped files, swap and page tables.
    pub own: u64,
    /// Mapped pages of shared memory.
    pub shared: u64,
    /// Open files without a name, in memory.
    pub unnamed: u64,
    /// The most that the system holds for their sockets, pipes and other open
    /// files. How full these are is not shown.
    pub buffers: u64,
    /// Whether they have means to hold shared memory that is not shown.
    pub hides: bool,
}

impl MemoryUse {
    /// Returns the bytes that the command is charged with, where the machine went
    /// from one state of its memory to another.
    pub fn charged(&self, best: MachineMemory, now: MachineMemory) -> u64 {
        let hidden = if self.hides { best.growth(now) } else { 0 };
        let seen = self
            .own
            .saturating_add(self.shared.max(self.unnamed).max(hidden));
        // No fuller than the buffers can be, and no more than the machine has lost
        // beside what is seen.
        let unseen = best.taken(now).saturating_sub(seen);
        seen.saturating_add(self.buffers.min(unseen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_memory_is_what_the_machine_lost() {
        let best = MachineMemory {
            available: 1_000,
            shared: 0,
        };
        let after = |growth, lost| MachineMemory {
            available: best.available - lost,
            shared: growth,
        };
        let mut memory = MemoryUse {
            own: 10,
            shared: 5,
            ..MemoryUse::default()
        };
        assert_eq!(memory.charged(best, after(100, 200)), 15);
        memory.unnamed = 30;
        assert_eq!(memory.charged(best, after(100, 200)), 40);
        memory.hides = true;
        assert_eq!(memory.charged(best, after(100, 200)), 110);
        memory.buffers = 50;
        assert_eq!(memory.charged(best, after(100, 200)), 160);
        assert_eq!(memory.charged(best, after(100, 120)), 120);
        assert_eq!(memory.charged(best, after(100, 0)), 110);
    }

    #[test]
    fn numbers_beyond_all_memory_are_charged_as_such() {
        let memory = MemoryUse {
            own: u64::MAX,
            shared: 1,
            ..MemoryUse::default()
        };
        let none = MachineMemory::default();
        assert_eq!(memory.charged(none, none), u64::MAX);
    }

    #[test]
    fn memory_is_counted_closely_where_both_numbers_are_above_the_bound() {
        let bounds = UsageBounds {
            memory: Some(100),
            processes: None,
        };
        assert!(!bounds.may_be_over(60, 40));
        assert!(bounds.may_be_over(60, 41));
        assert!(bounds.may_be_over(u64::MAX, 1));
        assert!(!UsageBounds::default().may_be_over(u64::MAX, u64::MAX));
    }
}
