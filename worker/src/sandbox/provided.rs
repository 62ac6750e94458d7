//! The files of `[verify] provide` in a checkout for verifications.

use crate::settings::{Provided, tracked_at};
use premath_kernel::failure::FailureClass;
use premath_memory::untrusted::{UntrustedError, UntrustedFolder};
use premath_worktree::checkout::Checkout;
use std::path::{Path, PathBuf};

/// A provided file is not in the checkout: what is there is not what the
/// operator lists for verifications, and nothing is verified with it.
#[derive(Debug, thiserror::Error)]
pub enum ProvideError {
    /// The commit has a file of its own there.
    #[error(
        "{} of `provide` under [verify] cannot be put in place: the commit to be verified tracks {}",
        .path.display(),
        .tracked.display()
    )]
    Tracked {
        /// The provided file.
        path: PathBuf,
        /// What is tracked: the file, or a folder above it as something else.
        tracked: PathBuf,
    },
    /// The file cannot be written.
    #[error("{} of `provide` under [verify] cannot be put in place", .path.display())]
    Write {
        /// The provided file.
        path: PathBuf,
        /// The cause.
        source: UntrustedError,
    },
}

impl ProvideError {
    /// Returns the failure class.
    pub(crate) const fn class(&self) -> FailureClass {
        match self {
            Self::Tracked { .. } => FailureClass::WorkProtectedPath,
            Self::Write { .. } => FailureClass::ProjectionStoreIo,
        }
    }
}

/// Puts the provided files into a checkout. Nothing is forced: a file that the
/// commit tracks is not replaced.
///
/// # Errors
///
/// [`ProvideError`] where a file is not there afterwards.
pub(crate) fn provide(
    provided: &[Provided],
    checkout: &Checkout,
    commit: &str,
) -> Result<(), ProvideError> {
    for file in provided {
        let path = file.path.clone();
        if let Some(tracked) = tracked_at(checkout.tree(), commit, &file.path) {
            let tracked = tracked.to_path_buf();
            return Err(ProvideError::Tracked { path, tracked });
        }
        put(file, checkout.folder()).map_err(|source| ProvideError::Write { path, source })?;
    }
    Ok(())
}

fn put(file: &Provided, checkout: &Path) -> Result<(), UntrustedError> {
    let folder = file.path.parent().unwrap_or(Path::new(""));
    let name = file.path.file_name().unwrap_or_default().to_string_lossy();
    let is_there = std::fs::symlink_metadata(checkout.join(folder)).is_ok();
    // What the tree has in the place of the folder is not replaced.
    let folder = match is_there {
        true => UntrustedFolder::open(checkout, folder)?,
        false => UntrustedFolder::make(checkout, folder)?,
    };
    if let Ok(Some(content)) = folder.read(&name, file.content.len() as u64)
        && content == *file.content
    {
        return Ok(());
    }
    folder.write(&name, &file.content, 0o600)
}
