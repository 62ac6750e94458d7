//! What this host is called, and its clock.

use nix::time::{ClockId, clock_gettime};
use std::fs;
use std::time::Duration;

/// Returns the milliseconds since the host started, with those in which it slept.
pub fn since_boot_ms() -> u64 {
    // Linux has this clock since 2.6.39.
    let boot = clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from);
    u64::try_from(boot.as_millis()).unwrap_or(u64::MAX)
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
