//! Files moved from one tree to another by what differs between the two, where
//! it is known what is there: nothing else is looked at.

use super::beneath::{Beneath, path};
use super::named_checkout::leaf;
use super::reset::Ignored;
use super::scan::Scan;
use super::{Base, CLEAN_FOR, OwnFiles, Tree, TreeError};
use crate::diff::may_be;
use crate::entry_lookup::EntryLookup;
use crate::mode::SUBMODULE;
use git2::{Delta, IndexEntry, ObjectType, Oid};
use std::collections::BTreeSet;
use std::time::Instant;

impl Tree {
    /// Moves a checkout that has a commit's files, and that only the harness has
    /// written since, to another commit. Returns `false` where that takes a look
    /// at all files; some of them may be changed then.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub(crate) fn moved_on(&self, from: &str, base: &Base) -> Result<bool, TreeError> {
        if !self.has_plain() {
            return Ok(false);
        }
        let commit = self.find_commit(&base.commit)?;
        let target = commit.tree().map_err(self.failed("read the tree"))?;
        // A commit that no branch holds any more may be gone.
        let before = self.find_commit(from).ok();
        let Some(before) = before.and_then(|before| before.tree().ok()) else {
            return Ok(false);
        };
        let Some(entries) = self.files_moved(&before, &target)? else {
            return Ok(false);
        };
        self.clear_locks(base.branch.as_deref(), None);
        self.settle(&target, &entries)?;
        self.point_at(base, commit.id())?;
        Ok(true)
    }

    /// Does what [`Tree::reset`] does, by what [`Tree::state_on`] saw of the files
    /// where that is enough. It is known afterwards that the lane is clean.
    ///
    /// The caller vouches that since then only the harness could write the files:
    /// every process of the commands that could has ended.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn reset_as_seen(&self, base: &Base, ignored: &Ignored) -> Result<(), TreeError> {
        let commit = self.find_commit(&base.commit)?;
        let target = commit.tree().map_err(self.failed("read the tree"))?;
        // After an error half-way too.
        if matches!(self.is_reset_as_seen(base, &target, ignored), Ok(true)) {
            self.blobs.borrow_mut().clear();
        } else {
            self.reset(base, ignored)?;
        }
        self.clean.set(Some((target.id(), Instant::now())));
        Ok(())
    }

    /// Returns whether the files were those of HEAD a moment ago, and no command ran
    /// since: [`Tree::reset_as_seen`] reset them, or [`Tree::settled_changes`] saw
    /// it. It does not count for long: a person may
    /// work in a lane that waits.
    pub fn is_known_clean(&self) -> bool {
        let head = self.head().map(|head| head.tree_id());
        head.is_ok_and(|head| is_fresh(self.clean.get(), head))
    }

    fn is_reset_as_seen(
        &self,
        base: &Base,
        target: &git2::Tree<'_>,
        ignored: &Ignored,
    ) -> Result<bool, TreeError> {
        let Some((before, mut scan)) = self.seen.take() else {
            return Ok(false);
        };
        if !self.has_plain() || !self.is_disposable() || self.own != OwnFiles::default() {
            return Ok(false);
        }
        let Ok(before) = self.repository.find_tree(before) else {
            return Ok(false);
        };
        // What was as in the one tree differs from the other by what differs
        // between the two.
        scan.take_staged(&self.difference(&before, target)?, target, self);
        let linked = std::mem::take(&mut scan.linked);
        scan.paths.extend(linked);
        if !self.is_simple(target, &scan) {
            return Ok(false);
        }
        self.open_up()?;
        self.clear_locks(base.branch.as_deref(), None);
        let commit = self.find_commit(&base.commit)?.id();
        self.point_at(base, commit)?;
        self.cleanup();
        self.write_link()?;
        self.reset_simply(target, &mut scan, ignored)
    }

    /// Puts a lane on a commit, where nothing in it differs from HEAD and nothing
    /// blocks a file that the commit brings. Returns `false` where it takes
    /// more.
    pub(super) fn started(
        &self,
        base: &Base,
        commit: &git2::Commit<'_>,
    ) -> Result<bool, TreeError> {
        let Ok(before) = self.head_tree() else {
            return Ok(false);
        };
        // A look just before counts: nothing ran since.
        let seen = self.clean.take();
        let seen = seen.filter(|_| is_fresh(seen, before.id()) && self.has_plain());
        if seen.is_none() && !self.scan(&before)?.is_clean() {
            return Ok(false);
        }
        if !self.has_plain() {
            return Ok(false);
        }
        let target = commit.tree().map_err(self.failed("read the tree"))?;
        let Some(entries) = self.files_moved(&before, &target)? else {
            return Ok(false);
        };
        self.settle(&target, &entries)?;
        self.point_at(base, commit.id())?;
        // A person may have changed something in a worktree of theirs by now.
        let seen = seen.filter(|_| self.is_disposable());
        self.clean.set(seen.map(|(_, at)| (target.id(), at)));
        Ok(true)
    }

    /// Writes what differs between two trees; returns the entries of the files
    /// that were written, or `None` where that is not enough.
    fn files_moved(
        &self,
        before: &git2::Tree<'_>,
        target: &git2::Tree<'_>,
    ) -> Result<Option<Vec<IndexEntry>>, TreeError> {
        if before.id() == target.id() {
            return Ok(Some(Vec::new()));
        }
        let root = self.beneath()?;
        let Ok(difference) = self.difference(before, target) else {
            return Ok(None);
        };
        let mut names = BTreeSet::new();
        for (delta, modes) in difference.changes() {
            if may_be(modes, SUBMODULE) {
                return Ok(None);
            }
            let Some(name) = delta.new_file().path_bytes() else {
                return Ok(None);
            };
            // A file that git ignores may be where the commit has one.
            if delta.status() == Delta::Added && !is_free(&root, name) {
                return Ok(None);
            }
            names.insert(name.to_vec());
        }
        let is_ordinary = |name: &Vec<u8>| is_plain_name(name) && !self.is_skipped(name);
        if !names.iter().all(is_ordinary) {
            return Ok(None);
        }
        for name in &names {
            self.touch(name);
            let deleted = root.delete(path(name));
            deleted.map_err(self.refused("delete", path(name)))?;
        }
        self.written(&root, target, &names)
    }

    /// Resets files of which one look showed all that differs; returns `false`
    /// where it takes another look.
    pub(super) fn reset_simply(
        &self,
        target: &git2::Tree<'_>,
        scan: &mut Scan,
        ignored: &Ignored,
    ) -> Result<bool, TreeError> {
        if !self.is_simple(target, scan) {
            return Ok(false);
        }
        self.delete(target, scan, ignored)?;
        let root = self.beneath()?;
        let Some(mut entries) = self.written(&root, target, &scan.paths)? else {
            return Ok(false);
        };
        // By another case of its name, one of them may have been deleted.
        let is_there =
            |entry: &IndexEntry| root.look(path(&entry.path)).is_ok_and(|at| at.is_some());
        if !scan.same.iter().all(is_there) {
            return Ok(false);
        }
        entries.append(&mut scan.same);
        self.settle(target, &entries)?;
        Ok(true)
    }

    /// Returns whether all that differs are files whose paths have no effect on
    /// others: rules by which git ignores or writes files are not among them, so
    /// that a look by other rules would show nothing else.
    fn is_simple(&self, target: &git2::Tree<'_>, scan: &Scan) -> bool {
        let entries = EntryLookup::new(&self.repository, target);
        let is_file = |name: &Vec<u8>| {
            let entry = entries.get(name);
            entry.is_none_or(|entry| entry.kind() == Some(ObjectType::Blob))
        };
        scan.nested.is_empty()
            && scan.unfit.is_empty()
            && scan.leftover.is_empty()
            && scan.moved.is_empty()
            && scan
                .paths
                .iter()
                .all(|name| is_plain_name(name) && is_file(name))
    }

    /// Writes files of a tree where nothing is now; the others of these paths
    /// are to be absent. Returns the entries of what was written, or `None` where
    /// something else is there afterwards.
    fn written(
        &self,
        root: &Beneath,
        target: &git2::Tree<'_>,
        names: &BTreeSet<Vec<u8>>,
    ) -> Result<Option<Vec<IndexEntry>>, TreeError> {
        let left_out = self.left_out(target)?;
        let lookup = EntryLookup::new(&self.repository, target);
        let leaf = |name: &[u8]| leaf(&lookup, name).filter(|_| !left_out.contains(name));
        let files: Vec<_> = names
            .iter()
            .filter_map(|name| Some((path(name), leaf(name)?)))
            .collect();
        let entries = self.put_files(target, &files, |checkout| {
            checkout.recreate_missing(true).refresh(false);
        })?;
        let Some(entries) = entries.into_iter().collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let is_absent = |name: &Vec<u8>| leaf(name).is_some() || is_free(root, name);
        Ok(names.iter().all(is_absent).then_some(entries))
    }
}

/// Returns whether a tree is the one that was clean a moment ago.
fn is_fresh(clean: Option<(Oid, Instant)>, tree: Oid) -> bool {
    clean.is_some_and(|(known, at)| known == tree && at.elapsed() < CLEAN_FOR)
}

/// Returns whether nothing is at a path, and nothing but folders on the way.
fn is_free(root: &Beneath, name: &[u8]) -> bool {
    root.look(path(name)).is_ok_and(|found| found.is_none())
        && root.blocker(path(name)).is_ok_and(|found| found.is_none())
}

/// Returns whether a file has no effect on how git treats others.
fn is_plain_name(name: &[u8]) -> bool {
    let file = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
    !file.to_ascii_lowercase().starts_with(b".git")
}
