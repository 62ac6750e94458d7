//! A move of a whole lane to another commit, between steps: one that a kill cut
//! is taken back, so that its files are not taken for a person's.

use super::beneath::{Beneath, path};
use super::named_checkout::leaf;
use super::overlay::Leaf;
use super::reset::Ignored;
use super::scan::Scan;
use super::{Base, Tree, TreeError};
use crate::entry_lookup::EntryLookup;
use git2::{ErrorCode, Reference};

/// A reference of the worktree's own: the commit that a lane is moved to.
pub(crate) const MOVING: &str = "PREMATH_MOVING";

impl Tree {
    /// Moves a clean lane to a commit, outside of any step. The move is on
    /// record while it lasts, for [`Tree::take_back_move`].
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn relocate(&self, base: &Base, issue_id: &str) -> Result<(), TreeError> {
        let there = self.find_commit(&base.commit)?.id();
        if self.head().is_ok_and(|head| head.id() == there) {
            return self.start_at(base, issue_id, 0);
        }
        self.repository
            .reference(MOVING, there, true, "premath: the lane moves")
            .map_err(self.failed("record the move"))?;
        self.start_at(base, issue_id, 0)?;
        self.forget_reference(MOVING)
    }

    /// Takes back a move that a kill cut: files of the commit that the lane was
    /// on its way to become those of HEAD again. Returns whether it did.
    ///
    /// Nothing is lost: where a file is neither as HEAD has it, nor as the other
    /// commit has it or a part of that, all files stay as they are.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn take_back_move(&self) -> Result<bool, TreeError> {
        let Some(record) = self.move_on_record()? else {
            return Ok(false);
        };
        let there = record.target().and_then(|id| {
            let commit = self.repository.find_commit(id).ok()?;
            commit.tree().ok()
        });
        let is_ours = match there {
            Some(there) => self.is_between(&there)?,
            None => false,
        };
        if is_ours {
            self.reset(&self.base()?, &Ignored::Stay)?;
        }
        self.forget_reference(MOVING)?;
        Ok(is_ours)
    }

    fn move_on_record(&self) -> Result<Option<Reference<'_>>, TreeError> {
        match self.repository.find_reference(MOVING) {
            Ok(record) => Ok(Some(record)),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(self.failed("read the record of a move")(error)),
        }
    }

    /// Returns whether files differ from HEAD, and each that does is as another
    /// tree has it, or was on its way to be.
    fn is_between(&self, there: &git2::Tree<'_>) -> Result<bool, TreeError> {
        let head = self.head_tree()?;
        let here = self.scan(&head)?;
        if here.is_clean() {
            return Ok(false);
        }
        let beyond = self.scan(there)?;
        if ![&here, &beyond].into_iter().all(only_files) {
            return Ok(false);
        }
        let root = self.beneath()?;
        let (old, new) = [&head, there]
            .map(|tree| EntryLookup::new(&self.repository, tree))
            .into();
        let mut in_neither = here.paths.intersection(&beyond.paths);
        Ok(in_neither.all(|name| {
            let (old, new) = (leaf(&old, name), leaf(&new, name));
            old != new && self.is_begun(&root, name, new)
        }))
    }

    /// Returns whether a file is absent, or the beginning of what is to be there.
    fn is_begun(&self, root: &Beneath, name: &[u8], new: Option<Leaf>) -> bool {
        match root.look(path(name)) {
            Ok(None) => return true,
            Ok(Some(_)) => {}
            Err(_) => return false,
        }
        let blob = new.and_then(|(_, id)| self.repository.find_blob(id).ok());
        blob.is_some_and(|blob| {
            let whole = blob.content();
            let part = root.read(path(name), whole.len() as u64);
            matches!(part, Ok(Some(part)) if whole.starts_with(&part))
        })
    }
}

/// Returns whether all that differs are files.
fn only_files(scan: &Scan) -> bool {
    scan.nested.is_empty() && scan.unfit.is_empty()
}
