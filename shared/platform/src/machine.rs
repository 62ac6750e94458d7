//! What the machine has left (proc_meminfo(5)), and what a file system is.

use std::fs;
use std::path::Path;

/// The memory of the machine, in bytes; `None` where the system does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// What programs could still have without swap.
    pub available: Option<u64>,
    /// What is free of swap.
    pub swap: Option<u64>,
    /// What files in memory and shared mappings take.
    pub shared: Option<u64>,
}

impl Memory {
    /// Reads the memory of the machine from `/proc/meminfo`.
    pub fn now() -> Self {
        Self::of(&fs::read_to_string("/proc/meminfo").unwrap_or_default())
    }

    fn of(text: &str) -> Self {
        Self {
            available: kibibytes(text, "MemAvailable:"),
            swap: kibibytes(text, "SwapFree:"),
            shared: kibibytes(text, "Shmem:"),
        }
    }
}

/// Returns how many processes and threads the machine has (proc_loadavg(5)); `None`
/// where the system does not say.
pub fn tasks() -> Option<u64> {
    tasks_of(&fs::read_to_string("/proc/loadavg").ok()?)
}

fn tasks_of(text: &str) -> Option<u64> {
    let (_, all) = text.split_whitespace().nth(3)?.split_once('/')?;
    // Zero is what a kernel says that counts none.
    all.parse().ok().filter(|all| *all > 0)
}

/// Returns the bytes of memory that the machine has.
pub fn total_memory() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit))
}

/// Returns the bytes that a line with a name reports in KiB.
pub fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut words = line.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    (words.next() == Some("kB")).then_some(())?;
    number.checked_mul(1_024)
}

/// Returns how many bytes of a folder's disk are free for its user; `None` where
/// that cannot be read.
pub fn free_disk(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    stat.f_bavail.checked_mul(stat.f_frsize)
}

/// Returns the kind of a network file system, on which the locks of other hosts
/// are not seen; `None` for a local disk, and where it cannot be read.
pub fn network_kind(path: &Path) -> Option<&'static str> {
    const KINDS: [(i64, &str); 7] = [
        (0x6969, "nfs"),
        (0x517B, "smb"),
        (0xFF53_4D42, "cifs"),
        (0xFE53_4D42, "smb2"),
        (0x0102_1997, "9p"),
        (0x00C3_6400, "ceph"),
        (0x5346_414F, "afs"),
    ];
    let stat = rustix::fs::statfs(path).ok()?;
    let found = stat.f_type as i64 & 0xFFFF_FFFF;
    let known = KINDS.iter().find(|(magic, _)| *magic == found);
    known.map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_and_threads_are_counted() {
        assert_eq!(tasks_of("0.20 0.18 0.12 1/80 11206\n"), Some(80));
        assert_eq!(tasks_of("0.20 0.18 0.12 1\n"), None);
        assert_eq!(tasks_of("0.20 0.18 0.12 0/0 0\n"), None);
        assert_eq!(tasks_of(""), None);
        assert!(tasks() > Some(1));
    }

    #[test]
    fn memory_is_read() {
        let text = "MemTotal:  9 kB\nMemAvailable:    5 kB\nShmem:  3 kB\nSwapFree: 2 kB\n";
        let read = Memory::of(text);
        let bytes = (read.available, read.swap, read.shared);
        assert_eq!(bytes, (Some(5 << 10), Some(2 << 10), Some(3 << 10)));
        for text in ["", "MemAvailable: x kB", "MemAvailable: 12"] {
            assert_eq!(Memory::of(text).available, None, "{text}");
        }
        assert!(Memory::now().available.is_some_and(|bytes| bytes > 0));
    }

    #[test]
    fn a_local_disk_is_not_a_network() {
        assert_eq!(network_kind(Path::new("/proc")), None);
        assert_eq!(network_kind(Path::new("/nowhere/at/all")), None);
        assert!(free_disk(Path::new("/")).is_some());
        assert_eq!(free_disk(Path::new("/nowhere/at/all")), None);
    }
}
