//! What differs between two trees, or a tree and an index.

use crate::entry_lookup::EntryLookup;
use crate::mode::is_kind;
use git2::{Delta, Deltas, Diff, DiffDelta, DiffFile, DiffOptions, Error, Index, Repository, Tree};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The mode of a file that is there and is not found.
pub(crate) const UNKNOWN: u32 = 0;
/// How many stages of a merge an index has for a path, with that of no merge.
const STAGES: i32 = 4;

/// A comparison, in which a change of kind is one change.
pub(crate) struct Difference<'a> {
    diff: Diff<'a>,
    before: Side<'a>,
    after: Side<'a>,
}

/// One of the two that are compared.
enum Side<'a> {
    Nothing,
    Tree(EntryLookup<'a>),
    Index(&'a Index),
}

impl<'a> Difference<'a> {
    /// Compares two trees; without the first one, everything is new.
    pub(crate) fn of_trees(
        repository: &'a Repository,
        before: Option<&Tree<'a>>,
        after: &Tree<'a>,
    ) -> Result<Self, Error> {
        let diff = repository.diff_tree_to_tree(before, Some(after), Some(&mut options()))?;
        let before = before.map(|tree| Side::Tree(EntryLookup::new(repository, tree)));
        Ok(Self {
            diff,
            before: before.unwrap_or(Side::Nothing),
            after: Side::Tree(EntryLookup::new(repository, after)),
        })
    }

    /// Compares a tree with an index.
    pub(crate) fn of_index(
        repository: &'a Repository,
        before: &Tree<'a>,
        after: &'a Index,
    ) -> Result<Self, Error> {
        let diff =
            repository.diff_tree_to_index(Some(before), Some(after), Some(&mut options()))?;
        Ok(Self {
            diff,
            before: Side::Tree(EntryLookup::new(repository, before)),
            after: Side::Index(after),
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.deltas().len() == 0
    }

    pub(crate) fn deltas(&self) -> Deltas<'_> {
        self.diff.deltas()
    }

    /// Returns what differs, with the modes before and after as they are; `None`
    /// where there is no file. `DiffFile::mode` panics on a mode that git does not
    /// write, and a step can commit one. A path that only a tree has is not looked
    /// up in the index: `Index::get_path` panics on one that no index can have.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (DiffDelta<'_>, [Option<u32>; 2])> {
        self.deltas().map(|delta| {
            let (old, new) = (delta.old_file(), delta.new_file());
            let before = (delta.status() != Delta::Added).then(|| self.before.mode(&old));
            let after = (delta.status() != Delta::Deleted).then(|| self.after.mode(&new));
            (delta, [before, after])
        })
    }
}

impl Side<'_> {
    /// Returns the mode of a file that is there; [`UNKNOWN`] where a tree whose
    /// entries are not in order hides it.
    fn mode(&self, file: &DiffFile<'_>) -> u32 {
        let at = file.path_bytes().unwrap_or_default();
        let found = match self {
            Self::Nothing => None,
            Self::Tree(entries) => entries.get(at).map(|entry| entry.filemode_raw() as u32),
            Self::Index(index) => (0..STAGES)
                .find_map(|stage| index.get_path(Path::new(OsStr::from_bytes(at)), stage))
                .map(|entry| entry.mode),
        };
        found.unwrap_or(UNKNOWN)
    }
}

/// Returns whether one of the sides is of a kind, or may be.
pub(crate) fn may_be(modes: [Option<u32>; 2], kind: u32) -> bool {
    let mut modes = modes.into_iter().flatten();
    modes.any(|mode| mode == UNKNOWN || is_kind(mode, kind))
}

fn options() -> DiffOptions {
    let mut options = DiffOptions::new();
    options.include_typechange(true);
    options
}
