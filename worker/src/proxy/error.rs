//! Why a proxy cannot be started.

use std::path::PathBuf;

/// A proxy cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The folder of a socket cannot be made or looked at.
    #[error("cannot make the folder {path} for the proxy's socket")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Other users could connect.
    #[error(
        "the folder {path} of the proxy's socket is not a private one of this user (mode 0700)"
    )]
    FolderNotPrivate {
        /// The folder.
        path: PathBuf,
    },
    /// A socket cannot be made.
    #[error("cannot listen on the proxy's socket {path}")]
    Bind {
        /// The socket.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The thread or its runtime cannot be made.
    #[error("cannot start the proxy's thread")]
    Thread(#[source] std::io::Error),
}
