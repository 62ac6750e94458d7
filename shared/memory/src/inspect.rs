//! Reads issue memory and trajectory as far as possible: the rows, and every line
//! that is not a row (`storage.md`).

use crate::error::StoreError;
use crate::issues::read_row;
use crate::journal::{JournalLine, is_comment, is_object};
use crate::row::IssueRow;
use crate::trajectory;
use premath_kernel::record::trajectory::StepRow;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineFault {
    /// The line, from 1.
    pub line: u64,
    /// The column in bytes, from 1.
    pub column: u64,
    /// What is wrong and what would be right.
    pub detail: String,
}

/// A file read as far as it can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection<T> {
    /// The rows that can be read.
    pub rows: T,
    /// The lines that cannot be read, with the faults.
    pub faults: Vec<LineFault>,
    /// The last line, where it is cut: for a reader it is not there, and the
    /// next writer puts it aside.
    pub cut: Option<u64>,
}

/// Reads issue memory and skips lines that are not rows: returns the last readable
/// row of each issue.
///
/// # Errors
///
/// [`StoreError::Missing`] or [`StoreError::Io`].
pub fn inspect_issues(path: &Path) -> Result<Inspection<BTreeMap<String, IssueRow>>, StoreError> {
    let bytes = read(path)?;
    let mut rows = BTreeMap::new();
    let mut faults = Vec::new();
    for line in lines(&bytes).filter(|line| !is_ignored(line)) {
        match read_row(path, &line) {
            Ok(row) => {
                rows.insert(row.issue.id.to_string(), row);
            }
            Err(error) => faults.extend(fault(error)),
        }
    }
    let cut = cut(&bytes);
    Ok(Inspection { rows, faults, cut })
}

/// Reads the trajectory and skips lines that are not rows.
///
/// # Errors
///
/// [`StoreError::Io`]; a file that is not there is empty.
pub fn inspect_trajectory(path: &Path) -> Result<Inspection<Vec<StepRow>>, StoreError> {
    let bytes = match read(path) {
        Err(StoreError::Missing { .. }) => Vec::new(),
        read => read?,
    };
    let mut rows = Vec::new();
    let mut faults = Vec::new();
    for line in lines(&bytes) {
        match trajectory::read_line(path, &line) {
            Ok(row) => rows.extend(row),
            Err(error) => faults.extend(fault(error)),
        }
    }
    let cut = cut(&bytes);
    Ok(Inspection { rows, faults, cut })
}

/// Writes the lines of issue memory that can be read into a new file, byte for
/// byte and in their order; returns how many there are, and those left out.
///
/// # Errors
///
/// [`StoreError::Io`] also where the new file is there already: no file is
/// ever written over.
pub fn repair_issues(path: &Path, new: &Path) -> Result<Inspection<usize>, StoreError> {
    let bytes = read(path)?;
    let mut content = Vec::with_capacity(bytes.len() + 1);
    let mut rows = 0;
    let mut faults = Vec::new();
    for line in lines(&bytes) {
        if !is_ignored(&line) {
            if let Err(error) = read_row(path, &line) {
                faults.extend(fault(error));
                continue;
            }
            rows += 1;
        }
        content.extend_from_slice(line.bytes);
        content.push(b'\n');
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(new)
        .map_err(StoreError::io("make", new))?;
    file.write_all(&content)
        .and_then(|()| file.sync_all())
        .map_err(StoreError::io("write", new))?;
    let cut = cut(&bytes);
    Ok(Inspection { rows, faults, cut })
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    std::fs::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::Missing {
            path: path.to_path_buf(),
        },
        _ => StoreError::io("read", path)(error),
    })
}

/// The lines of a file; what follows the last newline counts as for every
/// reader, where it is complete.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = JournalLine<'_>> {
    let (whole, rest) = parted(bytes);
    let tail = (is_object(rest) || is_comment(rest)).then_some(rest);
    let whole = whole.split_inclusive(|byte| *byte == b'\n');
    whole
        .map(|line| line.strip_suffix(b"\n").unwrap_or(line))
        .chain(tail)
        .zip(1..)
        .map(|(bytes, number)| JournalLine {
            number,
            bytes,
            is_whole: true,
        })
}

/// Parts whole lines from what follows the last newline.
fn parted(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    bytes.split_at(end.map_or(0, |end| end + 1))
}

fn cut(bytes: &[u8]) -> Option<u64> {
    let (whole, rest) = parted(bytes);
    let is_cut = !is_object(rest) && !is_comment(rest) && !rest.trim_ascii().is_empty();
    is_cut.then(|| whole.iter().filter(|byte| **byte == b'\n').count() as u64 + 1)
}

fn is_ignored(line: &JournalLine<'_>) -> bool {
    let bytes = line.bytes.trim_ascii();
    bytes.is_empty() || bytes.starts_with(b"#")
}

pub(crate) fn fault(error: StoreError) -> Option<LineFault> {
    match error {
        StoreError::Corrupt {
            line,
            column,
            detail,
            ..
        } => Some(LineFault {
            line,
            column,
            detail,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: &str =
        "# ours\n{\"id\":\"a\"}\n{\"id\":\n\n[1]\n{\"id\":\"a\",\"title\":\"2\"}\n{\"id\":\"b\"";

    #[test]
    fn every_line_that_is_none_is_named_and_the_rest_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("issues.jsonl");
        std::fs::write(&path, MEMORY).unwrap();
        let found = inspect_issues(&path).unwrap();
        assert_eq!(found.rows.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(found.rows["a"].text_of("title"), "2");
        let places: Vec<_> = found.faults.iter().map(|f| (f.line, f.column)).collect();
        assert_eq!(places, [(3, 6), (5, 1)]);
        assert_eq!(found.cut, Some(7));
        let missing = inspect_issues(&folder.path().join("none"));
        assert!(matches!(missing, Err(StoreError::Missing { .. })));
    }

    #[test]
    fn a_repair_writes_what_can_be_read_into_a_new_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("issues.jsonl");
        let new = folder.path().join("new.jsonl");
        std::fs::write(&path, MEMORY).unwrap();
        let repaired = repair_issues(&path, &new).unwrap();
        assert_eq!((repaired.rows, repaired.faults.len()), (2, 2));
        assert_eq!(
            std::fs::read_to_string(&new).unwrap(),
            "# ours\n{\"id\":\"a\"}\n\n{\"id\":\"a\",\"title\":\"2\"}\n"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), MEMORY);
        assert!(repair_issues(&path, &new).is_err());
        assert!(repair_issues(&path, &path).is_err());
        let mended = inspect_issues(&new).unwrap();
        assert_eq!((mended.faults.len(), mended.cut), (0, None));
    }

    #[test]
    fn a_trajectory_is_read_past_its_bad_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        assert_eq!(inspect_trajectory(&path).unwrap().rows, []);
        let row = StepRow::new("s", "a", "ok", jiff::Timestamp::UNIX_EPOCH);
        let line = row.line().unwrap();
        std::fs::write(&path, format!("{line}\n{{\"schema\":2}}\n{line}\n{{")).unwrap();
        let found = inspect_trajectory(&path).unwrap();
        assert_eq!((found.rows.len(), found.faults.len()), (2, 1));
        assert_eq!((found.faults[0].line, found.cut), (2, Some(4)));
    }
}
