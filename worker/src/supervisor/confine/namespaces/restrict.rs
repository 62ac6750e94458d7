//! What the command gives up before it begins: rights and resources.

use super::super::no_core;
use super::identity;
use super::view::CommandBounds;
use super::while_doing;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};
use std::io;

/// What of root's power a command keeps, where the harness runs as root: that
/// over files and its own processes.
const KEPT_BY_ROOT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// Sets the bounds of the processes. A hard limit that is lower stays.
pub(super) fn bound(bounds: &CommandBounds) -> io::Result<()> {
    let all = [
        (Resource::Nproc, bounds.processes),
        (Resource::Nofile, bounds.open_files),
        (Resource::Fsize, bounds.file_bytes),
    ];
    for (resource, bound) in all {
        let Some(bound) = bound else { continue };
        let before = getrlimit(resource);
        let least = |limit: Option<u64>| Some(limit.map_or(bound, |limit| limit.min(bound)));
        let limits = Rlimit {
            current: least(before.current),
            maximum: least(before.maximum),
        };
        while_doing("cannot set a limit", setrlimit(resource, limits))?;
    }
    while_doing("cannot set a limit", setrlimit(Resource::Core, no_core()))?;
    // Where the machine runs out of memory, the command goes first.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    Ok(())
}

/// Gives up every right that the namespaces gave, permanently.
pub(super) fn give_up_rights() -> io::Result<()> {
    let kept = if identity::is_privileged() {
        KEPT_BY_ROOT
    } else {
        CapabilitySet::empty()
    };
    for capability in CapabilitySet::all().iter() {
        if !kept.contains(capability) && capability_is_in_bounding_set(capability).unwrap_or(false)
        {
            let removed = remove_capability_from_bounding_set(capability);
            while_doing("cannot drop privileges", removed)?;
        }
    }
    while_doing("cannot drop privileges", clear_ambient_capability_set())?;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    while_doing("cannot drop privileges", set_capabilities(None, sets))?;
    while_doing("cannot drop privileges", set_no_new_privs(true))?;
    // The command may not trace this process, which has the report.
    let hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    while_doing("cannot hide from the command", hidden)
}
