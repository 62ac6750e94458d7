//! The files of a tree in the order of an index, one after the other.

use super::overlay::Leaf;
use crate::mode::mode_of;
use git2::{ObjectType, Repository, Tree};

/// A walk over all files and submodules of a tree. It holds one tree of each
/// level.
pub(super) struct TreeFiles<'a> {
    repository: &'a Repository,
    /// The folders down to the next file: their paths with a slash at the end, and
    /// which entry is next.
    open: Vec<(Vec<u8>, Tree<'a>, usize)>,
}

impl<'a> TreeFiles<'a> {
    pub(super) fn new(repository: &'a Repository, root: &Tree<'a>) -> Self {
        Self {
            repository,
            open: vec![(Vec::new(), root.clone(), 0)],
        }
    }

    /// Returns the next path, and its mode and object.
    ///
    /// # Errors
    ///
    /// A folder of it cannot be read.
    pub(super) fn next(&mut self) -> Result<Option<(Vec<u8>, Leaf)>, git2::Error> {
        while let Some((folder, tree, next)) = self.open.last_mut() {
            let Some(entry) = tree.get(*next) else {
                self.open.pop();
                continue;
            };
            *next += 1;
            let mut at = folder.clone();
            at.extend_from_slice(entry.name_bytes());
            if entry.kind() != Some(ObjectType::Tree) {
                return Ok(Some((at, (mode_of(&entry), entry.id()))));
            }
            let id = entry.id();
            drop(entry);
            at.push(b'/');
            let below = self.repository.find_tree(id)?;
            self.open.push((at, below, 0));
        }
        Ok(None)
    }
}
