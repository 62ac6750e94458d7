//! Holes of sparse files: a step makes files of any size with them, and uses no
//! room. Their content is zeros, which the harness would read, and write out in each
//! checkout.

use super::Tree;
use rustix::fs::Stat;
use std::cell::Cell;

/// How many bytes of the files that one look reads may be holes.
const HOLES_MAX: u64 = 1 << 30;
/// Why a file is refused.
pub(super) const TOO_SPARSE: &str = "it has more holes than the files of a step may have";
/// Up to this size, a file has no holes: some file systems keep it without a block.
const SMALL: u64 = 4 << 10;
/// The unit of `st_blocks` (stat(3type)).
const BLOCK: u64 = 512;

/// How many bytes of holes a look may read, and how many it may read still.
#[derive(Debug)]
pub(super) struct Holes {
    most: u64,
    left: Cell<u64>,
}

impl Default for Holes {
    fn default() -> Self {
        Self {
            most: HOLES_MAX,
            left: Cell::new(HOLES_MAX),
        }
    }
}

impl Holes {
    /// Begins a look.
    pub(super) fn begin(&self) {
        self.left.set(self.most);
    }

    /// Counts the holes of a file; returns whether it may be read.
    pub(super) fn take(&self, stat: &Stat) -> bool {
        let left = self.left.get().checked_sub(holes_of(stat));
        if let Some(left) = left {
            self.left.set(left);
        }
        left.is_some()
    }
}

/// Returns how many bytes of a file take no room on the disk.
pub(super) fn holes_of(stat: &Stat) -> u64 {
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    if size <= SMALL {
        return 0;
    }
    let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
    size.saturating_sub(blocks.saturating_mul(BLOCK))
}

impl Tree {
    /// Bounds the holes of all files that a look reads, in bytes: at most as much as a
    /// step may use of the disk. More than 1 GiB is never read.
    pub fn bound_holes(&mut self, bytes: u64) {
        self.holes.most = bytes.min(HOLES_MAX);
    }
}
