//! Reads a trajectory from its end: the last rows are wanted first, and the file
//! may have millions.

use crate::artifact::open_regular;
use crate::error::StoreError;
use memchr::memmem::Finder;
use premath_kernel::record::trajectory::{StepRow, action};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How much is read at a time.
const CHUNK: u64 = 1 << 20;

/// How far is read.
#[derive(Clone, Copy, Debug)]
pub struct BackBounds {
    /// The most rows that are returned.
    pub rows: usize,
    /// The most bytes that are searched.
    pub bytes: u64,
}

/// Rows from the end of a trajectory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowsBack {
    /// The rows, the last one first, each with where its line begins.
    pub rows: Vec<(u64, StepRow)>,
    /// How many lines cannot be read as rows.
    pub unreadable: u64,
    /// Where the lines before these end; `None` where there are none.
    pub before: Option<u64>,
    /// How many bytes were searched.
    pub searched: u64,
}

/// Reads rows from the end, or from where the lines before others end. Lines
/// without all of `texts` are not parsed.
///
/// # Errors
///
/// [`StoreError::Io`] where the file is there and cannot be read.
pub fn rows_back(
    path: &Path,
    before: Option<u64>,
    texts: &[String],
    is_wanted: impl Fn(&StepRow) -> bool,
    bounds: BackBounds,
) -> Result<RowsBack, StoreError> {
    let finders: Vec<Finder<'_>> = texts.iter().map(Finder::new).collect();
    let mut found = RowsBack::default();
    let mut end = None;
    let take = |begin: u64, line: &[u8]| {
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        let end = *end.get_or_insert(begin.saturating_add(length));
        if !line.trim_ascii().is_empty() && finders.iter().all(|f| f.find(line).is_some()) {
            match StepRow::parse(line) {
                Ok(row) if is_wanted(&row) => found.rows.push((begin, row)),
                Ok(_) => {}
                Err(_) => found.unreadable += 1,
            }
        }
        found.before = (begin > 0).then_some(begin);
        found.searched = end.saturating_sub(begin);
        match found.rows.len() >= bounds.rows || found.searched >= bounds.bytes {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    lines_back(path, before, take)?;
    Ok(found)
}

/// Returns the last row of a worker's step on an issue; `None` where there is
/// none. It reads from the end, and parses rows that name the issue alone.
///
/// # Errors
///
/// [`StoreError::Io`] where the file is there and cannot be read.
pub fn last_step(path: &Path, issue_id: &str) -> Result<Option<StepRow>, StoreError> {
    let named = serde_json::Value::from(issue_id).to_string();
    let finder = Finder::new(named.as_bytes());
    let is_of_issue = |row: &StepRow| {
        row.action == action::WORKER_LOOP && row.issue_id.as_deref() == Some(issue_id)
    };
    let mut found = None;
    lines_back(path, None, |_, line| {
        if finder.find(line).is_some() {
            found = StepRow::parse(line).ok().filter(is_of_issue);
        }
        match found {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    })?;
    Ok(found)
}

/// Takes the lines of a file from its end, or from `before`, each with where it
/// begins, until it is enough.
fn lines_back(
    path: &Path,
    before: Option<u64>,
    mut take: impl FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let failed = |source| StoreError::io("read", path)(source);
    let file = match open_regular(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(failed)?,
    };
    let length = file.metadata().map_err(failed)?.len();
    let mut end = before.map_or(length, |before| before.min(length));
    // The begin of the line that the last chunk began in.
    let mut rest = Vec::new();
    while end > 0 {
        let begin = end.saturating_sub(CHUNK);
        let mut chunk = vec![0; usize::try_from(end - begin).unwrap_or(0)];
        file.read_exact_at(&mut chunk, begin).map_err(failed)?;
        chunk.append(&mut rest);
        let first = match begin {
            0 => 0,
            _ => memchr::memchr(b'\n', &chunk).map_or(chunk.len(), |at| at + 1),
        };
        let mut tail = chunk.len();
        while tail > first {
            let line_end = match chunk[tail - 1] {
                b'\n' => tail - 1,
                _ => tail,
            };
            let start = memchr::memrchr(b'\n', &chunk[first..line_end]);
            let start = start.map_or(first, |at| first + at + 1);
            let place = begin + u64::try_from(start).unwrap_or(u64::MAX);
            if take(place, &chunk[start..line_end]).is_break() {
                return Ok(());
            }
            tail = start;
        }
        chunk.truncate(first);
        rest = chunk;
        end = begin;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Trajectory;
    use super::*;

    fn row(issue: &str, step: &str) -> StepRow {
        let time = jiff::Timestamp::UNIX_EPOCH;
        let mut row = StepRow::new(step, action::WORKER_LOOP, "completed", time);
        row.issue_id = Some(issue.into());
        row
    }

    fn written(count: usize) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let trajectory = Trajectory::open(&path).unwrap();
        for number in 0..count {
            let issue = ["a", "b"][number % 2];
            trajectory.append(&row(issue, &number.to_string())).unwrap();
        }
        (folder, path)
    }

    fn steps(found: &RowsBack) -> Vec<String> {
        let rows = found.rows.iter();
        rows.map(|(_, row)| row.step_id.to_string()).collect()
    }

    const ALL: BackBounds = BackBounds {
        rows: 100,
        bytes: u64::MAX,
    };

    #[test]
    fn pages_from_the_end_are_all_rows_once() {
        let (_folder, path) = written(7);
        let page = |before| {
            let bounds = BackBounds { rows: 3, ..ALL };
            rows_back(&path, before, &[], |_| true, bounds).unwrap()
        };
        let first = page(None);
        assert_eq!(steps(&first), ["6", "5", "4"]);
        let second = page(first.before);
        assert_eq!(steps(&second), ["3", "2", "1"]);
        let third = page(second.before);
        assert_eq!(steps(&third), ["0"]);
        assert_eq!(third.before, None);
        let none = Path::new("/nowhere/t.jsonl");
        assert_eq!(
            rows_back(none, None, &[], |_| true, ALL).unwrap(),
            RowsBack::default()
        );
    }

    #[test]
    fn rows_that_are_not_wanted_are_passed_and_a_search_ends() {
        let (_folder, path) = written(6);
        let texts = ["\"a\"".to_owned()];
        let is_a = |row: &StepRow| row.issue_id.as_deref() == Some("a");
        let found = rows_back(&path, None, &texts, is_a, ALL).unwrap();
        assert_eq!(steps(&found), ["4", "2", "0"]);
        assert_eq!(found.searched, std::fs::metadata(&path).unwrap().len() - 1);
        let bounds = BackBounds { bytes: 1, ..ALL };
        let found = rows_back(&path, None, &texts, is_a, bounds).unwrap();
        assert!(found.rows.is_empty() && found.before.is_some());
    }

    #[test]
    fn what_is_no_row_is_counted_and_one_that_is_being_written_too() {
        let (_folder, path) = written(1);
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{}\n\n{\"schema\":1,\"st");
        std::fs::write(&path, text).unwrap();
        let found = rows_back(&path, None, &[], |_| true, ALL).unwrap();
        assert_eq!((steps(&found), found.unreadable), (vec!["0".to_owned()], 2));
    }

    #[test]
    fn the_last_step_of_an_issue_is_found_from_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        assert_eq!(last_step(&path, "a").unwrap(), None);
        let of = |issue: &str, step: &str| {
            let mut row = row(issue, step);
            row.next_step = Some("x".repeat(700_000));
            row
        };
        let trajectory = Trajectory::open(&path).unwrap();
        for (issue, step) in [("a", "1"), ("a", "2"), ("b", "3"), ("c", "4"), ("c", "5")] {
            trajectory.append(&of(issue, step)).unwrap();
        }
        for (issue, step) in [
            ("a", Some("2")),
            ("b", Some("3")),
            ("c", Some("5")),
            ("d", None),
        ] {
            let found = last_step(&path, issue).unwrap();
            assert_eq!(found.map(|row| row.step_id.to_string()).as_deref(), step);
        }
    }
}
