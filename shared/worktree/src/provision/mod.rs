//! Lanes made for a batch: as many worktrees as the settings say, made, mended,
//! used again, and removed where they are too many.
//!
//! Invariants: only a folder that the harness's own record names, outside of
//! every lane, is removed or recreated, and only while it is that folder.
//! Surplus lanes that hold work stay. A lane that is broken is discarded, with
//! what it holds.

mod absence;
mod clear;
mod lane;
mod make;
mod single;
mod site;
mod sound;
mod surplus;

pub use clear::LaneWork;
pub(crate) use clear::clear_lane;
pub(crate) use make::is_branch_of_lane;
pub use single::{Single, SingleError};

use crate::removal::{Guard, RemovalBounds};
use git2::{ErrorCode, Oid, Repository};
use premath_memory::{StoreError, WorktreesLock};
use site::ProvisionSite;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folder in a git folder with what git could not hold of a step.
const LEFTOVER: &str = "premath-salvage";

/// How much is removed at once; the rest stays for the next batch.
const SWEEP: RemovalBounds = RemovalBounds {
    entries: 50_000_000,
    time: Duration::from_secs(30),
};

/// How long another harness that makes worktrees is waited for.
const WAIT: Duration = Duration::from_secs(60);
/// How often it is asked in the meantime whether to continue.
const LOOK: Duration = Duration::from_millis(200);

/// The lanes that are to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provision {
    /// The main worktree.
    pub repository: PathBuf,
    /// The folder that holds the lanes.
    pub root: PathBuf,
    /// How many there are to be.
    pub count: usize,
    /// The numbers of lanes above that which stay where they are there.
    pub spare: Vec<usize>,
    /// The branch that lanes begin at where it is there; else HEAD.
    pub target: Option<String>,
}

/// The outcome of one worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProvisionResult {
    /// It was there and in order.
    Kept,
    /// The lane was created.
    Made,
    /// It was there and not in order.
    Repaired(&'static str),
    /// It could not be used for this reason. It was discarded, with all that it
    /// held, and recreated.
    Remade(String),
    /// It was one too many.
    Removed,
    /// It is one too many, and stays.
    Surplus(String),
    /// There is no lane here, and why.
    Refused(String),
}

/// A worktree and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneOutcome {
    /// The worktree of the lane.
    pub worktree: PathBuf,
    /// The outcome for the lane.
    pub result: ProvisionResult,
}

impl LaneOutcome {
    /// Returns whether a batch can work here.
    pub const fn is_lane(&self) -> bool {
        matches!(
            self.result,
            ProvisionResult::Kept
                | ProvisionResult::Made
                | ProvisionResult::Repaired(_)
                | ProvisionResult::Remade(_)
        )
    }
}

/// The lanes cannot be made at all.
#[derive(Debug, thiserror::Error)]
pub enum ProvisionError {
    /// Git refused something.
    #[error("cannot {operation}: {detail}")]
    Git {
        /// The operation that failed.
        operation: &'static str,
        /// The message of git.
        detail: String,
    },
    /// There is no commit to begin at.
    #[error("cannot {operation}: {detail}")]
    Unborn {
        /// The operation that failed.
        operation: &'static str,
        /// The message of git.
        detail: String,
    },
    /// The folder that holds the lanes cannot be used.
    #[error("cannot make the lanes' folder {root}")]
    Root {
        /// The folder.
        root: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// What must never be removed cannot be opened.
    #[error("cannot open the main worktree, the git folder or the home")]
    Guard(#[source] std::io::Error),
    /// The folder is in a place where its lanes would be part of a checkout.
    #[error("the lanes' folder {0} is inside the repository's own checkout")]
    Inside(PathBuf),
    /// It was to end before all lanes were there.
    #[error("only {there} of {count} lanes exist; they are kept for the next batch")]
    Cut {
        /// The number of lanes that exist.
        there: usize,
        /// How many were to be there.
        count: usize,
    },
    /// The lock against other harnesses.
    #[error(transparent)]
    Lock(#[from] StoreError),
}

impl ProvisionError {
    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Inside(_) => Some(
                "set root under [worktrees] to a folder next to the repository, for example \
                 \"../{repo}-lanes\""
                    .to_owned(),
            ),
            Self::Lock(error) => error.hint(),
            Self::Unborn { .. } => Some(
                "the repository has no commit: create one for attempts to start from".to_owned(),
            ),
            Self::Git { .. } | Self::Guard(_) | Self::Root { .. } | Self::Cut { .. } => None,
        }
    }

    fn git(operation: &'static str) -> impl FnOnce(git2::Error) -> Self {
        move |error| {
            let detail = error.message().to_owned();
            match error.code() {
                ErrorCode::UnbornBranch => Self::Unborn { operation, detail },
                _ => Self::Git { operation, detail },
            }
        }
    }
}

impl Provision {
    /// Makes sure of the lanes; returns them in order, then the spare ones that
    /// are there, then what was too many. A lane that cannot be had is refused by
    /// itself. Before each of them it is asked whether to continue; where not,
    /// nothing is removed either.
    ///
    /// # Errors
    ///
    /// [`ProvisionError`].
    pub fn ready(
        &self,
        may_continue: impl Fn() -> bool,
    ) -> Result<Vec<LaneOutcome>, ProvisionError> {
        let git = Repository::open(&self.repository)
            .map_err(ProvisionError::git("open the repository"))?;
        let root = self.made_root(&git)?;
        let _alone = self.alone(&git, &may_continue)?;
        let site = self.site(&git, root)?;
        let mut outcomes = Vec::new();
        for number in 1..=self.count {
            if !may_continue() {
                return Err(self.cut(&outcomes));
            }
            outcomes.push(site.lane(&lane_name(number)));
        }
        let there = self.spare.iter().map(|number| lane_name(*number));
        let there = there.filter(|name| site.is_made(name));
        outcomes.extend(there.map(|name| site.lane(&name)));
        let wanted: Vec<PathBuf> = outcomes.iter().map(|lane| lane.worktree.clone()).collect();
        outcomes.extend(site.clear_surplus(&wanted));
        Ok(outcomes)
    }

    /// Makes sure of one more lane while others are in use.
    ///
    /// # Errors
    ///
    /// [`ProvisionError`].
    pub fn another(
        &self,
        number: usize,
        may_continue: impl Fn() -> bool,
    ) -> Result<LaneOutcome, ProvisionError> {
        let git = Repository::open(&self.repository)
            .map_err(ProvisionError::git("open the repository"))?;
        let root = self.made_root(&git)?;
        let _alone = self.alone(&git, &may_continue)?;
        Ok(self.site(&git, root)?.lane(&lane_name(number)))
    }

    fn site<'g>(
        &self,
        git: &'g Repository,
        root: PathBuf,
    ) -> Result<ProvisionSite<'g>, ProvisionError> {
        let canonical = |path: &Path| fs::canonicalize(path).map_err(ProvisionError::Guard);
        let repository = canonical(&self.repository)?;
        let common = canonical(git.commondir())?;
        let guard = Guard::outside([&*repository, &*common]).map_err(ProvisionError::Guard)?;
        Ok(ProvisionSite {
            start: self.start(git)?,
            lands: self.target.is_some(),
            git,
            repository,
            common,
            root,
            guard,
        })
    }

    /// Waits for another harness that makes worktrees.
    fn alone(
        &self,
        git: &Repository,
        may_continue: impl Fn() -> bool,
    ) -> Result<WorktreesLock, ProvisionError> {
        let mut waited = LOOK;
        loop {
            match WorktreesLock::acquire(git.commondir(), LOOK) {
                Err(StoreError::LockBusy { .. }) if !may_continue() => return Err(self.cut(&[])),
                Err(StoreError::LockBusy { .. }) if waited < WAIT => waited += LOOK,
                acquired => return Ok(acquired?),
            }
        }
    }

    fn cut(&self, outcomes: &[LaneOutcome]) -> ProvisionError {
        ProvisionError::Cut {
            there: outcomes.iter().filter(|lane| lane.is_lane()).count(),
            count: self.count,
        }
    }

    fn made_root(&self, git: &Repository) -> Result<PathBuf, ProvisionError> {
        let failed = |source| ProvisionError::Root {
            root: self.root.clone(),
            source,
        };
        // Looked at before anything is made.
        let checkout = git.workdir().and_then(|dir| fs::canonicalize(dir).ok());
        let is_inside = |root: &Path| {
            let checkout = checkout.as_ref();
            checkout.is_some_and(|checkout| root.starts_with(checkout))
        };
        let root = place(&self.root);
        if is_inside(&root) {
            return Err(ProvisionError::Inside(root));
        }
        fs::create_dir_all(&root).map_err(failed)?;
        let root = fs::canonicalize(&root).map_err(failed)?;
        if is_inside(&root) {
            return Err(ProvisionError::Inside(root));
        }
        Ok(root)
    }

    /// Returns the commit that a new lane begins at.
    fn start(&self, git: &Repository) -> Result<Oid, ProvisionError> {
        let target = self.target.as_ref().and_then(|target| {
            let name = format!("refs/heads/{target}");
            git.find_reference(&name).ok()?.peel_to_commit().ok()
        });
        match target {
            Some(commit) => Ok(commit.id()),
            None => git
                .head()
                .and_then(|head| head.peel_to_commit())
                .map(|commit| commit.id())
                .map_err(ProvisionError::git("read the main worktree's HEAD")),
        }
    }
}

/// Returns a path whose part that exists already is canonical.
pub fn place(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| {
        let rest = path.strip_prefix(above).ok()?;
        Some(fs::canonicalize(above).ok()?.join(rest))
    });
    there.unwrap_or_else(|| path.to_path_buf())
}

/// Names the folder of a lane, counted from 1.
pub fn lane_name(number: usize) -> String {
    format!("lane-{number:02}")
}

#[cfg(test)]
mod tests;
