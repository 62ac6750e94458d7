//! Session and feature ledger as files: read, checked, written whole
//! (HARNESS-RUNTIME 2, 4, 5).

use crate::artifact;
use crate::error::StoreError;
use premath_kernel::failure::FailureClass;
use premath_kernel::record::feature::{FeatureLedger, LedgerError};
use premath_kernel::record::session::{Session, SessionError};
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A projection could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ProjectionError {
    /// The session does not have its shape.
    #[error("{path} is not a session")]
    Session {
        /// The file.
        path: PathBuf,
        /// The error in the session.
        source: SessionError,
    },
    /// The ledger does not have its shape.
    #[error("{path} is not a feature ledger")]
    Ledger {
        /// The file.
        path: PathBuf,
        /// The error in the ledger.
        source: LedgerError,
    },
    /// The file could not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ProjectionError {
    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        match self {
            Self::Session { source, .. } => source.class(),
            Self::Ledger { source, .. } => source.class(),
            Self::Store(_) => FailureClass::ProjectionStoreIo,
        }
    }
}

/// Reads a session; `None` where there is none.
///
/// # Errors
///
/// [`ProjectionError`], naming the field that does not fit.
pub fn read_session(path: &Path) -> Result<Option<Session>, ProjectionError> {
    artifact::read(path)?
        .map(|bytes| {
            Session::parse(&bytes).map_err(|source| ProjectionError::Session {
                path: path.to_path_buf(),
                source,
            })
        })
        .transpose()
}

/// Writes a session.
///
/// # Errors
///
/// [`ProjectionError::Store`].
pub fn write_session(path: &Path, session: &Session) -> Result<(), ProjectionError> {
    Ok(write_document(path, session)?)
}

/// Reads a feature ledger; `None` where there is none.
///
/// # Errors
///
/// [`ProjectionError`], naming the field that does not fit.
pub fn read_ledger(path: &Path) -> Result<Option<FeatureLedger>, ProjectionError> {
    artifact::read(path)?
        .map(|bytes| {
            FeatureLedger::parse(&bytes).map_err(|source| ProjectionError::Ledger {
                path: path.to_path_buf(),
                source,
            })
        })
        .transpose()
}

/// Writes a session or a feature ledger, and the same to a place where people
/// look: what refuses the copy is logged and nothing else.
///
/// # Errors
///
/// [`ProjectionError::Store`].
pub fn write_published(
    path: &Path,
    copy: &Path,
    document: &impl Serialize,
) -> Result<(), ProjectionError> {
    let value = premath_kernel::json::canonical::value_of(document);
    let text = text_of(path, &value)?;
    artifact::write(path, &text)?;
    if let Err(error) = artifact::write(copy, &text) {
        tracing::debug!(%error, "cannot write a copy in the worktree");
    }
    Ok(())
}

/// Writes a feature ledger.
///
/// # Errors
///
/// [`ProjectionError::Store`].
pub fn write_ledger(path: &Path, ledger: &FeatureLedger) -> Result<(), ProjectionError> {
    Ok(write_document(path, ledger)?)
}

/// Writes a JSON document, keys sorted, indented, whole or not at all.
///
/// # Errors
///
/// [`StoreError::Io`].
pub fn write_document(path: &Path, document: &impl Serialize) -> Result<(), StoreError> {
    write_value(path, &premath_kernel::json::canonical::value_of(document))
}

/// Writes generic JSON as [`write_document`] does.
///
/// # Errors
///
/// [`StoreError::Io`].
pub(crate) fn write_value(path: &Path, value: &Value) -> Result<(), StoreError> {
    artifact::write(path, &text_of(path, value)?)
}

/// Returns a document as it is written to a path.
fn text_of(path: &Path, value: &Value) -> Result<Vec<u8>, StoreError> {
    // `{value:#}` writes the same bytes, through a formatter that is slow.
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|error| StoreError::io("write", path)(error.into()))?;
    text.push(b'\n');
    Ok(text)
}
