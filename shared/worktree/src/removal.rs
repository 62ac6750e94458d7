//! Removal of files and folder trees that hostile code may have shaped.
//!
//! Invariants: every operation is relative to an open descriptor; no symlink is
//! followed; no mount is entered; nothing is removed that a [`Guard`] names.
//! The time and the number of entries are bounded, so that a folder to which
//! another process keeps adding files cannot hold the caller for ever.

mod error;
mod guard;
mod node;
mod probe;
mod walk;

pub use error::RemovalError;
pub use guard::Guard;
pub(crate) use probe::{DEEPEST, LONGEST, probe};

use premath_memory::lane_record::FolderId;
use premath_memory::roots::LaneState;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};
use std::time::Duration;
use walk::Walk;

/// How much one removal may do before it gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemovalBounds {
    /// How many entries it may remove.
    pub entries: u64,
    /// How long it may take.
    pub time: Duration,
}

impl Default for RemovalBounds {
    fn default() -> Self {
        Self {
            entries: 50_000_000,
            time: Duration::from_secs(300),
        }
    }
}

/// Removes an entry of an open folder: a file, a link or a whole folder. A
/// missing entry is success.
///
/// # Errors
///
/// The first failure; what was removed until then is gone. `InvalidInput` if
/// the name is not a single path component.
pub fn remove_entry(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    Walk::new(&Guard::none(), RemovalBounds::default())
        .remove(parent, name)
        .map_err(io::Error::from)
}

/// Removes a file, a link or a whole folder by its absolute path, after
/// comparing it, its ancestors and every folder below it with the guarded
/// folders. A missing entry is success.
///
/// # Errors
///
/// [`RemovalError`]. Where the guard refuses the path itself nothing was
/// removed; where it refuses a folder below it, what came before is gone.
pub fn remove_owned(path: &Path, guard: &Guard) -> Result<(), RemovalError> {
    remove_within(path, guard, RemovalBounds::default())
}

/// Removes what the harness keeps of a lane beside its worktree. What shows that the
/// rest is the harness's goes last.
///
/// # Errors
///
/// As [`remove_owned`].
pub(crate) fn remove_lane_files(state: &LaneState, guard: &Guard) -> Result<(), RemovalError> {
    let places = [&state.changes, &state.checkout, &state.folder];
    places
        .into_iter()
        .try_for_each(|place| remove_owned(place, guard))
}

/// Does as [`remove_owned`], within other bounds.
///
/// # Errors
///
/// As [`remove_owned`].
pub(crate) fn remove_within(
    path: &Path,
    guard: &Guard,
    bounds: RemovalBounds,
) -> Result<(), RemovalError> {
    let Some((parent, name)) = parent_of(path)? else {
        return Ok(());
    };
    remove_at(path, parent.as_fd(), name, guard, bounds)
}

/// Does as [`remove_owned`], but only while the path is one certain folder.
///
/// # Errors
///
/// As [`remove_owned`]; [`RemovalError::Stranger`] where it is another one.
pub(crate) fn remove_exactly(
    path: &Path,
    id: &FolderId,
    guard: &Guard,
    bounds: RemovalBounds,
) -> Result<(), RemovalError> {
    let io = |source| RemovalError::Io {
        path: path.to_path_buf(),
        source,
    };
    let Some((parent, name)) = parent_of(path)? else {
        return Ok(());
    };
    match occupant(parent.as_fd(), name).map_err(io)? {
        Occupant::Nothing => return Ok(()),
        Occupant::Folder(found) if found.is(id) => {}
        Occupant::Folder(_) | Occupant::Other => {
            return Err(RemovalError::Stranger(path.to_path_buf()));
        }
    }
    guard.check(path, parent.as_fd(), name)?;
    Walk::new(guard, bounds)
        .only(*id)
        .remove(parent.as_fd(), name)
        .map_err(|stop| stop.at(path))
}

/// Returns which folder an open one is.
pub(crate) fn id_of(folder: BorrowedFd<'_>) -> io::Result<FolderId> {
    Ok(node::id(&node::look(folder, OsStr::new(""))?))
}

/// What is in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occupant {
    /// The place is empty.
    Nothing,
    /// A folder.
    Folder(FolderId),
    /// A link, a file, or something else.
    Other,
}

/// Returns what an entry of an open folder is, links not followed.
pub(crate) fn occupant(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<Occupant> {
    match node::look(parent, name) {
        Ok(found) if node::is_folder(&found) => Ok(Occupant::Folder(node::id(&found))),
        Ok(_) => Ok(Occupant::Other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Occupant::Nothing),
        Err(error) => Err(error),
    }
}

/// Removes an entry of an open folder, with all checks of [`remove_owned`]. The
/// path is for messages only.
fn remove_at(
    path: &Path,
    parent: BorrowedFd<'_>,
    name: &OsStr,
    guard: &Guard,
    bounds: RemovalBounds,
) -> Result<(), RemovalError> {
    guard.check(path, parent, name)?;
    Walk::new(guard, bounds)
        .remove(parent, name)
        .map_err(|stop| stop.at(path))
}

/// Opens the folder that holds a path and returns it with the last component.
/// No link is followed on the way. `None` where the folder does not exist.
///
/// # Errors
///
/// [`RemovalError::Path`] if the path is not absolute and plain, or a link is
/// on the way; [`RemovalError::Io`].
pub(crate) fn parent_of(path: &Path) -> Result<Option<(OwnedFd, &OsStr)>, RemovalError> {
    let refused = |detail| RemovalError::Path {
        path: path.to_path_buf(),
        detail,
    };
    let mut names = Vec::new();
    for (at, component) in path.components().enumerate() {
        match component {
            Component::RootDir if at == 0 => {}
            Component::Normal(name) if at > 0 => names.push(name),
            _ => return Err(refused("it is not an absolute path without `..`")),
        }
    }
    let Some(name) = names.pop() else {
        return Err(refused("it is the root of the file system"));
    };
    let io = |source: io::Error| RemovalError::Io {
        path: path.to_path_buf(),
        source,
    };
    let mut folder = node::root().map_err(io)?;
    for part in names {
        folder = match node::step(folder.as_fd(), part) {
            Ok(next) => next,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if node::is_not_a_folder(&error) => {
                return Err(refused(
                    "a component of it is a symlink or not a folder; links are not followed",
                ));
            }
            Err(error) => return Err(io(error)),
        };
    }
    Ok(Some((folder, name)))
}

#[cfg(test)]
mod tests;
