//! Where lanes are made, and the operations on what the record names.

use super::{LEFTOVER, ProvisionResult};
use crate::removal::{self, Guard, Occupant, occupant, parent_of, remove_exactly};
use git2::{Oid, Repository};
use premath_memory::lane_record::{FolderId, FolderState, LaneFolder, LaneRecord};
use premath_platform::file::{open_place, open_place_in, rename_to_free_name};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// How many other names are tried for a lane whose place is taken.
const NAMES: u32 = 100;

/// The repository, the folder of its lanes, and what is never removed.
pub(super) struct ProvisionSite<'g> {
    pub(super) git: &'g Repository,
    /// The main worktree.
    pub(super) repository: PathBuf,
    /// The git folder that all worktrees share.
    pub(super) common: PathBuf,
    /// The folder of the lanes, without links.
    pub(super) root: PathBuf,
    /// The commit that a new lane begins at.
    pub(super) start: Oid,
    /// Whether steps have branches of their own.
    pub(super) lands: bool,
    pub(super) guard: Guard,
}

impl ProvisionSite<'_> {
    /// Returns what is at a path, links not followed.
    pub(super) fn occupant(&self, path: &Path) -> Result<Occupant, String> {
        match parent_of(path).map_err(text)? {
            Some((parent, name)) => occupant(parent.as_fd(), name)
                .map_err(|error| format!("cannot look at {}: {error}", path.display())),
            None => Ok(Occupant::Nothing),
        }
    }

    /// Opens the folder at a path where it is the one that is expected.
    pub(super) fn open(&self, path: &Path, id: &FolderId) -> Result<OwnedFd, String> {
        let failed = |error| format!("cannot open {}: {error}", path.display());
        let gone = || format!("{} no longer exists", path.display());
        let (parent, name) = parent_of(path).map_err(text)?.ok_or_else(gone)?;
        let folder = open_place_in(&parent, name).map_err(failed)?;
        match removal::id_of(folder.as_fd()) {
            Ok(found) if found.is(id) => Ok(folder),
            Ok(_) => Err(format!("another folder is at {}", path.display())),
            Err(error) => Err(format!("cannot look at {}: {error}", path.display())),
        }
    }

    /// Finds a place for a lane: its own, or one beside it where something is
    /// that the harness did not make.
    pub(super) fn free_place(&self, name: &str) -> Result<PathBuf, String> {
        for number in 1..=NAMES {
            let place = match number {
                1 => self.root.join(name),
                _ => self.root.join(format!("{name}-{number}")),
            };
            match self.occupant(&place)? {
                Occupant::Nothing => return Ok(place),
                // Only an empty one goes by this call.
                Occupant::Folder(_) if unlinkat(CWD, &place, AtFlags::REMOVEDIR).is_ok() => {
                    return Ok(place);
                }
                Occupant::Folder(_) | Occupant::Other => {}
            }
        }
        Err(format!(
            "no free name next to {}",
            self.root.join(name).display()
        ))
    }

    /// Opens the folder of git's worktree records; it is made where it is not
    /// there.
    pub(super) fn registrations(&self) -> Result<OwnedFd, String> {
        let failed = |error: std::io::Error| format!("cannot open git's worktree records: {error}");
        let path = self.common.join("worktrees");
        match std::fs::create_dir(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(failed(error));
            }
            _ => {}
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(CWD, &path, flags, Mode::empty()).map_err(|errno| failed(errno.into()))
    }

    /// Removes git's record of a lane. What an earlier step left in its salvage
    /// folder is moved to the repository's.
    pub(super) fn deregister(&self, folder: &LaneFolder) -> Result<(), String> {
        let name = OsStr::new(&folder.registration);
        let registrations = self.registrations()?;
        self.save_salvage(&registrations, &folder.registration);
        removal::remove_entry(registrations.as_fd(), name)
            .map_err(|error| format!("cannot remove git's record of the lane: {error}"))
    }

    fn save_salvage(&self, registrations: &OwnedFd, name: &str) {
        let Ok(registration) = open_place_in(registrations, name) else {
            return;
        };
        let Ok(Occupant::Folder(_)) = occupant(registration.as_fd(), OsStr::new(LEFTOVER)) else {
            return;
        };
        let _ = std::fs::create_dir(self.common.join(LEFTOVER));
        let Ok(kept) = open_place(self.common.join(LEFTOVER)) else {
            return;
        };
        for number in 1..=NAMES {
            let place = format!("{name}-{number}");
            let moved = rename_to_free_name(
                (registration.as_fd(), OsStr::new(LEFTOVER)),
                (kept.as_fd(), OsStr::new(&place)),
            );
            if moved != Err(rustix::io::Errno::EXIST) {
                break;
            }
        }
    }

    /// Takes a folder of ours out of use: it is moved aside at once, and removed
    /// by [`ProvisionSite::sweep`], now or in a later batch.
    pub(super) fn discard(
        &self,
        record: &mut LaneRecord,
        folder: &LaneFolder,
    ) -> Result<(), String> {
        let (parent, name) = parent_of(&folder.worktree)
            .map_err(text)?
            .ok_or_else(|| "the lanes' folder no longer exists".to_owned())?;
        let mut number = 1;
        let aside = loop {
            let aside = format!(".discarded-{}-{number}", record.lane);
            match occupant(parent.as_fd(), OsStr::new(&aside)) {
                Ok(Occupant::Nothing) => break aside,
                _ if number < NAMES => number += 1,
                _ => return Err("no free name to move it aside".to_owned()),
            }
        };
        let path = self.root.join(&aside);
        for entry in record.folders.iter_mut().filter(|entry| *entry == folder) {
            entry.state = FolderState::Discarded;
            entry.moved_to = Some(path.clone());
        }
        // First, so that it is known as ours wherever this is interrupted.
        record.write(&self.repository).map_err(text)?;
        // Where it cannot be moved, the lane gets another name.
        let (here, aside) = ((parent.as_fd(), name), (parent.as_fd(), OsStr::new(&aside)));
        if rename_to_free_name(here, aside).is_ok()
            && !matches!(self.occupant(&path)?, Occupant::Folder(id) if id.is(&folder.id))
        {
            let _ = rename_to_free_name(aside, here);
            return Err("another process replaced its folder".to_owned());
        }
        self.deregister(folder)
    }

    /// Removes the folders that were discarded, as far as that goes in a short
    /// time; returns what stays, and why.
    pub(super) fn sweep(&self, record: &mut LaneRecord) -> Vec<(PathBuf, String)> {
        let mut stays = Vec::new();
        let mut is_changed = false;
        record.folders.retain(|folder| {
            if folder.state != FolderState::Discarded {
                return true;
            }
            let places = folder.moved_to.iter().chain([&folder.worktree]);
            for place in places.filter(|place| place.parent() == Some(&*self.root)) {
                match self.occupant(place) {
                    Ok(Occupant::Folder(id)) if id.is(&folder.id) => {}
                    Ok(_) => continue,
                    Err(why) => {
                        stays.push((place.clone(), why));
                        return true;
                    }
                }
                if let Err(error) = remove_exactly(place, &folder.id, &self.guard, super::SWEEP) {
                    stays.push((place.clone(), text(error)));
                    return true;
                }
            }
            is_changed = true;
            false
        });
        if is_changed && let Err(error) = record.write(&self.repository) {
            stays.push((self.repository.clone(), text(error)));
        }
        stays
    }

    /// Forgets a folder that is not there any more or not ours.
    pub(super) fn forget(
        &self,
        record: &mut LaneRecord,
        folder: &LaneFolder,
    ) -> Result<(), String> {
        record.folders.retain(|entry| entry != folder);
        record.write(&self.repository).map_err(text)
    }

    /// Discards a lane and makes it again.
    pub(super) fn renew(
        &self,
        record: &mut LaneRecord,
        folder: &LaneFolder,
        reason: String,
    ) -> Result<(PathBuf, ProvisionResult), String> {
        self.discard(record, folder)?;
        let worktree = self.make(record)?;
        self.sweep(record);
        Ok((worktree, ProvisionResult::Remade(reason)))
    }
}

/// Returns an error with its causes as one text.
pub(super) fn text(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let detail = error.to_string();
        // Some messages name their cause.
        if !text.ends_with(&detail) {
            text = format!("{text}: {detail}");
        }
        cause = error.source();
    }
    text
}
