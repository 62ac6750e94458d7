//! A handle of a repository, and whether it still sees all of it.

use super::LandingError;
use git2::Repository;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What libgit2 reads once, when a repository is opened: where the history of a shallow
/// clone ends, and which other repositories have objects of this one.
const READ_ONCE: [&str; 2] = ["shallow", "objects/info/alternates"];

/// A handle of a repository.
pub(super) struct OpenedRepository {
    pub(super) at: PathBuf,
    pub(super) git: Rc<Repository>,
    /// Of the files that are read once.
    stamps: [Option<Stamp>; READ_ONCE.len()],
}

impl OpenedRepository {
    pub(super) fn open(at: &Path) -> Result<Self, LandingError> {
        let failed = |error| LandingError::git("open the repository")(error);
        let mut git = Repository::open(at).map_err(failed)?;
        let stamps = stamps(&git);
        if stamps.iter().any(Option::is_some) {
            // They were read before they were looked at.
            git = Repository::open(at).map_err(failed)?;
        }
        Ok(Self {
            at: at.to_path_buf(),
            git: Rc::new(git),
            stamps,
        })
    }

    /// Returns whether the files that are read once are as they were.
    pub(super) fn is_current(&self) -> bool {
        stamps(&self.git) == self.stamps
    }
}

/// The number, length and times of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp([i64; 6]);

impl Stamp {
    /// Returns that of a file; none where there is no file.
    pub(super) fn of(file: &Path) -> Option<Self> {
        let found = fs::metadata(file).ok()?;
        Some(Self([
            found.ino().cast_signed(),
            found.size().cast_signed(),
            found.mtime(),
            found.mtime_nsec(),
            found.ctime(),
            found.ctime_nsec(),
        ]))
    }
}

fn stamps(git: &Repository) -> [Option<Stamp>; READ_ONCE.len()] {
    READ_ONCE.map(|name| Stamp::of(&git.commondir().join(name)))
}
