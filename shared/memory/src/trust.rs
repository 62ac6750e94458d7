//! What the operator last accepted of the files that govern batches,
//! `.premath/trust.json` of the main worktree.

use crate::artifact;
use crate::error::StoreError;
use crate::roots::MemoryRoots;
use premath_kernel::policy::trust::{TrustError, TrustRecord};
use std::path::PathBuf;

/// The record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustFileError {
    /// It cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It is not a record.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

/// Names the file.
pub fn path(roots: &MemoryRoots) -> PathBuf {
    roots.repository.join(".premath").join("trust.json")
}

/// Reads what was accepted; `None` where nothing was.
///
/// # Errors
///
/// [`TrustFileError`]: the file cannot be read, or is not a record.
pub fn read(roots: &MemoryRoots) -> Result<Option<TrustRecord>, TrustFileError> {
    match artifact::read(&path(roots))? {
        Some(bytes) => Ok(Some(TrustRecord::parse(&bytes)?)),
        None => Ok(None),
    }
}

/// Records what was accepted, whole or not at all.
///
/// # Errors
///
/// [`TrustFileError::Store`]; the old record is as it was.
pub fn write(roots: &MemoryRoots, record: &TrustRecord) -> Result<(), TrustFileError> {
    Ok(artifact::write_durably(
        &path(roots),
        record.text().as_bytes(),
    )?)
}

/// Returns who accepts, by the name that the system gives.
pub fn operator() -> String {
    let names = ["USER", "LOGNAME"].into_iter().filter_map(std::env::var_os);
    let mut names = names.filter(|name| !name.is_empty());
    names.next().map_or_else(
        || "operator".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use premath_kernel::json::stamp::Stamp;
    use premath_kernel::policy::trust::{Acceptance, Acceptor, GoverningFiles};
    use std::fs;

    #[test]
    fn a_record_is_written_whole_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let roots = MemoryRoots::at(folder.path());
        assert_eq!(read(&roots).unwrap(), None);
        let by = Acceptor {
            name: "ann".to_owned(),
            acceptance: Acceptance::FirstUse,
            head: None,
            at: Stamp::parse("2026-03-05T10:00:00Z").unwrap(),
        };
        let record = TrustRecord::new(GoverningFiles::default(), by);
        write(&roots, &record).unwrap();
        assert_eq!(read(&roots).unwrap(), Some(record));
        let left: Vec<_> = fs::read_dir(folder.path().join(".premath"))
            .unwrap()
            .collect();
        assert_eq!(left.len(), 1);
        fs::write(path(&roots), "{}").unwrap();
        let error = read(&roots).unwrap_err();
        assert!(matches!(error, TrustFileError::Trust(_)), "{error}");
    }
}
