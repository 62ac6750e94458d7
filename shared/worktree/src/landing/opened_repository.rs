//! A handle of a repository, and whether it still sees all of it.

use super::LandingError;
use crate::file_stamp::FileStamp;
use git2::Repository;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What libgit2 reads once, when a repository is opened: where the history of a shallow
/// clone ends, and which other repositories have objects of this one.
const READ_ONCE: [&str; 2] = ["shallow", "objects/info/alternates"];

/// A handle of a repository.
pub(super) struct OpenedRepository {
    pub(super) at: PathBuf,
    pub(super) git: Rc<Repository>,
    /// The stamps of the files that are read once.
    stamps: [Option<FileStamp>; READ_ONCE.len()],
}

impl OpenedRepository {
    pub(super) fn open(at: &Path) -> Result<Self, LandingError> {
        let open = || Repository::open(at).map_err(LandingError::git("open the repository"));
        let mut git = open()?;
        let stamps = stamps(&git);
        if stamps.iter().any(Option::is_some) {
            // The handle may have read a file that changed before its stamp was taken.
            git = open()?;
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

fn stamps(git: &Repository) -> [Option<FileStamp>; READ_ONCE.len()] {
    READ_ONCE.map(|name| FileStamp::at(&git.commondir().join(name)))
}
