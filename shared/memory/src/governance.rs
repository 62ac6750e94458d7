//! What a repository's capability registry claims (HARNESS-RUNTIME 3.2).

use crate::artifact;
use crate::error::StoreError;
use premath_kernel::turn::governance::{REGISTRY_PATHS, RegistryError, is_claimed};
use std::path::{Path, PathBuf};

/// The claims cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The registry does not have the form of one.
    #[error("cannot read what {path} claims: {source}")]
    Registry {
        /// The registry.
        path: PathBuf,
        /// The error in the registry.
        source: RegistryError,
    },
    /// The registry cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns whether a repository claims the governance profile; one without a
/// registry does not.
///
/// # Errors
///
/// [`ClaimError`].
pub fn claims_governance(repository: &Path) -> Result<bool, ClaimError> {
    for path in REGISTRY_PATHS.map(|path| repository.join(path)) {
        if let Some(registry) = artifact::read(&path)? {
            return is_claimed(&registry).map_err(|source| ClaimError::Registry { path, source });
        }
    }
    Ok(false)
}
