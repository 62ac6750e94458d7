//! What is free on the machine, and since when it is too little.

use premath_kernel::policy::room::{Room, Shortage, available_memory};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Looks at the disk of a folder and at the memory of the machine.
pub(crate) fn look(folder: &Path) -> Room {
    let disk = rustix::fs::statvfs(folder)
        .ok()
        .map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    let memory = std::fs::read_to_string("/proc/meminfo");
    Room {
        disk,
        memory: memory.ok().and_then(|text| available_memory(&text)),
    }
}

/// Since when a batch of which nothing runs waits for room.
#[derive(Debug, Default)]
pub(super) struct RoomWait {
    since: Mutex<Option<Instant>>,
}

impl RoomWait {
    /// Returns for how long nothing ran because of a shortage.
    pub(super) fn lasts(&self, short: Option<&Shortage>, runs: bool) -> Duration {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        if short.is_none() || runs {
            *since = None;
            return Duration::ZERO;
        }
        since.get_or_insert_with(Instant::now).elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use premath_kernel::json::size::Size;

    #[test]
    fn the_room_of_this_machine_is_read() {
        let room = look(&std::env::temp_dir());
        assert!(room.disk.is_some());
        assert!(room.memory.is_some_and(|bytes| bytes > 0));
        assert_eq!(look(Path::new("/nowhere/at/all")).disk, None);
    }

    #[test]
    fn the_wait_begins_anew_whenever_something_runs() {
        let wait = RoomWait::default();
        let short = Shortage {
            of: "disk",
            free: Size(1),
            least: Size(2),
        };
        wait.lasts(Some(&short), false);
        assert!(wait.lasts(Some(&short), false) > Duration::ZERO);
        assert_eq!(wait.lasts(Some(&short), true), Duration::ZERO);
        wait.lasts(Some(&short), false);
        assert_eq!(wait.lasts(None, false), Duration::ZERO);
    }
}
