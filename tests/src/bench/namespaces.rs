//! The part of a confined command that is the kernel's: `unshare` starts the
//! same commands in as many namespaces, with as many mounts.

use crate::batch::LANES;
use crate::figure::{Wrong, timed};
use crate::programs::{command, run};
use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change,
    mount_remount, move_mount, open_tree,
};
use rustix::process::geteuid;
use std::path::Path;

/// The hidden mode in which this program makes the mounts and runs a command.
pub(crate) const MODE: &str = "--in-namespaces";

/// How many folders are mounted; a view has some more.
pub(crate) const MOUNTS: usize = 20;

/// Has a shell start two commands an issue, each in namespaces; returns its
/// seconds, or nothing where the system allows none.
pub(crate) fn shell(count: usize) -> Result<Option<f64>, Wrong> {
    let own = std::env::current_exe()?;
    let mut flags = vec!["-m", "-p", "-f", "-i", "-u", "-C", "-n"];
    if !geteuid().is_root() {
        flags.push("-Ur");
    }
    let once = format!("unshare {} '{}' {MODE}", flags.join(" "), own.display());
    let is_allowed = command("sh").args(["-c", &once]).status()?.success();
    if !is_allowed {
        return Ok(None);
    }
    let line = format!("seq {count} | xargs -P{LANES} -I{{}} sh -c \"{once}; {once}\"");
    let (_, elapsed) = timed(|| run(command("sh").args(["-c", &line])))?;
    Ok(Some(elapsed.as_secs_f64()))
}

/// Makes the mounts, in the namespaces that this process was started in, and
/// runs a command.
pub(crate) fn enter() -> Result<(), Wrong> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", "/tmp", "tmpfs", flags, c"mode=755,size=4m")?;
    for number in 0..MOUNTS {
        let at = Path::new("/tmp").join(number.to_string());
        std::fs::create_dir(&at)?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        let tree = open_tree(CWD, "/usr", flags)?;
        move_mount(tree, c"", CWD, &at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
        mount_remount(&at, flags, c"")?;
    }
    run(command("sh").args(["-c", "true"])).map(drop)
}
