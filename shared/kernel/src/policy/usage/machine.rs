//! The memory of the whole machine.

/// What the machine has of memory, in bytes; all zero where it could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineMemory {
    /// What programs could still have, swap included.
    pub available: u64,
    /// What files in memory and shared mappings take.
    pub shared: u64,
}

impl MachineMemory {
    /// Returns how many bytes of what is available another state has less.
    pub(super) const fn taken(self, now: Self) -> u64 {
        self.available.saturating_sub(now.available)
    }

    /// Returns how many bytes of what is shared another state has more.
    pub(super) const fn growth(self, now: Self) -> u64 {
        now.shared.saturating_sub(self.shared)
    }

    /// Returns the larger of the two. What is shared counts by itself: what other
    /// programs give up of theirs would make up for it in what is available.
    pub fn lost(self, now: Self) -> u64 {
        self.taken(now).max(self.growth(now))
    }

    /// Returns the better of two states, in each of the numbers. One that could not be
    /// read does not count.
    #[must_use]
    pub fn at_best(self, other: Self) -> Self {
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
    fn the_best_of_each_number_is_kept() {
        let read = MachineMemory {
            available: 7_000,
            shared: 3_000,
        };
        let worse = MachineMemory {
            available: 1,
            shared: 4_000,
        };
        assert_eq!(read.at_best(worse), read);
        let unread = MachineMemory::default();
        assert_eq!(read.at_best(unread), read);
        assert_eq!(unread.at_best(read), read);
        assert_eq!(read.lost(worse), 6_999);
        let shared = MachineMemory {
            shared: 30_000,
            ..read
        };
        assert_eq!((read.lost(shared), shared.lost(read)), (27_000, 0));
    }
}
