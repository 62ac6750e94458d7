//! Probes a lock: reports whether it is held, and takes it only for the probe.

use super::repository::LANDING;
use super::worktree::LANE;
use super::{StoreError, holder_of, signature};
use fs2::FileExt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// What a look at a lock shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockState {
    /// There is no lock file: the lock was never taken.
    Never,
    /// No process holds the lock.
    Free,
    /// A living process holds it; with its identity.
    Held(String),
}

/// Looks at the lock of the lane whose worktree has this git folder.
///
/// # Errors
///
/// [`StoreError::LockIo`] where the lock file cannot be used.
pub fn lane_lock(git_folder: &Path) -> Result<LockState, StoreError> {
    look(git_folder.join(LANE))
}

/// Looks at the lock on landing in the git folder that all worktrees share.
///
/// # Errors
///
/// As [`lane_lock`].
pub fn landing_lock(common_folder: &Path) -> Result<LockState, StoreError> {
    look(common_folder.join(LANDING))
}

fn look(path: PathBuf) -> Result<LockState, StoreError> {
    let failed = |source| StoreError::LockIo {
        path: path.clone(),
        source,
    };
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LockState::Never),
        Err(error) => return Err(failed(error)),
    };
    loop {
        // Shared, so that two that look do not take each other for a holder.
        match FileExt::try_lock_shared(&file) {
            Ok(()) => {
                let _ = FileExt::unlock(&file);
                return Ok(LockState::Free);
            }
            Err(error) if error.raw_os_error() == fs2::lock_contended_error().raw_os_error() => {
                return Ok(LockState::Held(holder_of(&signature(&file))));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::LandingLock;

    #[test]
    fn a_look_returns_who_holds_a_lock_and_takes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(landing_lock(folder.path()).unwrap(), LockState::Never);
        let held = LandingLock::try_acquire(folder.path()).unwrap();
        let me = format!("pid {}", std::process::id());
        assert_eq!(landing_lock(folder.path()).unwrap(), LockState::Held(me));
        drop(held);
        assert_eq!(landing_lock(folder.path()).unwrap(), LockState::Free);
        assert!(LandingLock::try_acquire(folder.path()).unwrap().is_some());
    }
}
