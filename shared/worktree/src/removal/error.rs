//! Why something cannot be removed.

use std::io;
use std::path::{Path, PathBuf};

/// Something was not removed, or not as a whole.
#[derive(Debug, thiserror::Error)]
pub enum RemovalError {
    /// The path is, contains or is in a guarded folder.
    #[error("refused to remove {path}: it {relation} {guarded}, which the harness must not remove")]
    Guarded {
        /// What was to be removed.
        path: PathBuf,
        /// The guarded folder.
        guarded: PathBuf,
        /// How the two are related, as in `contains`.
        relation: &'static str,
    },
    /// The path cannot name something that the harness made.
    #[error("refused to remove {path}: {detail}")]
    Path {
        /// What was to be removed.
        path: PathBuf,
        /// What is wrong with it.
        detail: &'static str,
    },
    /// It is a mount point or contains one.
    #[error("cannot remove {path}: {at} is on another mount or file system")]
    Mount {
        /// What was to be removed.
        path: PathBuf,
        /// The name of the folder that is mounted.
        at: String,
    },
    /// Another process moved or replaced a folder meanwhile.
    #[error("cannot remove {path}: another process changed {at} meanwhile")]
    Changed {
        /// What was to be removed.
        path: PathBuf,
        /// The name of what changed.
        at: String,
    },
    /// Another folder has taken the place of the one to remove.
    #[error("refused to remove {0}: the harness did not create this folder")]
    Stranger(PathBuf),
    /// It did not end within its bounds.
    #[error(
        "cannot remove {path}: not done after {removed} entries; another process may be adding files"
    )]
    Endless {
        /// What was to be removed.
        path: PathBuf,
        /// How many entries were removed.
        removed: u64,
    },
    /// An operation failed.
    #[error("cannot remove {path}")]
    Io {
        /// What was to be removed.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The reason why a walk stopped.
#[derive(Debug)]
pub(super) enum Stop {
    Guarded { at: String, guarded: PathBuf },
    Mount { at: String },
    Changed { at: String },
    Endless { removed: u64 },
    Io { at: String, source: io::Error },
}

impl Stop {
    pub(super) fn at(self, path: &Path) -> RemovalError {
        let path = path.to_path_buf();
        match self {
            Self::Guarded { guarded, .. } => RemovalError::Guarded {
                path,
                guarded,
                relation: "contains",
            },
            Self::Mount { at } => RemovalError::Mount { path, at },
            Self::Changed { at } => RemovalError::Changed { path, at },
            Self::Endless { removed } => RemovalError::Endless { path, removed },
            Self::Io { at, source } => {
                let is_itself = path
                    .file_name()
                    .is_some_and(|name| name.to_string_lossy() == at);
                let source = match is_itself {
                    true => source,
                    false => io::Error::new(source.kind(), format!("{at}: {source}")),
                };
                RemovalError::Io { path, source }
            }
        }
    }
}

impl From<Stop> for io::Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Guarded { at, guarded } => Self::new(
                io::ErrorKind::PermissionDenied,
                format!("{at} is {}", guarded.display()),
            ),
            Stop::Mount { at } => Self::new(
                io::ErrorKind::CrossesDevices,
                format!("{at} is on another mount or file system"),
            ),
            Stop::Changed { at } => Self::other(format!("another process changed {at} meanwhile")),
            Stop::Endless { removed } => Self::new(
                io::ErrorKind::TimedOut,
                format!("not done after {removed} entries; another process may be adding files"),
            ),
            Stop::Io { at, source } => Self::new(source.kind(), format!("{at}: {source}")),
        }
    }
}
