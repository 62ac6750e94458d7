//! A step's branch and what it becomes on the target's tip.

use super::aside::Aside;
use super::beneath::path;
use super::{Base, Tree, TreeError};
use crate::merged_index::clashes;
use crate::reference_deletion::delete;
use crate::reference_write::Target;
use git2::{Commit, Delta, Index};
use std::collections::BTreeSet;

/// The result of merging work and tip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// They go together, in this tree.
    Clean(String),
    /// Paths that both changed in ways that do not go together, sorted.
    Conflict(Vec<String>),
}

impl Tree {
    /// Puts a clean lane on a branch at a commit: files, index and HEAD.
    /// Ignored files stay; those that the commit has itself are put aside.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn start_at(&self, base: &Base, issue_id: &str, generation: u64) -> Result<(), TreeError> {
        let commit = self.find_commit(&base.commit)?;
        self.must_keep_own_files(&base.commit)?;
        self.clear_locks(base.branch.as_deref(), None);
        self.repair_index()?;
        self.blobs.borrow_mut().clear();
        self.ended.borrow_mut().clear();
        self.seen.take();
        self.settings.take();
        if self.started(base, &commit)? {
            return Ok(());
        }
        self.forget_look();
        self.blobs.borrow_mut().clear();
        let mut aside = Aside::new(self, issue_id, generation)?;
        let done = self
            .make_room(&commit, &mut aside)
            .and_then(|()| self.restore(base, &commit, &BTreeSet::new(), &mut aside));
        self.blobs.borrow_mut().clear();
        self.reread_index();
        done?;
        self.must_be_clean()
    }

    /// Puts aside what git does not hold where a commit brings a file.
    fn make_room(&self, commit: &Commit<'_>, aside: &mut Aside<'_>) -> Result<(), TreeError> {
        let failed = "compare with HEAD";
        let Ok(before) = self.head_tree() else {
            return Ok(());
        };
        let target = commit.tree().map_err(self.failed(failed))?;
        let diff = self
            .repository
            .diff_tree_to_tree(Some(&before), Some(&target), None)
            .map_err(self.failed(failed))?;
        let added = diff.deltas().filter(|delta| delta.status() == Delta::Added);
        for delta in added {
            if let Some(name) = delta.new_file().path_bytes() {
                aside.take(path(name))?;
            }
        }
        Ok(())
    }

    /// Makes the branch of a step that is about to begin.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn make_branch(&self, base: &Base) -> Result<(), TreeError> {
        let Some(branch) = &base.branch else {
            return Ok(());
        };
        let commit = self.find_commit(&base.commit)?.id();
        self.repository
            .reference(branch, commit, false, "premath: a step's branch")
            .map(drop)
            .map_err(self.failed("make the step's branch"))
    }

    /// Leaves a branch for its commit alone, and removes it where what is on
    /// it is held by other commits too.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn leave(&self, branch: &str, holders: &[&str]) -> Result<(), TreeError> {
        let now = self.base()?;
        if now.branch.as_deref() == Some(branch) {
            let commit = self.find_commit(&now.commit)?.id();
            let message = "premath: off the step's branch";
            self.point_head(Target::Commit(commit), message)
                .map_err(self.failed("leave the step's branch"))?;
        }
        self.clear_locks(Some(branch), None);
        let Ok(reference) = self.repository.find_reference(branch) else {
            return Ok(());
        };
        let tip = reference
            .peel_to_commit()
            .map_err(self.failed("read the step's branch"))?
            .id();
        for holder in holders {
            if self.continues_from(self.find_commit(holder)?.id(), tip)? {
                let deleted = delete(&self.repository, reference);
                return deleted.map_err(self.failed("remove the step's branch"));
            }
        }
        Ok(())
    }

    /// Brings what work changed since its base onto a tip, in memory: no file is
    /// touched. Nothing else of the base is brought there: a person may have taken the
    /// tip back to a commit below it.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn merged(&self, base: &str, tip: &str, work: &str) -> Result<Merged, TreeError> {
        let work = self.find_commit(work)?.tree_id();
        if base == tip {
            return Ok(Merged::Clean(work.to_string()));
        }
        let tree_of = |commit: &str| self.find_commit(commit).map(|commit| commit.tree_id());
        let trees = [tree_of(base)?, tree_of(tip)?, work];
        if let Some(tree) = self.merged_apart(trees)? {
            return Ok(Merged::Clean(tree.to_string()));
        }
        let git = &self.repository;
        let index = || {
            let [base, tip, work] = trees.map(|tree| git.find_tree(tree));
            git.merge_trees(&base?, &tip?, &work?, None)
        };
        self.taken(index().map_err(self.failed("merge with the landing target"))?)
    }

    /// Writes the tree of an index that a merge made.
    fn taken(&self, mut index: Index) -> Result<Merged, TreeError> {
        let failed = "write what was merged";
        let clashes = clashes(&index).map_err(self.failed(failed))?;
        if !clashes.is_empty() {
            return Ok(Merged::Conflict(clashes.into_iter().collect()));
        }
        index
            .write_tree_to(&self.repository)
            .map(|tree| Merged::Clean(tree.to_string()))
            .map_err(self.failed(failed))
    }
}
