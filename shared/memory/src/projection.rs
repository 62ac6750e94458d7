//! Session and feature ledger as files: read, checked, written whole
//! (HARNESS-RUNTIME 2, 4, 5).

use crate::artifact;
use crate::error::StoreError;
use crate::untrusted::{UntrustedError, UntrustedFolder};
use premath_kernel::failure::FailureClass;
use premath_kernel::record::feature::{FeatureLedger, LedgerError};
use premath_kernel::record::session::{Session, SessionError};
use serde::Serialize;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

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
        .map(|bytes| parsed_ledger(path, &bytes))
        .transpose()
}

fn parsed_ledger(path: &Path, bytes: &[u8]) -> Result<FeatureLedger, ProjectionError> {
    FeatureLedger::parse(bytes).map_err(|source| ProjectionError::Ledger {
        path: path.to_path_buf(),
        source,
    })
}

/// Where people look for a session or a feature ledger.
#[derive(Clone, Copy, Debug)]
pub struct PublishedCopy<'a> {
    /// The worktree.
    pub worktree: &'a Path,
    /// The file, in the worktree or where the operator chose.
    pub file: &'a Path,
}

/// Writes a session or a feature ledger, and the copy that people look at. If the copy
/// cannot be written, the error is logged and ignored.
///
/// # Errors
///
/// [`ProjectionError::Store`].
pub fn write_published(
    path: &Path,
    copy: PublishedCopy<'_>,
    document: &impl Serialize,
) -> Result<(), ProjectionError> {
    publish(path, copy, document).map(drop)
}

/// Writes a document to both places; returns its text.
fn publish(
    path: &Path,
    copy: PublishedCopy<'_>,
    document: &impl Serialize,
) -> Result<Vec<u8>, ProjectionError> {
    let value = premath_kernel::json::canonical::value_of(document);
    let text = text_of(path, &value)?;
    artifact::write(path, &text)?;
    if let Err(error) = copied(copy, &text) {
        tracing::debug!(%error, "cannot write a copy in the worktree");
    }
    Ok(text)
}

/// Removes the temporary files that a killed harness left beside a copy; only for the
/// holder of the worktree's lock. An error is logged and ignored.
pub fn sweep_beside(copy: PublishedCopy<'_>) {
    let swept = match copy.below() {
        Some(below) => UntrustedFolder::open(copy.worktree, below).and_then(|at| at.sweep()),
        None => Ok(()),
    };
    if let Err(error) = swept {
        tracing::debug!(%error, "cannot look for what a process left in the worktree");
    }
}

impl<'a> PublishedCopy<'a> {
    /// Returns the copy's folder, relative to the worktree; `None` where it is outside.
    fn below(&self) -> Option<&'a Path> {
        let folder = self.file.parent()?.strip_prefix(self.worktree).ok()?;
        let mut parts = folder.components();
        let is_plain = parts.all(|part| matches!(part, Component::Normal(_)));
        is_plain.then_some(folder)
    }
}

/// Writes the copy. Below the worktree no link is followed and none is replaced: steps
/// write there.
fn copied(copy: PublishedCopy<'_>, text: &[u8]) -> Result<(), StoreError> {
    let (worktree, path) = (copy.worktree, copy.file);
    let name = path.file_name().and_then(|name| name.to_str());
    let (Some(below), Some(name)) = (copy.below(), name) else {
        // A place of the operator's choice.
        return artifact::write(path, text);
    };
    artifact::refuse_locked(path)?;
    let folder = match UntrustedFolder::open(worktree, below) {
        Err(UntrustedError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            UntrustedFolder::make(worktree, below)?
        }
        opened => opened?,
    };
    Ok(folder.write_copy(name, text, artifact::PRIVATE)?)
}

/// The feature ledger that a lane wrote last: it is parsed again only where the file
/// has other bytes than that.
#[derive(Debug, Default)]
pub struct WrittenLedger(Option<(Vec<u8>, FeatureLedger)>);

impl WrittenLedger {
    /// Reads the ledger; `None` where there is none.
    ///
    /// # Errors
    ///
    /// [`ProjectionError`], naming the field that does not fit.
    pub fn read(&mut self, path: &Path) -> Result<Option<FeatureLedger>, ProjectionError> {
        let bytes = artifact::read(path)?;
        match (self.0.take(), bytes) {
            (Some((text, ledger)), Some(bytes)) if text == bytes => Ok(Some(ledger)),
            (_, Some(bytes)) => parsed_ledger(path, &bytes).map(Some),
            (_, None) => Ok(None),
        }
    }

    /// Writes the ledger as [`write_published`] does.
    ///
    /// # Errors
    ///
    /// [`ProjectionError::Store`].
    pub fn write_published(
        &mut self,
        path: &Path,
        copy: PublishedCopy<'_>,
        ledger: FeatureLedger,
    ) -> Result<(), ProjectionError> {
        let text = publish(path, copy, &ledger)?;
        self.0 = Some((text, ledger));
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use premath_kernel::record::feature::{FeatureStatus, FeatureWrite};
    use std::fs;
    use std::os::unix::fs::symlink;

    fn with(ledger: Option<FeatureLedger>, id: &str) -> FeatureLedger {
        let write = FeatureWrite {
            status: Some(FeatureStatus::Pending),
            summary: Some("r\u{e9}sum\u{e9} \"1.50\"".to_owned()),
            ..FeatureWrite::new(id)
        };
        FeatureLedger::write(ledger, write, Timestamp::UNIX_EPOCH).unwrap()
    }

    #[test]
    fn a_ledger_that_was_written_is_what_the_file_says_also_after_others_changed_it() {
        let folder = tempfile::tempdir().unwrap();
        let [path, copy] = ["ledger.json", "copy.json"].map(|name| folder.path().join(name));
        let published = PublishedCopy {
            worktree: folder.path(),
            file: &copy,
        };
        let mut written = WrittenLedger::default();
        assert_eq!(written.read(&path).unwrap(), None);
        let mut ledger = None;
        for id in ["a", "b"] {
            let next = with(ledger, id);
            written.write_published(&path, published, next).unwrap();
            assert_eq!(fs::read(&path).unwrap(), fs::read(&copy).unwrap());
            let parsed = read_ledger(&path).unwrap();
            ledger = written.read(&path).unwrap();
            assert_eq!(ledger, parsed);
        }
        // It is not parsed where the bytes are the same.
        let kept = with(None, "kept");
        let mut same = WrittenLedger(Some((fs::read(&path).unwrap(), kept.clone())));
        assert_eq!(same.read(&path).unwrap(), Some(kept));
        let other = with(None, "other");
        written
            .write_published(&path, published, with(ledger, "c"))
            .unwrap();
        write_ledger(&path, &other).unwrap();
        assert_eq!(written.read(&path).unwrap(), Some(other));
        fs::write(&path, "no ledger").unwrap();
        written.read(&path).unwrap_err();
    }
    #[test]
    fn a_copy_is_not_written_through_a_link_of_a_step() {
        let [worktree, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let path = outside.path().join("authority.json");
        let copy = worktree.path().join(".premath/session.json");
        let victim = outside.path().join("session.json");
        fs::write(&victim, "precious").unwrap();
        symlink(outside.path(), worktree.path().join(".premath")).unwrap();
        let ledger = with(None, "a");
        let published = PublishedCopy {
            worktree: worktree.path(),
            file: &copy,
        };
        write_published(&path, published, &ledger).unwrap();
        assert!(path.exists());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        // Where the folder is gone it is made again.
        fs::remove_file(worktree.path().join(".premath")).unwrap();
        write_published(&path, published, &ledger).unwrap();
        // A link in the file's own place is replaced.
        fs::remove_file(&copy).unwrap();
        symlink(&victim, &copy).unwrap();
        write_published(&path, published, &ledger).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(fs::read(&copy).unwrap(), fs::read(&path).unwrap());
    }

    #[test]
    fn what_a_killed_process_left_beside_a_copy_goes() {
        let folder = tempfile::tempdir().unwrap();
        let [worktree, victim] = ["worktree", "victim"].map(|name| folder.path().join(name));
        fs::write(&victim, "precious").unwrap();
        let copy = worktree.join(".premath/session.json");
        let published = PublishedCopy {
            worktree: &worktree,
            file: &copy,
        };
        // Nothing is there yet.
        sweep_beside(published);
        fs::create_dir_all(worktree.join(".premath/.premath-new-7-1/deep")).unwrap();
        fs::write(worktree.join(".premath/.premath-new-7-0"), "{").unwrap();
        symlink(&victim, worktree.join(".premath/.premath-new-7-2")).unwrap();
        fs::write(&copy, "{}").unwrap();
        for name in ["theirs", ".premath-new-theirs"] {
            fs::write(worktree.join(".premath").join(name), "").unwrap();
        }
        sweep_beside(published);
        let entries = fs::read_dir(worktree.join(".premath")).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".premath-new-theirs", "session.json", "theirs"]);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        // A link in the place of the folder is not followed.
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(worktree.join(".premath"), &elsewhere).unwrap();
        fs::write(elsewhere.join(".premath-new-7-0"), "{").unwrap();
        symlink(&elsewhere, worktree.join(".premath")).unwrap();
        sweep_beside(published);
        assert!(elsewhere.join(".premath-new-7-0").exists());
    }
}
