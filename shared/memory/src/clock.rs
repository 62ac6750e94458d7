//! The clocks and processes of this host, as the lease rules observe them.

use premath_kernel::issue::Holder;
use premath_kernel::issue::lease::{Life, Observation};
use premath_kernel::json::time::Moment;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::sync::OnceLock;

/// Reads the wall clock and CLOCK_BOOTTIME together.
pub fn now() -> Moment {
    let boot = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(boot.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(boot.tv_nsec).unwrap_or(0);
    Moment {
        wall: jiff::Timestamp::now(),
        boot_ms: seconds * 1_000 + nanos / 1_000_000,
    }
}

/// What this host and process are called.
#[derive(Debug)]
struct Host {
    name: Box<str>,
    boot_id: Box<str>,
    pid_ns: Option<Box<str>>,
}

fn host() -> &'static Host {
    static HOST: OnceLock<Host> = OnceLock::new();
    HOST.get_or_init(|| {
        let name = rustix::system::uname();
        Host {
            name: name.nodename().to_string_lossy().into(),
            // Without a boot id no holder is ever compared by process; time decides.
            boot_id: fs::read_to_string("/proc/sys/kernel/random/boot_id")
                .map(|id| id.trim().into())
                .unwrap_or_default(),
            pid_ns: fs::read_link("/proc/self/ns/pid")
                .ok()
                .map(|link| link.to_string_lossy().into()),
        }
    })
}

/// Returns this host's name.
pub fn host_name() -> &'static str {
    &host().name
}

/// Returns this process as the holder of a lease; the lease rules set its
/// deadline. `None` where its own start cannot be read: a holder that cannot be
/// distinguished from another process is worse than none.
pub fn this_process() -> Option<Holder> {
    let host = host();
    let pid = std::process::id();
    Some(Holder {
        host: host.name.clone(),
        boot_id: host.boot_id.clone(),
        pid,
        started: own_start()?,
        deadline_ms: 0,
        pid_ns: host.pid_ns.clone(),
    })
}

/// When this process started, which is read once.
fn own_start() -> Option<u64> {
    static STARTED: OnceLock<Option<u64>> = OnceLock::new();
    *STARTED.get_or_init(|| match start_time(std::process::id()) {
        Process::Started(ticks) => Some(ticks),
        Process::Gone | Process::Unseen => None,
    })
}

/// Returns whether a holder's process runs.
///
/// A pid counts in its own namespace only: a holder in another container is
/// `Unknown`, and its deadline decides. So is one that cannot be looked at.
pub fn life(holder: &Holder) -> Life {
    let host = host();
    if holder.boot_id != host.boot_id || host.boot_id.is_empty() {
        return Life::Unknown;
    }
    let same_namespace = match (&holder.pid_ns, &host.pid_ns) {
        (Some(theirs), Some(ours)) => theirs == ours,
        _ => holder.host == host.name,
    };
    if !same_namespace {
        return Life::Unknown;
    }
    // Who asks runs.
    if holder.pid == std::process::id() && own_start() == Some(holder.started) {
        return Life::Alive;
    }
    match start_time(holder.pid) {
        Process::Started(started) if started == holder.started => Life::Alive,
        Process::Started(_) | Process::Gone => Life::Dead,
        Process::Unseen => Life::Unknown,
    }
}

/// What `/proc` reports about a process.
enum Process {
    /// It runs, since so many clock ticks after boot.
    Started(u64),
    /// There is none, or it is a zombie.
    Gone,
    /// It cannot be looked at: no right, or no descriptor left.
    Unseen,
}

fn start_time(pid: u32) -> Process {
    let stat = match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        Err(error) => {
            // A hidden process has no entry either: the kernel knows.
            let exists = i32::try_from(pid)
                .ok()
                .and_then(Pid::from_raw)
                .is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH));
            let gone = matches!(
                error.raw_os_error().map(Errno::from_raw_os_error),
                Some(Errno::NOENT | Errno::SRCH)
            );
            return if gone && !exists {
                Process::Gone
            } else {
                Process::Unseen
            };
        }
    };
    parse_stat(&stat).unwrap_or(Process::Unseen)
}

fn parse_stat(stat: &str) -> Option<Process> {
    // The name in parentheses may hold anything; what follows the last one is fixed.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let state = *fields.first()?;
    if state == "Z" || state == "X" {
        return Some(Process::Gone);
    }
    Some(Process::Started(fields.get(19)?.parse().ok()?))
}

/// Observes clocks and processes for a lease rule.
pub fn observe() -> Observation<'static> {
    Observation {
        moment: now(),
        boot_id: &host().boot_id,
        life: &life,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_another_start_time_is_another_process() {
        let me = this_process().unwrap();
        assert_eq!(life(&me), Life::Alive);
        let other = Holder {
            started: me.started + 1,
            ..me.clone()
        };
        assert_eq!(life(&other), Life::Dead);
        let elsewhere = Holder {
            boot_id: "another".into(),
            ..me.clone()
        };
        assert_eq!(life(&elsewhere), Life::Unknown);
        let contained = Holder {
            pid_ns: Some("pid:[1]".into()),
            ..me
        };
        assert_eq!(life(&contained), Life::Unknown);
    }
}
