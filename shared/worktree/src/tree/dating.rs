//! The times of a checkout's files, by their content: build tools take a file
//! whose time is the one that they saw for unchanged.

use super::beneath::path;
use super::descent::Descent;
use super::index_file;
use super::overlay::Leaf;
use super::scan::index_entry;
use super::{Tree, TreeError};
use crate::mode::{SUBMODULE, is_kind};
use git2::{Index, IndexEntry, IndexEntryExtendedFlag, Oid};
use rustix::fs::{Timespec, Timestamps, UTIME_OMIT};
use std::collections::BTreeSet;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The time of every file and folder that is as in the base: 2001-09-09.
const SETTLED: i64 = 1_000_000_000;

impl Tree {
    /// Returns the times of files that are written into a checkout for the first
    /// time: most of them are as in the base.
    pub(super) fn times_of_new(&self) -> Option<Timestamps> {
        let kept = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
        self.is_checkout.then_some(Timestamps {
            last_access: kept(0, UTIME_OMIT),
            last_modification: kept(SETTLED, 0),
        })
    }

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
        let base = self.find_commit(base)?;
        let base = base.tree().map_err(self.failed("compare the base"))?;
        let changed = self.changed_from(&base)?;
        let rule = (base.id(), newest);
        let dated = self.dated.take().filter(|dated| dated.rule == rule);
        let plain = self.take_plain();
        // What has a time by the same rule keeps it.
        let touched = dated.filter(|_| plain.is_some()).map(|dated| dated.touched);
        let index = match plain {
            Some(_) => None,
            None => {
                let index = index_file::open(&self.index_file());
                Some(index.map_err(self.refused("read", Path::new("index")))?)
            }
        };
        let root = self.beneath()?.folder().map_err(failed)?;
        let mut dates = Dates {
            descent: Descent::new(root),
            later: later_than(newest),
            newest,
            changed,
            moved: Vec::new(),
            folders: BTreeSet::new(),
        };
        if let Some(index) = index.as_ref().or(plain.as_ref().map(|plain| &plain.index)) {
            dates.files(index, touched.as_ref()).map_err(failed)?;
            dates.settle(index, also).map_err(failed)?;
        }
        dates.all_folders().map_err(failed)?;
        self.plain.replace(plain);
        self.settle_times(&dates.moved)?;
        let touched = BTreeSet::new();
        self.dated.replace(Some(Dated { rule, touched }));
        Ok(())
    }

    /// Forgets which files have times by their content: a command may set them.
    pub(crate) fn forget_dates(&self) {
        self.dated.take();
    }

    /// Remembers that a file of a checkout was written or deleted.
    pub(super) fn touch(&self, name: &[u8]) {
        if let Some(dated) = &mut *self.dated.borrow_mut() {
            dated.touched.insert(name.to_vec());
        }
    }

    /// Writes the times of files that are otherwise as in the index.
    fn settle_times(&self, moved: &[(Vec<u8>, Leaf)]) -> Result<(), TreeError> {
        if moved.is_empty() {
            return Ok(());
        }
        let failed = |error: io::Error| self.error("date the files", error.to_string());
        let mut descent = Descent::new(self.beneath()?.folder().map_err(failed)?);
        let mut entries = Vec::new();
        for (name, leaf) in moved {
            if let Some(stat) = descent.look(name).map_err(failed)? {
                entries.push(index_entry(name, *leaf, &stat));
            }
        }
        self.settle(&self.head_tree()?, &entries)
    }

    /// Returns the paths that differ between a tree and HEAD, and the folders
    /// that hold them.
    fn changed_from(&self, base: &git2::Tree<'_>) -> Result<BTreeSet<Vec<u8>>, TreeError> {
        let head = self.head_tree()?;
        let diff = self
            .repository
            .diff_tree_to_tree(Some(base), Some(&head), None)
            .map_err(self.failed("compare the base"))?;
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

/// By which rule the files of a checkout have their times.
pub(super) struct Dated {
    /// The base's tree, and the time that changed files are newer than.
    rule: (Oid, i64),
    /// Files that were written or deleted since.
    touched: BTreeSet<Vec<u8>>,
}

struct Dates {
    descent: Descent,
    newest: i64,
    later: (i64, i64),
    /// What is not as in the base, with the folders that hold it.
    changed: BTreeSet<Vec<u8>>,
    /// Files whose time was set.
    moved: Vec<(Vec<u8>, Leaf)>,
    /// Folders that hold what was looked at.
    folders: BTreeSet<Vec<u8>>,
}

impl Dates {
    /// Dates the files of an index, or only those that were touched.
    fn files(&mut self, index: &Index, touched: Option<&BTreeSet<Vec<u8>>>) -> io::Result<()> {
        let Some(touched) = touched else {
            return index.iter().try_for_each(|entry| self.file(&entry));
        };
        for name in touched {
            match index.get_path(path(name), 0) {
                Some(entry) => self.file(&entry)?,
                None => self.add_folders(name),
            }
        }
        Ok(())
    }

    /// Dates a file, whose time is known from the index.
    fn file(&mut self, entry: &IndexEntry) -> io::Result<()> {
        let left_out = IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
        if is_kind(entry.mode, SUBMODULE) || entry.flags_extended & left_out != 0 {
            return Ok(());
        }
        let name = &entry.path;
        let now = (entry.mtime.seconds(), entry.mtime.nanoseconds());
        let now = (i64::from(now.0), i64::from(now.1));
        let wanted = self.wanted(self.changed.contains(name), now);
        if let Some(wanted) = wanted
            && self.descent.set_time(name, wanted)?
            && let Ok(mode) = i32::try_from(entry.mode)
        {
            self.moved.push((name.clone(), (mode, entry.id)));
        }
        self.add_folders(name);
        Ok(())
    }

    fn add_folders(&mut self, name: &[u8]) {
        let mut name = name;
        while let Some(above) = above(name)
            && !self.folders.contains(above)
        {
            self.folders.insert(above.to_vec());
            name = above;
        }
    }

    /// Dates files that an index does not have.
    fn settle(&mut self, index: &Index, also: &[&Path]) -> io::Result<()> {
        for file in also {
            let name = file.as_os_str().as_bytes();
            if index.get_path(file, 0).is_none() && self.descent.set_time(name, (SETTLED, 0))? {
                self.add_folders(name);
            }
        }
        Ok(())
    }

    fn all_folders(&mut self) -> io::Result<()> {
        for folder in std::mem::take(&mut self.folders) {
            self.folder(&folder, self.changed.contains(&folder))?;
        }
        Ok(())
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
