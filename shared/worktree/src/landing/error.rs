//! Why work cannot land.

use git2::ErrorCode;
use premath_kernel::failure::FailureClass;
use premath_memory::StoreError;
use std::path::PathBuf;

/// The branch that work lands on cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LandingError {
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
    /// The target is not a name of a branch.
    #[error("the landing target `{0}` is not a valid branch name")]
    Name(String),
    /// The target is checked out: moving it would leave those files behind.
    #[error("work cannot land on {target}: it is checked out in {worktree}")]
    CheckedOut {
        /// The branch.
        target: String,
        /// The worktree that has the target checked out.
        worktree: PathBuf,
    },
    /// The lock against other harnesses cannot be used.
    #[error(transparent)]
    Lock(#[from] StoreError),
}

impl LandingError {
    pub(super) fn git(operation: &'static str) -> impl FnOnce(git2::Error) -> Self {
        move |error| {
            let detail = error.message().to_owned();
            match error.code() {
                ErrorCode::UnbornBranch => Self::Unborn { operation, detail },
                _ => Self::Git { operation, detail },
            }
        }
    }

    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        FailureClass::LandingTargetUnusable
    }

    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::CheckedOut { .. } => Some(
                "choose another branch with --landing-target or target under [landing] in \
                 harness.toml, or switch that worktree to another branch"
                    .to_owned(),
            ),
            Self::Lock(error) => error.hint(),
            Self::Unborn { .. } => Some(
                "the repository has no commit: create one for attempts to start from".to_owned(),
            ),
            Self::Name(_) => Some(
                "correct --landing-target, or target under [landing] in harness.toml".to_owned(),
            ),
            Self::Git { .. } => None,
        }
    }
}
