//! Why a lane could not be booted.

use super::super::confine::ConfineError;
use crate::batch::FailedCommand;
use crate::sandbox::ProvideError;
use crate::supervisor::SupervisorError;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::StepId;
use premath_kernel::json::plain::listed;
use premath_memory::projection::ProjectionError;
use premath_memory::{StoreError, TrajectoryFileError};
use premath_worktree::landing::LandingError;
use premath_worktree::tree::{FilterError, TreeError, TreeFault};
use std::path::PathBuf;
use std::sync::Arc;

/// How many absent files a hint names.
pub(crate) const ABSENT_MAX: usize = 8;

/// A lane that could not be booted; nothing was dispatched to it.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The worktree is not one, or git refuses.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Another process holds the worktree, or a file cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The session or the ledger cannot be read or written.
    #[error(transparent)]
    Projection(#[from] ProjectionError),
    /// The branch that work lands on cannot be used.
    #[error(transparent)]
    Landing(#[from] LandingError),
    /// What was put aside cannot be recorded.
    #[error(transparent)]
    Trajectory(#[from] TrajectoryFileError),
    /// The supervisor cannot be started.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    /// Commands cannot be confined.
    #[error("cannot confine the lane's commands: {detail}")]
    Unconfined {
        /// The cause.
        detail: String,
        /// The class.
        class: FailureClass,
    },
    /// A provided file cannot be put into the checkout for verifications.
    #[error(transparent)]
    Provide(#[from] ProvideError),
    /// The runtime cannot be made.
    #[error("cannot make the lane's runtime")]
    Runtime(#[source] std::io::Error),
    /// The active issues wait for each other in a cycle.
    #[error("the active issues wait for each other in a cycle: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// The worktree belongs to another repository.
    #[error("{worktree} is not a worktree of {repository}")]
    Foreign {
        /// The worktree.
        worktree: PathBuf,
        /// The repository root.
        repository: PathBuf,
    },
    /// Files go through a filter that cannot be run.
    #[error(transparent)]
    Filters(Arc<FilterError>),
    /// Files of another world go through a filter, which is not run there.
    #[error(
        "{worktree} has files with the git filter `{filter}`, which the harness does not run in \
         other repositories"
    )]
    Filter {
        /// The worktree.
        worktree: PathBuf,
        /// The filter's name.
        filter: String,
    },
    /// A user's uncommitted changes are in the worktree.
    #[error("{worktree} has uncommitted changes that no step made: {}", listed(.paths))]
    Dirty {
        /// The worktree.
        worktree: PathBuf,
        /// The paths, at most ten.
        paths: Vec<String>,
    },
    /// A user changed the worktree of an interrupted step.
    #[error("{worktree} has changes made after its interrupted step {step_id} ended")]
    Moved {
        /// The worktree.
        worktree: PathBuf,
        /// The step.
        step_id: StepId,
        /// The session that records it.
        session: PathBuf,
    },
    /// A boot command or the startup verification did not pass.
    #[error("{0}")]
    Command(Box<FailedCommand>),
    /// A boot command could not be run or witnessed.
    #[error("cannot run the {name} command: {detail}")]
    Unrun {
        /// The name of the command.
        name: &'static str,
        /// The reason why the command is refused.
        detail: String,
        /// The class.
        class: FailureClass,
    },
}

impl From<ConfineError> for BootError {
    fn from(error: ConfineError) -> Self {
        Self::Unconfined {
            class: error.class(),
            detail: error.to_string(),
        }
    }
}

impl BootError {
    /// Returns the failure class.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Tree(error) if error.fault == TreeFault::Filter => error.class(),
            Self::Filters(_) => FailureClass::WorktreeFilter,
            Self::Tree(_) | Self::Foreign { .. } | Self::Filter { .. } => {
                FailureClass::WorktreeInvalid
            }
            Self::Store(StoreError::LockBusy { .. }) => FailureClass::WorktreeBusy,
            Self::Store(error) => error.class(),
            Self::Projection(error) => error.class(),
            Self::Landing(error) => error.class(),
            Self::Provide(error) => error.class(),
            Self::Trajectory(error) => error.class(),
            Self::Supervisor(error) => error.class(),
            Self::Runtime(_) => FailureClass::ExecutorUnavailable,
            Self::Cycle(_) => FailureClass::DependencyCycle,
            Self::Dirty { .. } | Self::Moved { .. } => FailureClass::WorktreeDirty,
            Self::Command(failed) => failed.class,
            Self::Unrun { class, .. } | Self::Unconfined { class, .. } => *class,
        }
    }

    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Dirty { .. } => Some(
                "commit or remove them, or set them aside with `git stash push -- FILE`: a plain \
                 `git stash` would set the issues back as well where git tracks them"
                    .to_owned(),
            ),
            Self::Store(StoreError::LockBusy { .. }) => Some(
                "another harness uses this worktree; use other worktrees, or end it".to_owned(),
            ),
            Self::Command(failed) => hint_of(failed),
            Self::Filter { .. } => Some(
                "its files would be committed unfiltered; use a repository without such a filter"
                    .to_owned(),
            ),
            Self::Filters(error) => match &**error {
                FilterError::Unconfigured(filter) => Some(format!(
                    "install it (for Git LFS: `git lfs install`), or have git leave its files as \
                     they are with `git config filter.{filter}.required false`"
                )),
                FilterError::Quoted { .. } | FilterError::Unread { .. } => None,
            },
            Self::Tree(error) if error.fault == TreeFault::Filter => Some(
                "filters run without network: fetch what they need first (for Git LFS: `git lfs \
                 fetch`)"
                    .to_owned(),
            ),
            Self::Moved { session, .. } => Some(format!(
                "to keep them, remove {} and run again",
                session.display()
            )),
            Self::Cycle(_) => Some("remove an edge with `premath dep remove`".to_owned()),
            Self::Store(error) => error.hint(),
            _ => None,
        }
    }
}

/// Returns where the output of a command is, and what a person can do about its
/// failure.
fn hint_of(failed: &FailedCommand) -> Option<String> {
    let output = failed.output.as_ref();
    let mut parts: Vec<String> = output
        .map(|path| format!("output: {}", path.display()))
        .into_iter()
        .collect();
    if failed.class == FailureClass::StartupCheckFailed {
        let part = "it fails before any work: repair the base, or set `startup = \"off\"` under \
                    [verify]";
        parts.push(part.to_owned());
    }
    if !failed.absent.is_empty() {
        parts.push(format!(
            "it runs in a clean checkout without {}: list files in `provide` under [verify], or \
             create folders with `setup_cmd` under [worktrees]",
            failed.absent.join(", ")
        ));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}
