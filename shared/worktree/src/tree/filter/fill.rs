//! A checkout that was written without the filters, or with others.

use super::super::beneath::{Beneath, path};
use super::super::files::is_as_known;
use super::super::index_file;
use super::super::named_checkout::leaf;
use super::super::{Tree, TreeError};
use crate::entry_lookup::EntryLookup;
use crate::file_stamp::FileStamp;
use crate::mode::{FILE, is_kind};
use git2::{IndexEntry, ObjectType, Oid};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Says in a worktree's git folder by which filters its files were written.
const MARK: &str = "premath-filters";
/// The largest file whose content is compared.
const FILE_MAX: u64 = 1 << 30;

impl Tree {
    /// Makes sure that the files of a worktree of the harness's own went through
    /// the filters: a lane is made without. Files that were changed since stay.
    ///
    /// # Errors
    ///
    /// [`TreeError`], where a filter fails, too.
    pub fn fill_filtered(&self) -> Result<(), TreeError> {
        let Some(filters) = &self.filters else {
            return Ok(());
        };
        let mark = self.git_folder().join(MARK);
        let digest = &filters.definitions.digest;
        let is_filled = fs::read_to_string(&mark).is_ok_and(|known| known == *digest);
        if !self.is_disposable() || is_filled {
            return Ok(());
        }
        let target = self.head_tree()?;
        let root = self.beneath()?;
        let names = self.unfilled(&root, &target)?;
        if !names.is_empty() {
            let paths: Vec<&Path> = names.iter().map(|name| path(name)).collect();
            self.smudge(&target, &paths)?;
            let lookup = EntryLookup::new(&self.repository, &target);
            let mut entries = Vec::new();
            for name in &names {
                if let Some(leaf) = leaf(&lookup, name) {
                    entries.extend(self.entry_at(&root, name, leaf)?);
                }
            }
            self.settle(&target, &entries)?;
        }
        fs::write(&mark, digest).map_err(self.refused("write", Path::new(MARK)))
    }

    /// Returns the filtered files of a tree that are as they were written, or as
    /// the commit has them.
    fn unfilled(
        &self,
        root: &Beneath,
        target: &git2::Tree<'_>,
    ) -> Result<BTreeSet<Vec<u8>>, TreeError> {
        let mut names = BTreeSet::new();
        let Ok(index) = index_file::open(&self.index_file()) else {
            return Ok(names);
        };
        let written = rustix::fs::stat(self.index_file()).ok();
        let written = written.map(|stat| FileStamp::of(&stat).modified);
        let lookup = EntryLookup::new(&self.repository, target);
        for entry in index.iter().filter(|entry| self.is_filtered(&entry.path)) {
            let found = root.look(path(&entry.path));
            let found = found.map_err(self.refused("look at", path(&entry.path)))?;
            let Some(stat) = found else { continue };
            let wanted = leaf(&lookup, &entry.path).map(|(_, id)| id);
            let is_wanted = wanted == Some(entry.id) && is_kind(entry.mode, FILE);
            if is_wanted
                && (is_as_known(&entry, &stat, written) || self.is_unfiltered(root, &entry))
            {
                names.insert(entry.path);
            }
        }
        Ok(names)
    }

    /// Returns whether a file is as the commit has it.
    fn is_unfiltered(&self, root: &Beneath, entry: &IndexEntry) -> bool {
        let size = || {
            let odb = self.repository.odb().ok()?;
            odb.read_header(entry.id).ok().map(|(size, _)| size as u64)
        };
        let content = || {
            let size = size().filter(|size| *size <= FILE_MAX)?;
            root.read(path(&entry.path), size).ok()?
        };
        let id = content().and_then(|text| Oid::hash_object(ObjectType::Blob, &text).ok());
        id == Some(entry.id)
    }
}
