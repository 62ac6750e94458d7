//! All files of a tree, written into a folder that holds none.

use super::beneath::path;
use super::descent::Descent;
use super::file_writer::FileWriter;
use super::index_file;
use super::named_checkout::is_of_attributes;
use super::overlay::Leaf;
use super::plain::PlainIndex;
use super::scan::left_out_entry;
use super::sparse::SparseRules;
use super::tree_files::TreeFiles;
use super::{Tree, TreeError};
use crate::index_entry::unknown_entry;
use git2::build::CheckoutBuilder;
use git2::{FileMode, Index};
use rustix::fs::Timestamps;
use std::path::Path;

impl Tree {
    /// Writes all files of HEAD into a worktree that was just made, and its
    /// index.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub(crate) fn fill_head(&self) -> Result<(), TreeError> {
        self.fill(&self.head_tree()?, None)
    }

    /// Returns whether nothing is in the worktree but its `.git` file.
    pub(super) fn holds_nothing(&self) -> bool {
        let root = self.beneath().ok().and_then(|root| root.folder().ok());
        let listing = root.and_then(|root| Descent::new(root).list(b"", 2).ok().flatten());
        listing.is_some_and(|listing| listing.names.iter().all(|(name, _)| name == b".git"))
    }

    /// Writes all files of a tree where none are, and an index of them in the
    /// place of the one on the disk. All files get these times.
    pub(super) fn fill(
        &self,
        target: &git2::Tree<'_>,
        times: Option<Timestamps>,
    ) -> Result<(), TreeError> {
        let failed = "write the index";
        self.plain.take();
        self.repair_index()?;
        let index = index_file::open(&self.index_file());
        let mut index = index.map_err(self.refused("read", Path::new("index")))?;
        index.clear().map_err(self.failed(failed))?;
        let sparse = self.sparse_rules()?;
        let rest = self.fill_as_stored(target, times, sparse.as_ref(), &mut index)?;
        if !rest.is_empty() {
            self.show_attributes(&index)?;
        }
        self.fill_rest(target, &rest, &mut index)?;
        index.write().map_err(self.failed(failed))?;
        let is_whole = sparse.is_none();
        let stamp = self.index_stamp().filter(|_| is_whole);
        if let Some(stamp) = stamp.filter(|stamp| self.may_keep(stamp)) {
            let tree = target.id();
            self.plain.replace(Some(PlainIndex { stamp, tree, index }));
        }
        Ok(())
    }

    /// Writes the files that are as they are stored; returns the others.
    fn fill_as_stored(
        &self,
        target: &git2::Tree<'_>,
        times: Option<Timestamps>,
        sparse: Option<&SparseRules>,
        index: &mut Index,
    ) -> Result<Vec<(Vec<u8>, Leaf)>, TreeError> {
        let mut rest = Vec::new();
        let mut conversion = self.conversion(target);
        let mut writer = FileWriter::new(self, times)?;
        let mut files = TreeFiles::new(&self.repository, target);
        while let Some((name, leaf)) = files.next().map_err(self.failed("read the tree"))? {
            if sparse.is_some_and(|rules| rules.leaves_out(&name)) {
                let entry = left_out_entry(&name, leaf);
                index.add(&entry).map_err(self.failed("write the index"))?;
                continue;
            }
            let is_submodule = leaf.0 == i32::from(FileMode::Commit);
            if is_submodule {
                writer.make_folder(&name)?;
            }
            let entry = match is_submodule || conversion.concerns(&name) {
                true => None,
                false => writer.write(&name, leaf)?,
            };
            let is_known = entry.is_some() || is_submodule;
            let entry = entry.unwrap_or_else(|| unknown_entry(&name, leaf));
            index.add(&entry).map_err(self.failed("write the index"))?;
            if !is_known {
                rest.push((name, leaf));
            }
        }
        Ok(rest)
    }

    /// Writes an index of the files with attributes alone: libgit2 reads them from it, and
    /// finds none in a worktree without an index. It lists no other file as if that were
    /// there: the writing of the others may fail.
    fn show_attributes(&self, index: &Index) -> Result<(), TreeError> {
        let failed = "write the index";
        let shown = index_file::open(&self.index_file());
        let mut shown = shown.map_err(self.refused("read", Path::new("index")))?;
        shown.clear().map_err(self.failed(failed))?;
        let all = index.iter();
        for entry in all.filter(|entry| is_of_attributes(path(&entry.path))) {
            shown.add(&entry).map_err(self.failed(failed))?;
        }
        shown.write().map_err(self.failed(failed))
    }

    /// Has libgit2 write the files that take more than their content.
    fn fill_rest(
        &self,
        target: &git2::Tree<'_>,
        rest: &[(Vec<u8>, Leaf)],
        index: &mut Index,
    ) -> Result<(), TreeError> {
        if rest.is_empty() {
            return Ok(());
        }
        let names: Vec<&Path> = rest.iter().map(|(name, _)| path(name)).collect();
        if rest.len() == index.len() {
            // All of them: by names it would take a walk for each part.
            let mut checkout = CheckoutBuilder::new();
            checkout.force().update_index(false);
            self.repository
                .checkout_tree(target.as_object(), Some(&mut checkout))
                .map_err(self.failed("check the base out"))?;
            self.smudge(target, &names)?;
        } else {
            self.check_out(target, &names, |checkout| {
                checkout.recreate_missing(true).refresh(false);
            })?;
        }
        let root = self.beneath()?;
        for (name, leaf) in rest {
            if let Some(entry) = self.entry_at(&root, name, *leaf)? {
                index.add(&entry).map_err(self.failed("write the index"))?;
            }
        }
        Ok(())
    }
}
