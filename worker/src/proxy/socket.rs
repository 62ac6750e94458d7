//! The unix sockets of a proxy as files.

use super::error::ProxyError;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// A socket that was made; dropping it removes the file.
#[derive(Debug)]
pub(crate) struct Socket {
    path: PathBuf,
    /// Device and inode: another file at the path is not ours.
    identity: (u64, u64),
}

impl Socket {
    /// Makes a socket in a private folder.
    pub(crate) fn bind(path: PathBuf) -> Result<(Self, UnixListener), ProxyError> {
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        must_be_private(folder)?;
        let bound = bind(&path);
        let (identity, listener) = match bound {
            Ok(bound) => bound,
            Err(source) => return Err(ProxyError::Bind { path, source }),
        };
        Ok((Self { path, identity }, listener))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if identity(&self.path).ok() == Some(self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn bind(path: &Path) -> io::Result<((u64, u64), UnixListener)> {
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok((identity(path)?, listener))
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let meta = fs::symlink_metadata(path)?;
    Ok((meta.dev(), meta.ino()))
}

/// Makes the folder where there is none; one that is there must be closed to
/// other users.
fn must_be_private(folder: &Path) -> Result<(), ProxyError> {
    let path = || folder.to_owned();
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            let path = path();
            return Err(ProxyError::Folder {
                path,
                source: error,
            });
        }
        _ => {}
    }
    let meta = fs::symlink_metadata(folder).map_err(|source| {
        let path = path();
        ProxyError::Folder { path, source }
    })?;
    let is_ours = meta.uid() == rustix::process::geteuid().as_raw();
    if meta.is_dir() && is_ours && meta.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(ProxyError::FolderNotPrivate { path: path() })
}
