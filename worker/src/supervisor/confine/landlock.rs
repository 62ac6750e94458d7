//! Confinement by the kernel's Landlock: what is not on the list cannot be
//! written, made, renamed, cut or removed.
//!
//! It confines the calling thread and what that starts, for ever. So a command
//! is started by a thread of its own, which confines itself first; the
//! supervisor stays free. Such a thread also gives up to gain rights by a
//! setuid program, and may neither mount nor trace what is outside.

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus,
};
use rustix::fs::{Mode, OFlags, open};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
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

/// The paths that the latest command may write, held open: most of them are
/// those of the next one, and are opened anew only where another file is there.
#[derive(Debug, Default)]
pub(in crate::supervisor) struct Held(BTreeMap<PathBuf, HeldPath>);

#[derive(Debug)]
struct HeldPath {
    file: File,
    device: u64,
    inode: u64,
    is_folder: bool,
}

impl Held {
    /// Holds these paths and no others. One that is not there opens nothing.
    fn hold(&mut self, paths: &[PathBuf]) {
        let mut before = std::mem::take(&mut self.0);
        for path in paths {
            let kept = before.remove(path).filter(|held| held.is_at(path));
            if let Some(held) = kept.or_else(|| HeldPath::open(path)) {
                self.0.insert(path.clone(), held);
            }
        }
    }
}

impl HeldPath {
    fn open(path: &Path) -> Option<Self> {
        let file = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let file = File::from(file);
        let meta = file.metadata().ok()?;
        Some(Self {
            file,
            device: meta.dev(),
            inode: meta.ino(),
            is_folder: meta.is_dir(),
        })
    }

    /// Tells whether the path still leads here. What is held open is not
    /// removed for good, so its number is nobody else's.
    fn is_at(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|now| (now.dev(), now.ino()) == (self.device, self.inode))
    }
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
    held: &mut Held,
) -> io::Result<io::Result<Child>> {
    held.hold(writable);
    let held = &*held;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("confined".to_owned())
            .spawn_scoped(scope, || {
                restrict(held)?;
                Ok(command.spawn())
            })?;
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that confines panicked")))
    })
}

fn restrict(held: &Held) -> io::Result<()> {
    let write = AccessFs::from_write(NEEDED);
    let rules = held.0.values().map(|held| {
        let access = match held.is_folder {
            true => write,
            // The others are of folders alone.
            false => write & AccessFs::from_file(NEEDED),
        };
        Ok::<_, RulesetError>(PathBeneath::new(&held.file, access))
    });
    let status = ruleset()
        .and_then(|ruleset| ruleset.add_rules(rules))
        .and_then(|ruleset| ruleset.restrict_self())
        .map_err(io::Error::other)?;
    if status.ruleset == RulesetStatus::FullyEnforced {
        Ok(())
    } else {
        Err(io::Error::other("the kernel enforces it in part only"))
    }
}
