//! The times of a checkout's files, by their content: build tools take a file
//! whose time is the one that they saw for unchanged.

use super::beneath::path;
use super::descent::Descent;
use super::scan::index_entry;
use super::{Tree, TreeError};
use git2::{Index, IndexEntryExtendedFlag, IndexTime};
use std::collections::BTreeSet;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The time of every file and folder that is as in the base: 2001-09-09.
const SETTLED: i64 = 1_000_000_000;

/// The mode of a submodule's entry.
const SUBMODULE: u32 = 0o160_000;

impl Tree {
    /// Gives each file and folder of a clean checkout a time by its content:
    /// one that is as in the base's tree always has the same, which is in the
    /// past; any other one has a time after `newest`, in seconds. Files of
    /// `also` that git does not track always have the same content.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn date(&self, base: &str, newest: i64, also: &[&Path]) -> Result<(), TreeError> {
        let failed = |error: io::Error| self.error("date the files", error.to_string());
        let changed = self.changed_from(base)?;
        let root = self.beneath()?.folder().map_err(failed)?;
        let mut dates = Dates {
            descent: Descent::new(root),
            later: later_than(newest),
            newest,
            moved: Vec::new(),
        };
        let mut folders: BTreeSet<Vec<u8>> = BTreeSet::new();
        let index = self.repository.index();
        let mut index = index.map_err(self.failed("read the index"))?;
        index.read(false).map_err(self.failed("read the index"))?;
        let left_out = IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
        for entry in index.iter() {
            if entry.mode == SUBMODULE || entry.flags_extended & left_out != 0 {
                continue;
            }
            let is_changed = changed.contains(&entry.path);
            let dated = dates.file(&entry.path, is_changed, entry.mtime);
            dated.map_err(failed)?;
            let mut name = &entry.path[..];
            while let Some(above) = above(name) {
                if !folders.contains(above) {
                    folders.insert(above.to_vec());
                }
                name = above;
            }
        }
        for file in also {
            let is_tracked = index.get_path(file, 0).is_some();
            let name = file.as_os_str().as_bytes();
            if !is_tracked {
                dates.settle(name).map_err(failed)?;
            }
        }
        for folder in &folders {
            let dated = dates.folder(folder, changed.contains(folder));
            dated.map_err(failed)?;
        }
        let moved = std::mem::take(&mut dates.moved);
        self.settle_times(&index, &moved)
    }

    /// Writes the times of files that are otherwise as in the index.
    fn settle_times(&self, index: &Index, moved: &[Vec<u8>]) -> Result<(), TreeError> {
        if moved.is_empty() {
            return Ok(());
        }
        let failed = |error: io::Error| self.error("date the files", error.to_string());
        let mut descent = Descent::new(self.beneath()?.folder().map_err(failed)?);
        let mut entries = Vec::new();
        for name in moved {
            let known = index.get_path(path(name), 0);
            if let Some(known) = known
                && let Some(stat) = descent.look(name).map_err(failed)?
                && let Ok(mode) = i32::try_from(known.mode)
            {
                entries.push(index_entry(name, (mode, known.id), &stat));
            }
        }
        self.settle(&self.head_tree()?, &entries)
    }

    /// Returns the paths that differ between a commit and HEAD, and the folders
    /// that hold them.
    fn changed_from(&self, base: &str) -> Result<BTreeSet<Vec<u8>>, TreeError> {
        let read = || self.failed("compare the base");
        let base = self.find_commit(base)?.tree().map_err(read())?;
        let head = self.head_tree()?;
        let diff = self
            .repository
            .diff_tree_to_tree(Some(&base), Some(&head), None)
            .map_err(read())?;
        let mut changed = BTreeSet::new();
        for delta in diff.deltas() {
            for file in [delta.old_file(), delta.new_file()] {
                let mut name = file.path_bytes().unwrap_or_default();
                changed.insert(name.to_vec());
                while let Some(above) = above(name) {
                    changed.insert(above.to_vec());
                    name = above;
                }
            }
        }
        Ok(changed)
    }
}

/// Returns the folder that holds a path; the root is empty.
fn above(name: &[u8]) -> Option<&[u8]> {
    if name.is_empty() {
        return None;
    }
    let end = name.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    Some(&name[..end])
}

/// Returns a time that is after another and not before now.
fn later_than(newest: i64) -> (i64, i64) {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if seconds > newest {
        return (seconds, i64::from(now.subsec_nanos()));
    }
    (newest.saturating_add(1), 0)
}

struct Dates {
    descent: Descent,
    newest: i64,
    later: (i64, i64),
    /// Files whose time was set.
    moved: Vec<Vec<u8>>,
}

impl Dates {
    /// Dates a file, whose time is known from the index.
    fn file(&mut self, name: &[u8], is_changed: bool, now: IndexTime) -> io::Result<()> {
        let now = (i64::from(now.seconds()), i64::from(now.nanoseconds()));
        if let Some(wanted) = self.wanted(is_changed, now)
            && self.descent.set_time(name, wanted)?
        {
            self.moved.push(name.to_vec());
        }
        Ok(())
    }

    fn settle(&mut self, name: &[u8]) -> io::Result<()> {
        self.descent.set_time(name, (SETTLED, 0)).map(drop)
    }

    fn folder(&mut self, name: &[u8], is_changed: bool) -> io::Result<()> {
        let Some(now) = self.descent.folder_time(name)? else {
            return Ok(());
        };
        if let Some(wanted) = self.wanted(is_changed, now) {
            self.descent.set_time(name, wanted)?;
        }
        Ok(())
    }

    /// Returns the time to set, where it is another one.
    fn wanted(&self, is_changed: bool, now: (i64, i64)) -> Option<(i64, i64)> {
        match is_changed {
            true => (now.0 <= self.newest).then_some(self.later),
            false => (now != (SETTLED, 0)).then_some((SETTLED, 0)),
        }
    }
}
