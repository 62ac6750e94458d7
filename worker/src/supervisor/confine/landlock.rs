//! Confinement by the kernel's Landlock: what is not on the list cannot be
//! written, made, renamed, cut or removed.
//!
//! It confines the calling thread and what that starts, for ever. So a command
//! is started by a thread of its own, which confines itself first; the
//! supervisor stays free. Such a thread also gives up to gain rights by a
//! setuid program, and may neither mount nor trace what is outside.

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, path_beneath_rules,
};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};

/// What must be there: before this one a file could be cut short, or a build
/// could not rename across folders.
const NEEDED: ABI = ABI::V3;

/// Tells whether the kernel has what is needed.
pub(super) fn works() -> Result<(), String> {
    ruleset().map(drop).map_err(|_| {
        "the kernel does not offer Landlock, or an older one than that of Linux 6.2".to_owned()
    })
}

fn ruleset() -> Result<landlock::RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(NEEDED))?
        .create()
}

/// Starts a command that may write to these paths alone; the inner result is
/// that of the start.
///
/// # Errors
///
/// An error where the command could not be confined; it was not started then.
pub(in crate::supervisor) fn spawn(
    command: &mut Command,
    writable: &[PathBuf],
) -> io::Result<io::Result<Child>> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("confined".to_owned())
            .spawn_scoped(scope, || {
                restrict(writable)?;
                Ok(command.spawn())
            })?;
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that confines panicked")))
    })
}

fn restrict(writable: &[PathBuf]) -> io::Result<()> {
    let write = AccessFs::from_write(NEEDED);
    let status = ruleset()
        .and_then(|ruleset| ruleset.add_rules(path_beneath_rules(writable, write)))
        .and_then(|ruleset| ruleset.restrict_self())
        .map_err(io::Error::other)?;
    if status.ruleset == RulesetStatus::FullyEnforced {
        Ok(())
    } else {
        Err(io::Error::other("the kernel enforces it in part only"))
    }
}
