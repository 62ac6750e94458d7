//! Entering the namespaces, and who the user is in them.

use nix::sched::{CloneFlags, unshare};
use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities,
};
use std::fs;
use std::io;

/// Puts this process into namespaces of its own; its next child is the first
/// process of a namespace of processes. The user keeps its number.
///
/// Root needs no namespace of users for it, and has none: files of other users
/// stay in reach, as they are for root elsewhere.
pub(super) fn enter(is_offline: bool) -> io::Result<()> {
    let mut flags = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    if is_offline {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    let (user, group) = (geteuid(), getegid());
    if is_privileged() {
        return unshare(flags).map_err(|errno| unavailable("namespaces", errno));
    }
    unshare(flags | CloneFlags::CLONE_NEWUSER)
        .map_err(|errno| unavailable("user namespaces", errno))?;
    let write = |file: &str, text: &str| {
        fs::write(file, text)
            .map_err(|error| io::Error::new(error.kind(), format!("cannot write {file}: {error}")))
    };
    write("/proc/self/setgroups", "deny")?;
    write(
        "/proc/self/uid_map",
        &format!("{user} {user} 1", user = user.as_raw()),
    )?;
    write(
        "/proc/self/gid_map",
        &format!("{group} {group} 1", group = group.as_raw()),
    )?;
    bound_counts()?;
    keep_rights_in_children()
}

/// What the kernel counts for each user, with the bound of one command: what it
/// takes is missing for the user's other programs. No further namespaces: in one of
/// users a command could mount file systems in memory and fill the kernel's
/// tables. Those of mounts are also counted for trees that the view is made of.
const COUNTS: [(&str, u32); 8] = [
    ("max_cgroup_namespaces", 0),
    ("max_inotify_instances", 32),
    ("max_ipc_namespaces", 0),
    ("max_mnt_namespaces", 64),
    ("max_net_namespaces", 0),
    ("max_pid_namespaces", 0),
    ("max_user_namespaces", 0),
    ("max_uts_namespaces", 0),
];

/// Sets these bounds in the namespace of users that was just entered
/// (namespaces(7)).
fn bound_counts() -> io::Result<()> {
    for (name, bound) in COUNTS {
        match fs::write(format!("/proc/sys/user/{name}"), bound.to_string()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let detail = format!("cannot bound {name}: {error}");
                return Err(io::Error::new(error.kind(), detail));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The rights that the init needs to make the view, and then gives up.
const NEEDED: [CapabilitySet; 4] = [
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::NET_ADMIN,
    CapabilitySet::SETPCAP,
    // For the folder that an overlay works in, which is closed to its owner.
    CapabilitySet::DAC_OVERRIDE,
];

/// Makes a program that this process starts keep the rights that the user
/// namespace gave: only root keeps them otherwise.
fn keep_rights_in_children() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.inheritable = NEEDED.into_iter().collect();
    set_capabilities(None, sets)?;
    for capability in NEEDED {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

/// Returns whether this process may do without a namespace of users.
pub(super) fn is_privileged() -> bool {
    geteuid().is_root()
        && capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

fn unavailable(what: &str, errno: nix::errno::Errno) -> io::Error {
    let error = io::Error::from(errno);
    io::Error::new(error.kind(), format!("no {what} available: {error}"))
}
