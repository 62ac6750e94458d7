//! Why a repository's things cannot be listed or removed.

use crate::removal::RemovalError;
use premath_kernel::failure::FailureClass;
use premath_memory::StoreError;
use std::io;
use std::path::PathBuf;

/// A repository's things cannot be listed, or one cannot be removed.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// Git refused something.
    #[error("cannot {operation}: {detail}")]
    Git {
        /// The operation that failed.
        operation: &'static str,
        /// The message of git.
        detail: String,
    },
    /// It is not any more as it was when it was judged.
    #[error("{name} changed in the meantime")]
    Changed {
        /// The name of the changed thing.
        name: String,
    },
    /// A lane cannot be removed, or holds something.
    #[error("{reason}")]
    Lane {
        /// Why the lane stays.
        reason: String,
    },
    /// A file of git's cannot be removed.
    #[error("cannot remove {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file or folder was not removed.
    #[error(transparent)]
    Removal(#[from] RemovalError),
    /// A lock cannot be looked at, or a file of ours not be removed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl InventoryError {
    pub(super) fn git(operation: &'static str) -> impl FnOnce(git2::Error) -> Self {
        move |error| Self::Git {
            operation,
            detail: error.message().to_owned(),
        }
    }

    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        match self {
            Self::Store(error) => error.class(),
            Self::Git { .. }
            | Self::Changed { .. }
            | Self::Lane { .. }
            | Self::File { .. }
            | Self::Removal(_) => FailureClass::WorktreeRepository,
        }
    }
}
