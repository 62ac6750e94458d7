//! Files as a commit has them, and nothing else: what a step left goes.

use super::beneath::{Beneath, open_folder, path};
use super::restore::ROUNDS;
use super::scan::Scan;
use super::{Base, Tree, TreeError};
use crate::entry_lookup::EntryLookup;
use git2::ObjectType;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// What happens to files that git ignores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// They stay: they are the operator's.
    Stay,
    /// They go, but for these, which the setup command made.
    Go(BTreeSet<Vec<u8>>),
}

impl Tree {
    /// Makes branch, index and files those of a commit. Whatever else is in the
    /// worktree is deleted; it was kept before, or is of no worth.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn reset(&self, base: &Base, ignored: &Ignored) -> Result<(), TreeError> {
        let commit = self.find_commit(&base.commit)?;
        let target = commit.tree().map_err(self.failed("read the tree"))?;
        self.forget_look();
        self.forget_dates();
        self.open_up()?;
        self.must_keep_own_files(&base.commit)?;
        self.clear_locks(base.branch.as_deref(), None);
        self.repair_index()?;
        self.point_at(base, commit.id())?;
        self.cleanup();
        self.write_link()?;
        if self.is_checkout && self.holds_nothing() {
            return self.fill(&target, self.times_of_new());
        }
        for round in 0..ROUNDS {
            let mut scan = self.scan(&target)?;
            if self.is_disposable() {
                let linked = std::mem::take(&mut scan.linked);
                scan.paths.extend(linked);
            } else {
                // A person's folders and links are theirs.
                scan.leftover.clear();
            }
            if round == 0 && self.reset_simply(&target, &mut scan, ignored)? {
                self.blobs.borrow_mut().clear();
                return Ok(());
            }
            if round == 0 {
                self.settle(&target, &scan.same)?;
            }
            let taken = self.take_back_own(&mut scan, &target)?;
            let gone = self.delete(&target, &scan, ignored)? || taken;
            if scan.is_clean() && scan.leftover.is_empty() && !gone {
                break;
            }
            self.write_differing(&target, &scan)?;
        }
        self.blobs.borrow_mut().clear();
        self.reread_index();
        self.must_be_clean()
    }

    /// Gives the owner all rights to the worktree's own folder, which a step may
    /// have taken.
    pub(super) fn open_up(&self) -> Result<(), TreeError> {
        let root = self.worktree.as_path();
        open_folder(root, self.is_disposable()).map_err(self.refused("open", root))
    }

    /// Deletes what differs, ignored files and what is in submodules; returns whether there were any.
    pub(super) fn delete(
        &self,
        target: &git2::Tree<'_>,
        scan: &Scan,
        ignored: &Ignored,
    ) -> Result<bool, TreeError> {
        let mut gone: BTreeSet<&[u8]> = BTreeSet::new();
        let mut submodules: BTreeSet<&[u8]> = BTreeSet::new();
        for found in [&scan.nested, &scan.unfit, &scan.paths, &scan.leftover] {
            gone.extend(found.iter().map(Vec::as_slice));
        }
        if let Ignored::Go(kept) = ignored {
            let extra = scan.ignored.iter().filter(|path| !kept.contains(*path));
            gone.extend(extra.map(Vec::as_slice));
            let extra = scan.submodules.iter().filter(|path| !kept.contains(*path));
            submodules.extend(extra.map(Vec::as_slice));
        }
        gone.extend(&submodules);
        let root = self.beneath()?;
        let blockers = self.blockers(&root, target, &scan.paths)?;
        gone.extend(blockers.iter().map(Vec::as_slice));
        for name in &gone {
            let refused = self.refused("delete", path(name));
            if self.has_own_in(name) {
                let why = "it holds ignored files that were there before the batch";
                return Err(refused(io::Error::other(why)));
            }
            root.delete(path(name)).map_err(refused)?;
        }
        for name in submodules {
            let made = root.make_folder(path(name));
            made.map_err(self.refused("make", path(name)))?;
        }
        Ok(!gone.is_empty())
    }

    /// Returns what is on the way to files of a tree that are to be written, and is not
    /// a folder. Git may ignore it, so that it stays with other ignored files.
    fn blockers(
        &self,
        root: &Beneath,
        target: &git2::Tree<'_>,
        paths: &BTreeSet<Vec<u8>>,
    ) -> Result<BTreeSet<Vec<u8>>, TreeError> {
        let left_out = self.left_out(target)?;
        let entries = EntryLookup::new(&self.repository, target);
        let mut blockers = BTreeSet::new();
        for name in paths.iter().filter(|name| !left_out.contains(*name)) {
            let refused = self.refused("reach", path(name));
            let Some(at) = root.blocker(path(name)).map_err(refused)? else {
                continue;
            };
            if entries.get(name).and_then(|entry| entry.kind()) != Some(ObjectType::Blob) {
                continue;
            }
            if self.is_own(at.as_os_str().as_encoded_bytes()) {
                let why = "it was there before the batch, and the commit has a folder there";
                return Err(self.refused("replace", &at)(io::Error::other(why)));
            }
            blockers.insert(at.into_os_string().into_encoded_bytes());
        }
        Ok(blockers)
    }

    /// Writes the files of a tree where they differ.
    fn write_differing(&self, target: &git2::Tree<'_>, scan: &Scan) -> Result<(), TreeError> {
        let entries = EntryLookup::new(&self.repository, target);
        let is_file = |name: &&Vec<u8>| {
            let kind = entries.get(name).and_then(|entry| entry.kind());
            kind == Some(ObjectType::Blob)
        };
        let names = scan.paths.iter().filter(is_file);
        let names: Vec<&Path> = names.map(|name| path(name)).collect();
        self.write_files(target, &names, |checkout| {
            checkout.recreate_missing(true);
        })
    }
}
