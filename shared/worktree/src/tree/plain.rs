//! The index on the disk, kept in memory while it is known which tree it has:
//! it is then neither read again nor compared with a tree as a whole.
//!
//! The index on the disk may be the step's. What is kept counts only while the
//! file's numbers and times are those of the file that was read or written, and
//! before a command runs it is dropped where a change would not show in them.

use super::beneath::{kind, path};
use super::index_file;
use super::restore::refresh;
use super::{Tree, TreeError};
use crate::diff::Difference;
use crate::file_stamp::FileStamp;
use crate::index_entry::unknown_entry;
use git2::{Delta, Index, IndexEntry, Oid};
use rustix::fs::FileType;
use std::path::PathBuf;

/// An index on the disk that has what a tree has and hides nothing, while its
/// times say that it is the same.
pub(super) struct PlainIndex {
    pub(super) stamp: FileStamp,
    pub(super) tree: Oid,
    pub(super) index: Index,
}

impl Tree {
    /// Makes sure that what a command does that is about to run will be seen.
    pub fn before_command(&self) {
        self.forget_look();
        let mut plain = self.plain.borrow_mut();
        if plain
            .as_ref()
            .is_some_and(|plain| !plain.stamp.is_settled())
        {
            *plain = None;
        }
    }

    /// Forgets what was seen of the files, and the settings.
    pub(super) fn forget_look(&self) {
        self.clean.take();
        self.seen.take();
        self.settings.take();
    }

    /// Returns the numbers and times of the index on the disk.
    pub(super) fn index_stamp(&self) -> Option<FileStamp> {
        let stat = rustix::fs::lstat(self.index_file()).ok()?;
        // Through a link the file behind it could change.
        (kind(&stat) == FileType::RegularFile).then(|| FileStamp::of(&stat))
    }

    pub(super) fn index_file(&self) -> PathBuf {
        self.repository.path().join("index")
    }

    /// Returns whether it is known which tree the index on the disk has.
    pub(super) fn has_plain(&self) -> bool {
        let plain = self.plain.borrow();
        plain
            .as_ref()
            .is_some_and(|plain| Some(plain.stamp) == self.index_stamp())
    }

    /// Takes what is known about the index on the disk, if that is still so.
    pub(super) fn take_plain(&self) -> Option<PlainIndex> {
        let is_known = self.has_plain();
        let plain = self.plain.take().filter(|_| is_known)?;
        // A tree that no commit holds any more may be gone.
        self.repository.find_tree(plain.tree).ok()?;
        Some(plain)
    }

    /// Compares two trees.
    pub(super) fn difference<'a>(
        &'a self,
        before: &git2::Tree<'a>,
        after: &git2::Tree<'a>,
    ) -> Result<Difference<'a>, TreeError> {
        Difference::of_trees(&self.repository, Some(before), after)
            .map_err(self.failed("compare two trees"))
    }

    /// Makes the index on the disk a tree's by what differs from the one that it
    /// has, with the times of `entries`. Returns `false` where it is not known
    /// which one that is.
    pub(super) fn settle_plain(
        &self,
        target: &git2::Tree<'_>,
        entries: &[IndexEntry],
    ) -> Result<bool, TreeError> {
        let failed = "write the index";
        let Some(mut plain) = self.take_plain() else {
            return Ok(false);
        };
        if plain.tree != target.id() || !entries.is_empty() {
            let before = self.repository.find_tree(plain.tree).ok();
            let difference = before.and_then(|before| self.difference(&before, target).ok());
            let Some(difference) = difference else {
                return Ok(false);
            };
            let index = &mut plain.index;
            replace(index, &difference)
                .and_then(|()| refresh(index, Vec::new(), entries))
                .and_then(|()| index.write())
                .map_err(self.failed(failed))?;
            plain.tree = target.id();
        }
        if let Some(stamp) = self.index_stamp().filter(|stamp| self.may_keep(stamp)) {
            plain.stamp = stamp;
            self.plain.replace(Some(plain));
        }
        Ok(true)
    }

    /// Keeps the index on the disk, which was just made a tree's.
    pub(super) fn keep_plain(&self, tree: Oid) {
        let stamp = self.index_stamp().filter(|stamp| self.may_keep(stamp));
        if let Some(stamp) = stamp
            && let Ok(index) = index_file::open(&self.index_file())
        {
            self.plain.replace(Some(PlainIndex { stamp, tree, index }));
        }
    }

    /// Returns whether an index with these times may be kept until a command
    /// runs. A person's git may write that of the main worktree at any time.
    pub(super) fn may_keep(&self, stamp: &FileStamp) -> bool {
        stamp.is_settled() || !self.is_main() || self.is_checkout
    }
}

/// Replaces entries of an index by what differs between two trees; nothing is
/// known about the files.
fn replace(index: &mut Index, difference: &Difference<'_>) -> Result<(), git2::Error> {
    for delta in difference.deltas() {
        if let Some(name) = delta.old_file().path_bytes()
            && delta.status() != Delta::Added
        {
            index.remove(path(name), 0)?;
        }
    }
    for (delta, [_, after]) in difference.changes() {
        let file = delta.new_file();
        if let (Some(name), Some(mode)) = (file.path_bytes(), after) {
            index.add(&unknown_entry(name, (mode as i32, file.id())))?;
        }
    }
    Ok(())
}
