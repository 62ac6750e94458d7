//! The memory of the whole machine (proc_meminfo(5)).

use std::fs;

/// What the machine has of memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Machine {
    /// What programs could still have, swap included.
    pub(super) available: u64,
    /// What files in memory and shared mappings take.
    pub(super) shared: u64,
}

impl Machine {
    pub(super) fn now() -> Self {
        Self::of(&fs::read_to_string("/proc/meminfo").unwrap_or_default())
    }

    fn of(text: &str) -> Self {
        let value = |name: &str| kibibytes(text, name).unwrap_or_default();
        Self {
            available: value("MemAvailable:") + value("SwapFree:"),
            shared: value("Shmem:"),
        }
    }

    /// Returns the better of two states, in each of the numbers.
    pub(super) fn at_best(self, other: Self) -> Self {
        Self {
            available: self.available.max(other.available),
            shared: self.shared.min(other.shared),
        }
    }
}

/// Returns the bytes that a line with a name says in KiB.
pub(super) fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(number << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_read_and_the_best_are_kept() {
        let text = "MemTotal: 9 kB\nMemAvailable:    5 kB\nShmem:  3 kB\nSwapFree: 2 kB\n";
        let read = Machine::of(text);
        assert_eq!((read.available, read.shared), (7 << 10, 3 << 10));
        let worse = Machine {
            available: 1,
            shared: 4 << 10,
        };
        assert_eq!(read.at_best(worse), read);
        assert!(Machine::now().available > 0);
    }
}
