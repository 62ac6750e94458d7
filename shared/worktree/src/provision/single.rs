//! One worktree beside the lanes of a repository's own, for work that comes
//! from elsewhere.

use super::{LaneOutcome, Provision, ProvisionError, ProvisionResult, WAIT};
use git2::Repository;
use premath_memory::{StoreError, WorktreeLock, WorktreesLock};
use std::path::PathBuf;
use std::time::Duration;

/// A worktree that was made sure of and is locked.
#[derive(Debug)]
pub struct Single {
    /// The worktree of the lane.
    pub worktree: PathBuf,
    /// The commit that work begins at.
    pub start: String,
    /// Held until the work is over.
    pub lock: WorktreeLock,
}

/// There is no worktree for the work.
#[derive(Debug, thiserror::Error)]
pub enum SingleError {
    /// The lane cannot be created.
    #[error(transparent)]
    Provision(#[from] ProvisionError),
    /// The one that is there cannot be used.
    #[error("cannot use {worktree}: {detail}")]
    Refused {
        /// The worktree.
        worktree: PathBuf,
        /// Why it cannot be used.
        detail: String,
    },
    /// Another process holds the lane's lock.
    #[error(transparent)]
    Lock(#[from] StoreError),
}

impl Provision {
    /// Makes sure of one worktree by its name and locks it, before anybody
    /// could take it for one too many; the repository's own lanes stay as they
    /// are. `patience` is how long its holder is waited for.
    ///
    /// # Errors
    ///
    /// [`SingleError`].
    pub fn single(&self, name: &str, patience: Duration) -> Result<Single, SingleError> {
        let git = Repository::open(&self.repository)
            .map_err(ProvisionError::git("open the repository"))?;
        let root = self.made_root(&git)?;
        let _alone = WorktreesLock::acquire(git.commondir(), WAIT).map_err(ProvisionError::from)?;
        let site = self.site(&git, root)?;
        let worktree = site.place_of(name);
        // One that is there is not mended while another process works in it.
        let held = match worktree.join(".git").is_file() {
            true => WorktreeLock::acquire(&worktree, patience),
            false => Err(StoreError::Missing {
                path: worktree.clone(),
            }),
        };
        if let Err(busy @ StoreError::LockBusy { .. }) = held {
            return Err(busy.into());
        }
        let start = site.start.to_string();
        let LaneOutcome { worktree, result } = site.lane(name);
        let lock = match (held, result) {
            (_, ProvisionResult::Refused(detail)) => {
                return Err(SingleError::Refused { worktree, detail });
            }
            (Ok(lock), ProvisionResult::Kept) => lock,
            // What was mended may have had its lock elsewhere.
            (held, _) => {
                drop(held);
                WorktreeLock::acquire(&worktree, patience)?
            }
        };
        Ok(Single {
            start,
            worktree,
            lock,
        })
    }
}
