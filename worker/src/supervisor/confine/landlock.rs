//! Confinement by the kernel's Landlock: what is not on a list cannot be read,
//! run, written, made, renamed, cut or removed.
//!
//! Where the kernel can (Linux 6.12), it also keeps signals and sockets with
//! names of the kernel's from leaving the command. Sockets of files are refused
//! by a filter of system calls.
//!
//! It confines the calling thread and what that starts, for ever. So a command
//! is started by a thread of its own, which confines itself first; the
//! supervisor stays free. Such a thread also gives up to gain rights by a
//! setuid program, and may neither mount nor trace what is outside.

use super::super::message::OsText;
use super::filter::{self, Shared};
use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{Mode, OFlags, open};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// What must be there: before this one a file could be cut short, or a build
/// could not rename across folders.
const NEEDED: ABI = ABI::V3;

/// Returns whether the kernel has what is needed.
pub(super) fn works() -> Result<(), String> {
    ruleset()
        .map(drop)
        .map_err(|_| "the kernel has no Landlock, or a version older than Linux 6.2".to_owned())
}

fn ruleset() -> Result<landlock::RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .set_compatibility(CompatLevel::HardRequirement)
        .create()
}

/// The paths that a command may use; one that is not there opens nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lists {
    write: Vec<OsText>,
    read: Vec<OsText>,
}

impl Lists {
    /// Makes the lists; what may be written may be read.
    pub fn new<'a>(
        write: impl IntoIterator<Item = &'a Path>,
        read: impl IntoIterator<Item = &'a Path>,
    ) -> Self {
        Self {
            write: write.into_iter().map(OsText::from).collect(),
            read: read.into_iter().map(OsText::from).collect(),
        }
    }
}

/// The paths that the latest command may use, held open: most of them are those
/// of the next one, and are opened again only where another file is there.
#[derive(Debug, Default)]
pub(in crate::supervisor) struct HeldPaths(BTreeMap<PathBuf, HeldPath>);

#[derive(Debug)]
struct HeldPath {
    file: File,
    device: u64,
    inode: u64,
    is_folder: bool,
    is_writable: bool,
}

impl HeldPaths {
    /// Holds these paths and no others.
    fn hold(&mut self, lists: &Lists) {
        let mut before = std::mem::take(&mut self.0);
        // What is in both lists may be written.
        for (list, is_writable) in [(&lists.read, false), (&lists.write, true)] {
            for path in list.iter().map(|path| Path::new(&path.0)) {
                let kept = before.remove(path).or_else(|| self.0.remove(path));
                let kept = kept.filter(|held| held.is_at(path));
                if let Some(mut held) = kept.or_else(|| HeldPath::open(path)) {
                    held.is_writable = is_writable;
                    self.0.insert(path.to_path_buf(), held);
                }
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
            is_writable: false,
        })
    }

    /// Returns whether the path still leads here. What is held open is not
    /// removed permanently, so its number is not reused.
    fn is_at(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|now| (now.dev(), now.ino()) == (self.device, self.inode))
    }
}

/// Keeps this thread, and what it starts, from sockets by the kernel's names
/// outside, where the kernel can.
pub(super) fn keep_from_sockets() -> io::Result<()> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::AbstractUnixSocket)
        .and_then(|ruleset| ruleset.create());
    let restricted = ruleset.and_then(|ruleset| ruleset.restrict_self());
    restricted.map(drop).map_err(io::Error::other)
}

/// Starts a command that may use these paths alone; the inner result is that of
/// the start.
///
/// # Errors
///
/// An error where the command could not be confined; it was not started then.
pub(in crate::supervisor) fn spawn(
    command: &mut Command,
    lists: &Lists,
    held: &mut HeldPaths,
) -> io::Result<io::Result<Child>> {
    held.hold(lists);
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

fn restrict(held: &HeldPaths) -> io::Result<()> {
    let rules = held.0.values().map(|held| {
        let access = match held.is_writable {
            // A device that root made would open a disk, whatever the lists say.
            true => AccessFs::from_all(NEEDED) & !(AccessFs::MakeChar | AccessFs::MakeBlock),
            false => AccessFs::from_read(NEEDED),
        };
        let access = match held.is_folder {
            true => access,
            // The others are of folders alone.
            false => access & AccessFs::from_file(NEEDED),
        };
        Ok::<_, RulesetError>(PathBeneath::new(&held.file, access))
    });
    let status = ruleset()
        .and_then(|ruleset| ruleset.add_rules(rules))
        .and_then(|ruleset| ruleset.restrict_self())
        .map_err(io::Error::other)?;
    // The scopes alone may be missing: what is needed is required above.
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err(io::Error::other("the kernel does not enforce it"));
    }
    filter::apply(Shared::Machine)
}
