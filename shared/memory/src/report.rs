//! The reports that batches leave at their end: a text a batch, below
//! `artifacts/reports`.

use crate::artifact;
use crate::error::StoreError;
use crate::roots::MemoryRoots;
use jiff::Timestamp;
use premath_kernel::json::id::BatchId;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const EXTENSION: &str = ".txt";

/// A report that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptReport {
    /// The batch.
    pub batch_id: BatchId,
    /// The file.
    pub path: PathBuf,
    /// The time at which the report was written.
    pub at: Timestamp,
}

/// Names the file of a batch's report.
pub fn path(roots: &MemoryRoots, batch_id: &BatchId) -> PathBuf {
    roots.reports.join(format!("{batch_id}{EXTENSION}"))
}

/// Keeps a report, in the place of an earlier one of the same batch.
///
/// # Errors
///
/// [`StoreError::Io`]; an earlier one is as it was.
pub fn keep(path: &Path, text: &str) -> Result<(), StoreError> {
    artifact::write(path, text.as_bytes())
}

/// Lists what is kept, the latest first.
///
/// # Errors
///
/// [`StoreError::Io`] where the folder is there and cannot be read.
pub fn list(roots: &MemoryRoots) -> Result<Vec<KeptReport>, StoreError> {
    let folder = &roots.reports;
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io("read", folder)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(StoreError::io("read", folder))?;
        let name = entry.file_name();
        let Some(batch_id) = name.to_str().and_then(|name| name.strip_suffix(EXTENSION)) else {
            continue;
        };
        let Ok(meta) = entry.metadata() else {
            continue;
        };
        let at = meta.modified().ok();
        let at = at.and_then(|at| Timestamp::try_from(at).ok());
        if meta.is_file() && !batch_id.is_empty() {
            found.push(KeptReport {
                batch_id: batch_id.into(),
                path: entry.path(),
                at: at.unwrap_or(Timestamp::UNIX_EPOCH),
            });
        }
    }
    found.sort_by(|a, b| (b.at, &b.batch_id).cmp(&(a.at, &a.batch_id)));
    Ok(found)
}

/// Reads a report; what is not text in it is replaced.
///
/// # Errors
///
/// [`StoreError::Io`].
pub fn read(report: &KeptReport) -> Result<String, StoreError> {
    let bytes = artifact::read(&report.path)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, SystemTime};

    #[test]
    fn the_latest_report_comes_first_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let roots = MemoryRoots::at(folder.path());
        assert!(list(&roots).unwrap().is_empty());
        // A batch that began first and was taken up again may end last.
        for (batch, second) in [("hb1_a", 3), ("hb1_b", 1), ("hb1_c", 1)] {
            let path = path(&roots, &batch.into());
            keep(&path, "an earlier one").unwrap();
            keep(&path, batch).unwrap();
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(at).unwrap();
        }
        fs::write(roots.reports.join("mine.md"), "").unwrap();
        let found = list(&roots).unwrap();
        let ids: Vec<&str> = found.iter().map(|report| &*report.batch_id).collect();
        assert_eq!(ids, ["hb1_a", "hb1_c", "hb1_b"]);
        assert_eq!(read(&found[0]).unwrap(), "hb1_a");
    }
}
