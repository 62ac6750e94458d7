//! What differs from a commit in index and working tree, and the tree that
//! this makes.
//!
//! The index on the disk is the step's: it may hold anything, and hide
//! anything. It is read for the times of files alone, into a copy; what is
//! staged counts only for which paths are looked at.

use super::beneath::{Beneath, kind, path};
use super::commit::Look;
use super::entry_name::{is_fit, is_fit_link};
use super::index_file;
use super::overlay::{Leaf, Overlay};
use super::plain::PlainIndex;
use super::sparse::Absence;
use super::{Tree, TreeError};
use crate::diff::{Difference, UNKNOWN};
use crate::entry_lookup::EntryLookup;
use crate::file_stamp::FileStamp;
use crate::index_entry::unknown_entry;
use crate::mode::{FILE, LINK, SUBMODULE, canonical, is_kind};
use git2::{
    Delta, Index, IndexEntry, IndexEntryExtendedFlag, IndexEntryFlag, IndexTime, ObjectType, Oid,
};
use rustix::fs::{FileType, Stat};
use std::collections::BTreeSet;
use std::io;

/// The paths that differ; the harness's own are skipped.
#[derive(Default)]
pub(super) struct Scan {
    /// Files and links, changed, new or gone.
    pub(super) paths: BTreeSet<Vec<u8>>,
    /// Nested git repositories: their folders, or their `.git` alone where the
    /// folder holds files of ours.
    pub(super) nested: BTreeSet<Vec<u8>>,
    /// Folders that lie too deep, hold too much, or cannot be read.
    pub(super) unfit: BTreeSet<Vec<u8>>,
    /// Files and folders that git ignores; what is in such a folder is not
    /// listed.
    pub(super) ignored: BTreeSet<Vec<u8>>,
    /// Folders that no checkout makes: empty, or without a right of their owner.
    /// They are not part of a step's work; only a reset looks at them.
    pub(super) leftover: BTreeSet<Vec<u8>>,
    /// Tracked files with more than one name: who writes one writes the other.
    /// Only a reset looks at them.
    pub(super) linked: BTreeSet<Vec<u8>>,
    /// Submodules with files in them. They are not part of a step's work; only a
    /// reset looks at them.
    pub(super) submodules: BTreeSet<Vec<u8>>,
    /// Files of a person's own that a step moved, where they are now.
    pub(super) moved: BTreeSet<Vec<u8>>,
    /// Files that the index had other times of, and that are the same.
    pub(super) same: Vec<IndexEntry>,
}

impl Scan {
    /// Returns whether nothing differs.
    pub(super) fn is_clean(&self) -> bool {
        self.paths.is_empty() && self.nested.is_empty() && self.unfit.is_empty()
    }

    /// Takes in what is staged: it counts for which paths are looked at.
    pub(super) fn take_staged(
        &mut self,
        staged: &Difference<'_>,
        target: &git2::Tree<'_>,
        tree: &Tree,
    ) {
        for (delta, modes) in staged.changes() {
            // Git's index has only the modes that git writes; git sees no change here.
            if let [Some(before), Some(after)] = modes
                && delta.status() == Delta::Modified
                && ![before, after].contains(&UNKNOWN)
                && delta.old_file().id() == delta.new_file().id()
                && canonical(before) == canonical(after)
            {
                continue;
            }
            for (file, mode) in [delta.old_file(), delta.new_file()].iter().zip(modes) {
                let Some(bytes) = file.path_bytes() else {
                    continue;
                };
                if tree.is_skipped(bytes) {
                    continue;
                }
                let is_link = mode.is_some_and(|mode| is_kind(mode, SUBMODULE));
                if is_link && target.get_path(path(bytes)).is_err() {
                    self.nested.insert(bytes.to_vec());
                } else {
                    self.paths.insert(bytes.to_vec());
                }
            }
        }
    }
}

/// The tree as it is.
pub(super) struct Content {
    pub(super) tree: Oid,
    /// Index entries for the changed files.
    pub(super) entries: Vec<IndexEntry>,
    /// What git cannot take: files that cannot be read, names that it refuses.
    pub(super) refused: BTreeSet<Vec<u8>>,
    /// The first of them that could not be stored, such as on a full disk, and why.
    unstored: Option<(Vec<u8>, String)>,
    /// What differs from the base.
    overlay: Overlay,
}

impl Content {
    /// Returns the first file that could not be stored, and why.
    pub(super) fn unstored(&self) -> Option<(&[u8], &str)> {
        let (name, why) = self.unstored.as_ref()?;
        Some((name, why))
    }

    /// Returns what is needed to store the tree later.
    pub(super) fn into_look(self, base: Oid) -> Look {
        Look {
            base,
            tree: self.tree,
            overlay: self.overlay,
        }
    }
}

/// A file's content as it was stored, while its times say that it is the same.
pub(super) struct StoredContent {
    pub(super) stamp: FileStamp,
    pub(super) id: Oid,
}

impl Tree {
    /// Returns what differs from a tree.
    pub(super) fn scan(&self, target: &git2::Tree<'_>) -> Result<Scan, TreeError> {
        let mut scan = Scan::default();
        match self.take_plain() {
            Some(plain) if self.is_staged_known(&plain, target, &mut scan) => {
                self.look_at_files(&plain.index, &mut scan)?;
                self.plain.replace(Some(plain));
            }
            _ => self.rescan(target, &mut scan)?,
        }
        if !scan.nested.is_empty() {
            let root = self.beneath()?;
            scan.nested.retain(|nested| {
                let folder = root.look(path(nested)).ok().flatten();
                folder.is_some_and(|stat| kind(&stat) == FileType::Directory)
                    || path(nested).file_name().is_some_and(|name| name == ".git")
            });
            scan.paths.retain(|path| !scan.nested.contains(path));
        }
        self.own.leave_out(&mut scan, target, &self.worktree);
        Ok(scan)
    }

    /// Takes in how the index that is kept differs from a tree. Returns `false`
    /// where that cannot be known: a tree that no commit holds any more may be
    /// gone in parts.
    fn is_staged_known(
        &self,
        plain: &PlainIndex,
        target: &git2::Tree<'_>,
        scan: &mut Scan,
    ) -> bool {
        if plain.tree == target.id() {
            return true;
        }
        let before = self.repository.find_tree(plain.tree).ok();
        let Some(staged) = before.and_then(|before| self.difference(&before, target).ok()) else {
            return false;
        };
        scan.take_staged(&staged, target, self);
        true
    }

    /// Looks with the index as it is on the disk, and remembers that where it has
    /// what the tree has.
    fn rescan(&self, target: &git2::Tree<'_>, scan: &mut Scan) -> Result<(), TreeError> {
        let stamp = self.index_stamp().filter(|stamp| self.may_keep(stamp));
        let (index, hides) = self.index_read(target)?;
        let staged = Difference::of_index(&self.repository, target, &index);
        let staged = staged.map_err(self.failed("read the status"))?;
        scan.take_staged(&staged, target, self);
        // Exactly: what is skipped in a look is settled with the index, too.
        let is_plain = !hides && !self.is_sparse() && staged.is_empty();
        drop(staged);
        self.look_at_files(&index, scan)?;
        if let Some(stamp) = stamp.filter(|_| is_plain) {
            self.plain.replace(Some(PlainIndex {
                stamp,
                tree: target.id(),
                index,
            }));
        }
        Ok(())
    }

    /// Returns a copy of the index on the disk in which nothing hides a
    /// change; a tree's own index where that on the disk cannot be read.
    pub(super) fn index_copy(&self, target: &git2::Tree<'_>) -> Result<Index, TreeError> {
        self.index_read(target).map(|(index, _)| index)
    }

    /// Returns the copy, and whether that on the disk hides anything or cannot be
    /// read.
    fn index_read(&self, target: &git2::Tree<'_>) -> Result<(Index, bool), TreeError> {
        // A running step may have put anything in its place.
        let opened = match self.looks_only {
            true => index_file::open_copy(&self.index_file()),
            false => index_file::open(&self.index_file()),
        };
        let mut index = match opened.ok() {
            // As one that was deleted reads.
            Some(index) if index.is_empty() => self.with_left_out(index, target)?,
            Some(index) => index,
            None => return Ok((self.index_of(target)?, true)),
        };
        let hides = self.uncover(&mut index)?;
        Ok((index, hides))
    }

    /// Takes the flags from an index that keep git from looking at files; what
    /// a sparse checkout leaves out stays left out. Returns whether there are
    /// any.
    pub(super) fn uncover(&self, index: &mut Index) -> Result<bool, TreeError> {
        let added = IndexEntryExtendedFlag::INTENT_TO_ADD.bits();
        let skipped = IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
        let valid = IndexEntryFlag::VALID.bits();
        let flagged: Vec<IndexEntry> = index
            .iter()
            .filter(|entry| {
                entry.flags & valid != 0 || entry.flags_extended & (added | skipped) != 0
            })
            .collect();
        if flagged.is_empty() {
            return Ok(false);
        }
        let sparse = self.is_sparse();
        let root = self.beneath()?;
        let mut absence = Absence::default();
        for mut entry in flagged {
            let is_skipped = sparse && entry.flags_extended & skipped != 0;
            let is_absent = |at: &[u8]| root.look(path(at)).ok().flatten().is_none();
            if is_skipped && absence.has(&entry.path, is_absent) {
                continue;
            }
            if entry.flags_extended & added != 0 {
                let _ = index.remove(path(&entry.path), 0);
                continue;
            }
            entry.flags &= !valid;
            entry.flags_extended = 0;
            if index.add(&entry).is_err() {
                let _ = index.remove(path(&entry.path), 0);
            }
        }
        Ok(true)
    }

    /// Returns a tree with the changes in it; `store` writes it.
    pub(super) fn content(
        &self,
        base: &git2::Tree<'_>,
        scan: &Scan,
        store: bool,
    ) -> Result<Content, TreeError> {
        let root = self.beneath()?;
        let failed = "stage the changes";
        let mut names = Index::new().map_err(self.failed(failed))?;
        let mut overlay = Overlay::default();
        let mut entries = Vec::new();
        let (mut refused, mut unstored) = (BTreeSet::new(), None);
        refused.extend(scan.unfit.iter().cloned());
        let lookup = EntryLookup::new(&self.repository, base);
        let changed: Vec<&[u8]> = scan.paths.iter().map(Vec::as_slice).collect();
        self.holes.begin();
        self.clean(&changed)?;
        for name in &scan.paths {
            if !is_fit(name) {
                refused.insert(name.clone());
                continue;
            }
            let old = lookup.get(name);
            let old: Option<Leaf> = old.map(|entry| (entry.filemode_raw(), entry.id()));
            let found = match self.leaf(&root, name, old) {
                Ok(found) => found,
                Err(error) => {
                    // What git cannot store is not the work's fault.
                    if error.kind() == io::ErrorKind::Other {
                        unstored.get_or_insert_with(|| (name.clone(), error.to_string()));
                    }
                    refused.insert(name.clone());
                    continue;
                }
            };
            let is_submodule = old.is_some_and(|(mode, _)| is_kind(mode as u32, SUBMODULE));
            let leaf = match found {
                // No step replaces a submodule.
                Found::File(..) if is_submodule => {
                    refused.insert(name.clone());
                    continue;
                }
                Found::File(leaf, stat) => {
                    let entry = index_entry(name, leaf, &stat);
                    if names.add(&entry).is_err() {
                        refused.insert(name.clone());
                        continue;
                    }
                    entries.push(entry);
                    Some(leaf)
                }
                // A submodule is what the commit says.
                Found::Folder => old.filter(|_| is_submodule),
                Found::Nothing => None,
            };
            overlay.put(name, leaf);
        }
        let tree = overlay
            .digest(&self.repository, base, store)
            .map_err(self.failed("write the tree"))?;
        Ok(Content {
            tree,
            entries,
            refused,
            unstored,
            overlay,
        })
    }

    /// Returns the mode and content of a file; the content is stored. `before` is what
    /// the operator's commit has there: of that, a link may lead anywhere, and a file has
    /// its mode where git is to ignore modes.
    pub(super) fn leaf(
        &self,
        root: &Beneath,
        name: &[u8],
        before: Option<Leaf>,
    ) -> io::Result<Found> {
        let Some(stat) = root.look(path(name))? else {
            return Ok(Found::Nothing);
        };
        let other = |error: git2::Error| io::Error::other(error.message().to_owned());
        match kind(&stat) {
            FileType::RegularFile => {
                let executable = stat.st_mode & 0o100 != 0;
                let mode = if executable { 0o100_755 } else { 0o100_644 };
                // In place of a link, its content would be a link's text.
                let is_file = |(mode, _): &Leaf| is_kind(*mode as u32, FILE);
                let before = before.filter(is_file);
                let kept = before.filter(|_| !self.settings().file_mode);
                let mode = kept.map_or(mode, |(mode, _)| mode);
                let stamp = FileStamp::of(&stat);
                // The content of a filtered file was read already.
                if !self.holes.take(&stat) && !self.is_filtered(name) {
                    return Err(io::ErrorKind::FileTooLarge.into());
                }
                if let Some(id) = self.known(name, stamp) {
                    return Ok(Found::File((mode, id), Box::new(stat)));
                }
                if self.is_filtered(name) {
                    let id = self.cleaned(name, stamp);
                    let id = id.ok_or(io::ErrorKind::InvalidData)?;
                    return Ok(Found::File((mode, id), Box::new(stat)));
                }
                let Some(id) = self.stored(root, name, before.map(|(_, id)| id))? else {
                    return Ok(Found::Nothing);
                };
                let unchanged = !self.looks_only
                    && root
                        .look(path(name))?
                        .is_some_and(|after| FileStamp::of(&after) == stamp);
                if unchanged && stamp.is_settled() {
                    let mut blobs = self.blobs.borrow_mut();
                    blobs.insert(name.to_vec(), StoredContent { stamp, id });
                }
                Ok(Found::File((mode, id), Box::new(stat)))
            }
            FileType::Symlink => {
                let text = root.read_link(path(name))?;
                let id = Oid::hash_object(ObjectType::Blob, &text).map_err(other)?;
                let is_as_before =
                    before.is_some_and(|(mode, of)| is_kind(mode as u32, LINK) && of == id);
                if !is_as_before && !is_fit_link(name, &text) {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
                if !is_as_before && !self.looks_only {
                    self.repository.blob(&text).map_err(other)?;
                }
                Ok(Found::File((0o120_000, id), Box::new(stat)))
            }
            FileType::Directory => Ok(Found::Folder),
            _ => Ok(Found::Nothing),
        }
    }

    /// Returns a file's content where it was stored before, is still there,
    /// and the file has not changed.
    pub(super) fn known(&self, name: &[u8], stamp: FileStamp) -> Option<Oid> {
        let blobs = self.blobs.borrow();
        let known = blobs.get(name).filter(|known| known.stamp == stamp)?;
        let odb = self.repository.odb().ok()?;
        odb.exists(known.id).then_some(known.id)
    }
}

pub(super) enum Found {
    File(Leaf, Box<Stat>),
    Folder,
    Nothing,
}

/// Returns the index entry of a file that a sparse checkout leaves out.
pub(super) fn left_out_entry(name: &[u8], leaf: Leaf) -> IndexEntry {
    let mut entry = unknown_entry(name, leaf);
    entry.flags |= IndexEntryFlag::EXTENDED.bits();
    entry.flags_extended |= IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
    entry
}

/// Makes the index entry of a file; git keeps the lower half of its numbers.
pub(super) fn index_entry(name: &[u8], (mode, id): Leaf, stat: &Stat) -> IndexEntry {
    let stamp = FileStamp::of(stat);
    let time = |(seconds, nanos): (i64, u64)| IndexTime::new(seconds as i32, nanos as u32);
    IndexEntry {
        ctime: time(stamp.changed),
        mtime: time(stamp.modified),
        dev: stamp.device as u32,
        ino: stamp.inode as u32,
        mode: canonical(mode as u32),
        uid: stat.st_uid,
        gid: stat.st_gid,
        file_size: stamp.size as u32,
        id,
        flags: 0,
        flags_extended: 0,
        path: name.to_vec(),
    }
}
