//! Commits that have files where a person's own ignored files are.

use super::beneath::{Beneath, kind, path};
use super::{Tree, TreeError};
use git2::{ObjectType, TreeEntry};
use rustix::fs::FileType;
use std::path::{Path, PathBuf};

impl Tree {
    /// Makes sure that a commit has no file in the place of an ignored file
    /// that was here before any step: moving the worktree there would delete
    /// it, there or at a later move.
    ///
    /// # Errors
    ///
    /// [`TreeError`], naming the file.
    pub fn must_keep_own_files(&self, commit: &str) -> Result<(), TreeError> {
        if self.own.paths().next().is_none() {
            return Ok(());
        }
        let commit = self.find_commit(commit)?;
        let target = commit.tree().map_err(self.failed("read the tree"))?;
        let here = Here {
            tree: self,
            root: self.beneath()?,
            head: self.head_tree().ok(),
        };
        let lost = self.own.paths().find_map(|own| here.lost(&target, own));
        let Some(lost) = lost else { return Ok(()) };
        let short: String = commit.id().to_string().chars().take(12).collect();
        let detail = format!(
            "{}: commit {short} has a file in the place of this ignored file, which would be \
             lost: move the file elsewhere, or name another worktree",
            lost.display()
        );
        Err(self.error("move the worktree to a commit", detail))
    }
}

/// A worktree as it is.
struct Here<'t> {
    tree: &'t Tree,
    root: Beneath,
    head: Option<git2::Tree<'t>>,
}

impl Here<'_> {
    /// Returns a file in an own path that a tree would replace.
    fn lost(&self, target: &git2::Tree<'_>, own: &Path) -> Option<PathBuf> {
        let mut above = own.ancestors().skip(1);
        let is_blocked = above.any(|above| {
            let entry = target.get_path(above);
            entry.is_ok_and(|entry| entry.kind() == Some(ObjectType::Blob))
        });
        if is_blocked {
            return self.kind_at(own).map(|_| own.to_path_buf());
        }
        self.lost_to(&target.get_path(own).ok()?, own)
    }

    fn lost_to(&self, entry: &TreeEntry<'_>, at: &Path) -> Option<PathBuf> {
        let kind = self.kind_at(at)?;
        if kind != FileType::Directory || entry.kind() != Some(ObjectType::Tree) {
            // What HEAD has is not ignored.
            let head = self.head.as_ref();
            let is_known = head.is_some_and(|head| head.get_path(at).is_ok());
            return (!is_known).then(|| at.to_path_buf());
        }
        let inner = self.tree.repository.find_tree(entry.id()).ok()?;
        inner
            .iter()
            .find_map(|entry| self.lost_to(&entry, &at.join(path(entry.name_bytes()))))
    }

    fn kind_at(&self, at: &Path) -> Option<FileType> {
        self.root.look(at).ok().flatten().as_ref().map(kind)
    }
}
