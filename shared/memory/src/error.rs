//! What can go wrong with the files of authority and projection.

use premath_kernel::failure::FailureClass;
use premath_kernel::issue::lease::LeaseRefusal;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file of authority or projection could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process held the lock for longer than the wait.
    #[error("lock {path} was held by {holder} for more than {} s", waited.as_secs())]
    LockBusy {
        /// The lock file.
        path: PathBuf,
        /// The time for which the caller waited.
        waited: Duration,
        /// Who wrote its name into the lock file.
        holder: String,
    },
    /// The harness is being removed from a repository.
    #[error("`premath uninstall` is removing the harness from {path}")]
    Removing {
        /// The repository.
        path: PathBuf,
    },
    /// The lock file cannot be used.
    #[error("cannot lock {path}: {source}")]
    LockIo {
        /// The lock file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file operation failed.
    #[error("cannot {operation} {path}: {source}")]
    Io {
        /// What was tried, as in `write`.
        operation: &'static str,
        /// The file of the operation.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is not there.
    #[error("{path} does not exist")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A line cannot be read; nothing is written until it is repaired.
    #[error("{path}:{line}:{column}: {detail}")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The column in bytes, from 1.
        column: u64,
        /// What is wrong and what would be right.
        detail: String,
    },
    /// An earlier sync failed in this process, which therefore writes no more.
    #[error("an earlier sync of {path} failed ({cause}); this process no longer writes to it")]
    Poisoned {
        /// The file.
        path: PathBuf,
        /// The first failure.
        cause: String,
    },
    /// The file is on a filesystem whose locks cannot be relied on.
    #[error("{path} is on a network filesystem ({kind}), where file locks cannot be relied on")]
    NetworkFilesystem {
        /// The file.
        path: PathBuf,
        /// The filesystem's name.
        kind: &'static str,
    },
    /// There is no git repository, or it cannot be read.
    #[error("{path}: {detail}")]
    Repository {
        /// Where it was looked for.
        path: PathBuf,
        /// The message of git.
        detail: String,
    },
}

impl StoreError {
    pub(crate) fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io {
            operation,
            path,
            source,
        }
    }

    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        match self {
            Self::LockBusy { .. } | Self::Removing { .. } => FailureClass::LeaseMutationLockBusy,
            Self::LockIo { .. } => FailureClass::LeaseMutationLockIo,
            Self::Io { .. } | Self::Missing { .. } | Self::Poisoned { .. } => {
                FailureClass::LeaseMutationStoreIo
            }
            Self::Corrupt { .. } => FailureClass::IssueMemoryCorrupt,
            Self::NetworkFilesystem { .. } => FailureClass::LeaseMutationLockIo,
            Self::Repository { .. } => FailureClass::WorktreeRepository,
        }
    }

    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::LockBusy { .. } => {
                Some("the lock is released when that process ends: wait, or end it".to_owned())
            }
            Self::Removing { .. } => Some("wait until it ended".to_owned()),
            Self::Missing { .. } => Some(
                "set the repository up with `premath init`, or restore the file from version \
                 control"
                    .to_owned(),
            ),
            Self::Corrupt { .. } => Some(
                "repair the line or restore the file from version control; `premath doctor` lists \
                 every such line; nothing was changed"
                    .to_owned(),
            ),
            Self::NetworkFilesystem { .. } => Some(
                "move the issue store to a local disk, or set PREMATH_ALLOW_NETWORK_FS=1 to \
                override"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// A change of issue memory was not made.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The rules refuse it; issue memory is as it was.
    #[error(transparent)]
    Refused(#[from] LeaseRefusal),
    /// The request does not fit what is there, such as an id that is taken.
    #[error("{0}")]
    Invalid(String),
    /// Issue memory cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ChangeError {
    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        match self {
            Self::Refused(refusal) => refusal.class,
            Self::Invalid(_) => FailureClass::LeaseInvalidPayload,
            Self::Store(error) => error.class(),
        }
    }
}
