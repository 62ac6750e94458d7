//! What this host is called, and its clock.

use rustix::time::{ClockId, clock_gettime};
use std::fs;

/// Returns the milliseconds since the host started, with those in which it slept.
pub fn since_boot_ms() -> u64 {
    let boot = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(boot.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(boot.tv_nsec).unwrap_or(0);
    seconds * 1_000 + nanos / 1_000_000
}

/// Returns the host's name.
pub fn name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// Returns what identifies this start of the host; `None` where it cannot be
/// read.
pub fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Returns what identifies the namespace in which this process has its number;
/// `None` where it cannot be read.
pub fn process_namespace() -> Option<String> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(link.to_string_lossy().into_owned())
}
