//! What differs between two trees, or a tree and an index.

use crate::entry_lookup::EntryLookup;
use git2::{Delta, Deltas, Diff, DiffDelta, DiffFile, DiffOptions, Error, Index, Repository, Tree};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The part of a mode that says what something is, without its rights.
const KIND: u32 = 0o170_000;
pub(crate) const LINK: u32 = 0o120_000;
pub(crate) const SUBMODULE: u32 = 0o160_000;
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

    /// Returns what differs, with the modes before and after as they are; 0 where
    /// there is no file. `DiffFile::mode` panics on a mode that git does not write,
    /// and a step can commit one.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (DiffDelta<'_>, [u32; 2])> {
        self.deltas().map(|delta| {
            let (old, new) = (delta.old_file(), delta.new_file());
            let before = (delta.status() != Delta::Added).then_some(old);
            let after = (delta.status() != Delta::Deleted).then_some(new);
            let modes = [
                before.map_or(0, |file| self.before.mode(&file)),
                after.map_or(0, |file| self.after.mode(&file)),
            ];
            (delta, modes)
        })
    }
}

impl Side<'_> {
    /// Returns the mode of a file that is there.
    fn mode(&self, file: &DiffFile<'_>) -> u32 {
        let at = file.path_bytes().unwrap_or_default();
        let found = match self {
            Self::Nothing => None,
            Self::Tree(entries) => entries.get(at).map(|entry| entry.filemode_raw() as u32),
            // `Index::get_path` panics on a path that no index can have.
            Self::Index(index) if is_relative(at) => (0..STAGES)
                .find_map(|stage| index.get_path(Path::new(OsStr::from_bytes(at)), stage))
                .map(|entry| entry.mode),
            Self::Index(_) => None,
        };
        found.unwrap_or_default()
    }
}

/// Returns whether a path has only names of files and folders.
pub(crate) fn is_relative(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/')
        .all(|name| ![b"".as_slice(), b".", b".."].contains(&name))
}

fn options() -> DiffOptions {
    let mut options = DiffOptions::new();
    options.include_typechange(true);
    options
}

/// Returns whether a mode is of a kind.
pub(crate) fn is_kind(mode: u32, kind: u32) -> bool {
    mode & KIND == kind
}

/// Returns the mode that git has in its index for one of a tree.
pub(crate) fn canonical(mode: u32) -> u32 {
    match mode & KIND {
        kind @ (LINK | SUBMODULE) => kind,
        _ if mode & 0o100 != 0 => 0o100_755,
        _ => 0o100_644,
    }
}
