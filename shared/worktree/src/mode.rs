//! The modes of files as git has them. A tree can have others than git writes;
//! what counts is their kind and the owner's right to execute.

use git2::TreeEntry;

/// The part of a mode that says what something is, without its rights.
const KIND: u32 = 0o170_000;
pub(crate) const FOLDER: u32 = 0o040_000;
pub(crate) const FILE: u32 = 0o100_000;
pub(crate) const LINK: u32 = 0o120_000;
pub(crate) const SUBMODULE: u32 = 0o160_000;

/// Returns whether a mode is of a kind.
pub(crate) const fn is_kind(mode: u32, kind: u32) -> bool {
    mode & KIND == kind
}

/// Returns the mode that git takes another one for.
pub(crate) const fn canonical(mode: u32) -> u32 {
    match mode & KIND {
        kind @ (FOLDER | LINK | SUBMODULE) => kind,
        _ if mode & 0o100 != 0 => 0o100_755,
        _ => 0o100_644,
    }
}

/// Returns the mode that git takes that of an entry for. `TreeEntry::filemode`
/// takes a link or a submodule with rights for a file.
pub(crate) fn mode_of(entry: &TreeEntry<'_>) -> i32 {
    canonical(entry.filemode_raw() as u32) as i32
}
