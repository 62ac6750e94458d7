//! The clocks and processes of this host, as the lease rules observe them.

use premath_kernel::issue::Holder;
use premath_kernel::issue::lease::{Life, Observation};
use premath_kernel::json::time::Moment;
use premath_platform::host;
use premath_platform::process::{Presence, presence};
use rustix::process::Pid;
use std::sync::OnceLock;

/// Reads the wall clock and the time since the host started together.
pub fn now() -> Moment {
    let boot_ms = host::since_boot_ms();
    Moment {
        wall: jiff::Timestamp::now(),
        boot_ms,
    }
}

/// What this host and process are called.
#[derive(Debug)]
struct Host {
    name: Box<str>,
    boot_id: Box<str>,
    pid_ns: Option<Box<str>>,
}

fn this_host() -> &'static Host {
    static HOST: OnceLock<Host> = OnceLock::new();
    HOST.get_or_init(|| Host {
        name: host::name().into(),
        // Without a boot id no holder is ever compared by process; time decides.
        boot_id: host::boot_id().unwrap_or_default().into(),
        pid_ns: host::process_namespace().map(Into::into),
    })
}

/// Returns the name of this host.
pub fn host_name() -> &'static str {
    &this_host().name
}

/// Returns this process as the holder of a lease; the lease rules set its
/// deadline. `None` where its own start cannot be read: a holder that cannot be
/// distinguished from another process is worse than none.
pub fn this_process() -> Option<Holder> {
    let host = this_host();
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
    *STARTED.get_or_init(|| match presence_of(std::process::id()) {
        Presence::Running(process) => Some(process.start),
        Presence::Gone | Presence::Unknown => None,
    })
}

fn presence_of(pid: u32) -> Presence {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.map_or(Presence::Unknown, presence)
}

/// Returns whether a holder's process runs.
///
/// A pid counts in its own namespace only: a holder in another container is
/// `Unknown`, and its deadline decides. So is one that cannot be looked at.
pub fn life(holder: &Holder) -> Life {
    let host = this_host();
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
    match presence_of(holder.pid) {
        Presence::Running(process) if process.start == holder.started => Life::Alive,
        Presence::Running(_) | Presence::Gone => Life::Dead,
        Presence::Unknown => Life::Unknown,
    }
}

/// Observes clocks and processes for a lease rule.
pub fn observe() -> Observation<'static> {
    Observation {
        moment: now(),
        boot_id: &this_host().boot_id,
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
