//! Files of a tree that are written by their names.

use super::beneath::{Beneath, kind, path};
use super::file_writer::FileWriter;
use super::overlay::Leaf;
use super::scan::index_entry;
use super::{Tree, TreeError};
use crate::entry_lookup::EntryLookup;
use crate::mode::mode_of;
use git2::build::CheckoutBuilder;
use git2::{FileMode, IndexEntry, ObjectType, Oid};
use rustix::fs::FileType;
use std::io;
use std::path::Path;

/// How many files one checkout names: libgit2 compares each of its files with
/// each of the names.
pub(super) const NAMED_MAX: usize = 500;

impl Tree {
    /// Writes those files of a tree that are named, whatever is there, and takes
    /// their times into the index. Files that a sparse checkout leaves out stay
    /// away.
    pub(super) fn write_files(
        &self,
        target: &git2::Tree<'_>,
        names: &[&Path],
        adjust: impl Fn(&mut CheckoutBuilder<'_>),
    ) -> Result<(), TreeError> {
        let left_out = self.left_out(target)?;
        let bytes = |name: &Path| name.as_os_str().as_encoded_bytes().to_vec();
        let names = names.iter().copied();
        let names: Vec<&Path> = names
            .filter(|name| !left_out.contains(&bytes(name)))
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        let lookup = EntryLookup::new(&self.repository, target);
        let leaf = |name: &&Path| leaf(&lookup, name.as_os_str().as_encoded_bytes());
        let files = names.iter().filter_map(|name| Some((*name, leaf(name)?)));
        let files: Vec<(&Path, Leaf)> = files.collect();
        let entries = self.put_files(target, &files, adjust)?;
        let entries: Vec<IndexEntry> = entries.into_iter().flatten().collect();
        self.settle(target, &entries)
    }

    /// Writes files of a tree, whatever is there, and no others; the index
    /// stays. Returns their index entries, `None` for one in whose place
    /// something else is then.
    pub(super) fn put_files(
        &self,
        target: &git2::Tree<'_>,
        files: &[(&Path, Leaf)],
        adjust: impl Fn(&mut CheckoutBuilder<'_>),
    ) -> Result<Vec<Option<IndexEntry>>, TreeError> {
        let mut entries = Vec::with_capacity(files.len());
        if files.is_empty() {
            return Ok(entries);
        }
        let mut conversion = self.conversion(target);
        let mut writer = FileWriter::new(self, None)?;
        let mut rest = Vec::new();
        for (at, leaf) in files {
            let name = at.as_os_str().as_encoded_bytes();
            let written = match conversion.concerns(name) {
                true => None,
                false => writer.write(name, *leaf)?,
            };
            if written.is_none() {
                rest.push((entries.len(), *at, *leaf));
            }
            entries.push(written);
        }
        if rest.is_empty() {
            return Ok(entries);
        }
        let names: Vec<&Path> = rest.iter().map(|(_, at, _)| *at).collect();
        self.check_out(target, &names, adjust)?;
        let root = self.beneath()?;
        for (number, at, leaf) in rest {
            entries[number] = self.entry_at(&root, at.as_os_str().as_encoded_bytes(), leaf)?;
        }
        Ok(entries)
    }

    /// Returns the index entry of a file that was written; `None` where
    /// something else is there now.
    pub(super) fn entry_at(
        &self,
        root: &Beneath,
        name: &[u8],
        leaf: (i32, Oid),
    ) -> Result<Option<IndexEntry>, TreeError> {
        let found = root.look(path(name));
        let found = found.map_err(self.refused("look at", path(name)))?;
        let wanted = match leaf.0 == i32::from(FileMode::Link) {
            true => FileType::Symlink,
            false => FileType::RegularFile,
        };
        let found = found.filter(|stat| kind(stat) == wanted);
        Ok(found.map(|stat| index_entry(name, leaf, &stat)))
    }

    /// Has libgit2 write those files of a tree that are named, whatever is there,
    /// and no others: a checkout without names would write what a sparse checkout
    /// leaves out. The index stays: libgit2 would write it whole for each part.
    pub(super) fn check_out(
        &self,
        target: &git2::Tree<'_>,
        all: &[&Path],
        adjust: impl Fn(&mut CheckoutBuilder<'_>),
    ) -> Result<(), TreeError> {
        self.must_be_ways(all)?;
        // libgit2 reads attributes where they are in the worktree.
        let (rules, others): (Vec<&Path>, Vec<&Path>) =
            all.iter().partition(|name| is_of_attributes(name));
        for names in rules.chunks(NAMED_MAX).chain(others.chunks(NAMED_MAX)) {
            let mut checkout = CheckoutBuilder::new();
            checkout
                .force()
                .disable_pathspec_match(true)
                .update_index(false);
            adjust(&mut checkout);
            for name in names {
                checkout.path(name);
            }
            self.repository
                .checkout_tree(target.as_object(), Some(&mut checkout))
                .map_err(self.failed("check the base out"))?;
        }
        self.smudge(target, all)
    }

    /// Refuses paths on which anything but folders lies, or at which a link is:
    /// libgit2 would write where a link leads to.
    fn must_be_ways(&self, all: &[&Path]) -> Result<(), TreeError> {
        let root = self.beneath()?;
        for at in all {
            let is_way = || -> io::Result<bool> {
                let found = root.look(at)?;
                let is_link = found.is_some_and(|stat| kind(&stat) == FileType::Symlink);
                Ok(!is_link && root.blocker(at)?.is_none())
            };
            let checked = is_way().and_then(|is_way| match is_way {
                true => Ok(()),
                false => Err(io::Error::other("a link or a file blocks it")),
            });
            checked.map_err(self.refused("write", at))?;
        }
        Ok(())
    }
}

/// Returns whether a file has attributes of its folder.
pub(super) fn is_of_attributes(name: &Path) -> bool {
    name.file_name()
        .is_some_and(|name| name == ".gitattributes")
}

/// Returns mode and object of a file of a tree.
pub(super) fn leaf(lookup: &EntryLookup<'_>, name: &[u8]) -> Option<(i32, Oid)> {
    let entry = lookup.get(name)?;
    (entry.kind() == Some(ObjectType::Blob)).then(|| (mode_of(&entry), entry.id()))
}
