//! Writes files of a tree as they are stored, where nothing is.
//!
//! Invariant: a file is made by its folder's descriptor and by no other name, no
//! link is followed on the way, and nothing that is there is opened or replaced.

use super::beneath::path;
use super::descent::{DEPTH_MAX, Descent};
use super::entry_name::is_fit;
use super::overlay::Leaf;
use super::scan::index_entry;
use super::{Tree, TreeError};
use git2::{FileMode, IndexEntry, ObjectType, Odb};
use rustix::fs::{
    AtFlags, Mode, OFlags, Stat, Timestamps, fstat, futimens, openat, statat, symlinkat, utimensat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;

const FILE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Writes files below the root of a worktree; fastest in the order of a tree.
pub(super) struct FileWriter<'a> {
    tree: &'a Tree,
    odb: Odb<'a>,
    descent: Descent,
    /// When every file was modified; now where absent.
    times: Option<Timestamps>,
    has_links: bool,
}

impl<'a> FileWriter<'a> {
    pub(super) fn new(tree: &'a Tree, times: Option<Timestamps>) -> Result<Self, TreeError> {
        let root = tree.beneath()?.folder();
        let root = root.map_err(tree.refused("open", path(b".")))?;
        let odb = tree.repository.odb();
        Ok(Self {
            odb: odb.map_err(tree.failed("open the objects"))?,
            descent: Descent::new(root),
            times,
            has_links: tree.settings().symlinks,
            tree,
        })
    }

    /// Writes a file or a symlink; the folders on the way are made. Returns its
    /// index entry, or `None` where nothing was written: something is there or on
    /// the way, or the name or the kind needs git's own checkout.
    pub(super) fn write(
        &mut self,
        name: &[u8],
        leaf: Leaf,
    ) -> Result<Option<IndexEntry>, TreeError> {
        let is_link = leaf.0 == i32::from(FileMode::Link);
        let depth = name.iter().filter(|byte| **byte == b'/').count();
        if !is_fit(name) || depth > DEPTH_MAX || (is_link && !self.has_links) {
            return Ok(None);
        }
        let object = self.odb.read(leaf.1);
        let object = object.map_err(self.tree.failed("read a file of the base"))?;
        if object.kind() != ObjectType::Blob {
            return Ok(None);
        }
        let is_executable = leaf.0 & 0o100 != 0;
        let (folder, file) = match name.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&name[..at], &name[at + 1..]),
            None => (&name[..0], name),
        };
        let folder = self.descent.make(folder);
        let times = self.times.as_ref();
        let written = folder.and_then(|folder| match folder {
            None => Ok(None),
            Some(folder) if is_link => link(folder, file, object.data(), times),
            Some(folder) => file_in(folder, file, is_executable, object.data(), times),
        });
        let written = written.map_err(self.tree.refused("write", path(name)))?;
        Ok(written.map(|stat| index_entry(name, leaf, &stat)))
    }

    /// Makes the empty folder of a submodule.
    pub(super) fn make_folder(&mut self, name: &[u8]) -> Result<(), TreeError> {
        if !is_fit(name) {
            return Ok(());
        }
        let made = self.descent.make(name);
        made.map(drop)
            .map_err(self.tree.refused("make", path(name)))
    }
}

/// Writes a new file; `None` where something is in its place.
fn file_in(
    folder: &OwnedFd,
    name: &[u8],
    is_executable: bool,
    content: &[u8],
    times: Option<&Timestamps>,
) -> io::Result<Option<Stat>> {
    let mode = Mode::from_raw_mode(if is_executable { 0o755 } else { 0o644 });
    let file = match openat(folder, path(name), FILE, mode) {
        Ok(file) => file,
        Err(Errno::EXIST) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut file = File::from(file);
    file.write_all(content)?;
    if let Some(times) = times {
        futimens(&file, times)?;
    }
    Ok(Some(fstat(&file)?))
}

/// Makes a new symlink; `None` where something is in its place, or where it
/// cannot be one.
fn link(
    folder: &OwnedFd,
    name: &[u8],
    target: &[u8],
    times: Option<&Timestamps>,
) -> io::Result<Option<Stat>> {
    if target.is_empty() || target.contains(&0) {
        return Ok(None);
    }
    match symlinkat(path(target), folder, path(name)) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    if let Some(times) = times {
        utimensat(folder, path(name), times, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    let made = statat(folder, path(name), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(Some(made))
}
