//! What is free on the machine.

use premath_kernel::policy::room::Room;
use premath_platform::machine::Memory;
use std::path::Path;

/// Looks at the disk of a folder and at the memory of the machine.
pub(crate) fn look(folder: &Path) -> Room {
    let disk = rustix::fs::statvfs(folder)
        .ok()
        .map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    Room {
        disk,
        memory: Memory::now().available,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_of_this_machine_is_read() {
        let room = look(&std::env::temp_dir());
        assert!(room.disk.is_some());
        assert!(room.memory.is_some_and(|bytes| bytes > 0));
        assert_eq!(look(Path::new("/nowhere/at/all")).disk, None);
    }
}
