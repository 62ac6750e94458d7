//! The trajectory: append-only, one write a row, synced before the step counts
//! as recorded (`storage.md`, HARNESS-RUNTIME 6).
//!
//! Each row that is appended here continues from the lines before it by a hash
//! chain (`kernel::trajectory::Chain`). The chain's end is kept in memory and
//! follows the file, under the lock that rows are appended under.

mod back;
mod glances;

pub use back::{BackBounds, RowsBack, last_step, rows_back};
pub use glances::{GlancedRow, LinePlace, each_glance};

use crate::error::StoreError;
use crate::journal::{Journal, JournalLine, Refreshed, Tail};
use crate::lock::{LOCK_WAIT, LockFile};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::StepId;
use premath_kernel::record::trajectory::{Chain, ChainHead, StepRow, TrajectoryError, action};
use std::collections::HashSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often a row is written again because the file was replaced under it.
const REDO_MAX: usize = 8;

/// The trajectory of a repository, shared by the threads of a process.
#[derive(Debug)]
pub struct Trajectory {
    path: PathBuf,
    lock: LockFile,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    journal: Journal,
    /// Step ids of worker rows; looked up, never iterated.
    steps: HashSet<Box<str>>,
    /// Over the whole lines that were read or written.
    chain: Chain,
}

/// The trajectory could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TrajectoryFileError {
    /// The row is not one.
    #[error(transparent)]
    Row(#[from] TrajectoryError),
    /// The file could not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl TrajectoryFileError {
    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        match self {
            Self::Row(error) => error.class(),
            Self::Store(StoreError::Corrupt { .. }) => FailureClass::TrajectoryCorrupt,
            Self::Store(_) => FailureClass::ProjectionStoreIo,
        }
    }
}

impl Trajectory {
    /// Opens the trajectory; a file that is not there is empty.
    ///
    /// # Errors
    ///
    /// [`StoreError::LockIo`] where the folder cannot be made or locked in.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            path: path.to_path_buf(),
            lock: LockFile::beside(path),
            state: Mutex::new(State {
                journal: Journal::new(path),
                steps: HashSet::new(),
                chain: Chain::default(),
            }),
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a row; it is on the disk when this returns.
    ///
    /// # Errors
    ///
    /// [`TrajectoryFileError`]; the file is as it was.
    pub fn append(&self, row: &StepRow) -> Result<(), TrajectoryFileError> {
        self.append_where(row, |_| true).map(drop)
    }

    /// Appends a step's row where there is none with its id yet; returns
    /// whether it did.
    ///
    /// # Errors
    ///
    /// As [`Trajectory::append`].
    pub fn append_if_absent(&self, row: &StepRow) -> Result<bool, TrajectoryFileError> {
        self.append_where(row, |steps| !steps.contains(&*row.step_id))
    }

    fn append_where(
        &self,
        row: &StepRow,
        wanted: impl Fn(&HashSet<Box<str>>) -> bool,
    ) -> Result<bool, TrajectoryFileError> {
        let body = row.line()?;
        let mut state = self.state();
        let _held = self.lock.acquire(LOCK_WAIT)?;
        // Repeated if another program replaced the file in the meantime.
        let mut written = false;
        for _ in 0..REDO_MAX {
            state.journal.create()?;
            state.refresh(Tail::Repair)?;
            if !wanted(&state.steps) {
                return Ok(false);
            }
            // What was read in the meantime decides what the row continues
            // from.
            let (line, value) = state.chain.line(&body);
            state.journal.append(format!("{line}\n").as_bytes())?;
            state.chain.continue_from(value);
            written = state.journal.is_current();
            if written {
                break;
            }
            state.journal.forget();
        }
        if !written {
            let cause = std::io::Error::other("the file is being replaced repeatedly");
            return Err(StoreError::io("keep hold of", &self.path)(cause).into());
        }
        if row.action == action::WORKER_LOOP {
            state.steps.insert(row.step_id.as_str().into());
        }
        Ok(true)
    }

    /// Returns the chain value of the last row that has one: it represents
    /// every line up to that row. `None` where no row has one.
    ///
    /// # Errors
    ///
    /// [`TrajectoryFileError::Store`].
    pub fn chain_head(&self) -> Result<Option<ChainHead>, TrajectoryFileError> {
        let mut state = self.state();
        if !self.path.exists() {
            return Ok(None);
        }
        state.refresh(Tail::Peek)?;
        Ok(state.chain.head())
    }

    /// Returns whether a step has its row.
    ///
    /// # Errors
    ///
    /// [`TrajectoryFileError::Store`].
    pub fn has_step(&self, step_id: &StepId) -> Result<bool, TrajectoryFileError> {
        let mut state = self.state();
        if self.path.exists() {
            state.refresh(Tail::Peek)?;
        }
        Ok(state.steps.contains(step_id.as_str()))
    }

    /// Reads all rows in the order of the file.
    ///
    /// # Errors
    ///
    /// [`TrajectoryFileError::Store`], with line and field of a row that
    /// cannot be read.
    pub fn rows(&self) -> Result<Vec<StepRow>, TrajectoryFileError> {
        let mut rows = Vec::new();
        let mut journal = Journal::new(&self.path);
        if self.path.exists() {
            journal.refresh(
                Tail::Peek,
                |_| (),
                |line| {
                    rows.extend(read_line(&self.path, &line)?);
                    Ok(())
                },
            )?;
        }
        Ok(rows)
    }
}

/// Takes the rows whose lines may name an issue, with the numbers of the lines, without
/// holding them: those that have its id as a text, and those with an escape. The caller
/// looks at the id. Lines that are not rows are left out.
///
/// # Errors
///
/// [`StoreError::Io`].
pub fn each_row_naming(
    path: &Path,
    issue_id: &str,
    mut take: impl FnMut(u64, StepRow),
) -> Result<(), StoreError> {
    if !path.exists() {
        return Ok(());
    }
    let named = serde_json::Value::from(issue_id).to_string();
    let finder = memchr::memmem::Finder::new(named.as_bytes());
    // Another program may escape what need not be escaped.
    let escapes = ["\\u", "\\/"].map(memchr::memmem::Finder::new);
    let may_name = |line: &[u8]| {
        let mut finders = [&finder].into_iter().chain(&escapes);
        finders.any(|finder| finder.find(line).is_some())
    };
    let taken = |line: JournalLine<'_>| {
        if may_name(line.bytes)
            && let Ok(row) = StepRow::parse(line.bytes)
        {
            take(line.number, row);
        }
        Ok(())
    };
    Journal::new(path).refresh(Tail::Peek, |_| (), taken)
}

impl State {
    fn refresh(&mut self, tail: Tail) -> Result<(), StoreError> {
        let Self {
            journal,
            steps,
            chain,
        } = self;
        let path = journal.path().to_path_buf();
        let known = std::cell::RefCell::new((steps, chain));
        journal.refresh(
            tail,
            |refreshed| {
                if refreshed == Refreshed::Anew {
                    let (steps, chain) = &mut *known.borrow_mut();
                    steps.clear();
                    **chain = Chain::default();
                }
            },
            |line| {
                let row = read_line(&path, &line)?;
                let (steps, chain) = &mut *known.borrow_mut();
                if line.is_whole {
                    chain.follow(line.bytes);
                }
                if let Some(row) = row
                    && row.action == action::WORKER_LOOP
                {
                    steps.insert(String::from(row.step_id).into());
                }
                Ok(())
            },
        )
    }
}

pub(crate) fn read_line(
    path: &Path,
    line: &JournalLine<'_>,
) -> Result<Option<StepRow>, StoreError> {
    if line.bytes.trim_ascii().is_empty() {
        return Ok(None);
    }
    StepRow::parse(line.bytes).map(Some).map_err(|error| {
        let mut detail = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            detail = format!("{detail}: {error}");
            cause = error.source();
        }
        StoreError::Corrupt {
            path: path.to_path_buf(),
            line: line.number,
            column: 1,
            detail,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use premath_kernel::record::trajectory::check_chain;

    fn row(step: &str) -> StepRow {
        StepRow::new(
            step,
            action::WORKER_LOOP,
            "completed",
            jiff::Timestamp::UNIX_EPOCH,
        )
    }

    #[test]
    fn a_steps_row_is_written_once_by_any_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let (a, b) = (
            Trajectory::open(&path).unwrap(),
            Trajectory::open(&path).unwrap(),
        );
        assert!(a.rows().unwrap().is_empty());
        assert!(a.append_if_absent(&row("s1")).unwrap());
        assert!(!b.append_if_absent(&row("s1")).unwrap());
        assert!(b.append_if_absent(&row("s2")).unwrap());
        b.append(&row("s2")).unwrap();
        assert!(a.has_step(&"s2".into()).unwrap());
        assert_eq!(a.rows().unwrap().len(), 3);
    }

    #[test]
    fn a_torn_row_is_cut_and_a_corrupt_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let line = row("s1").line().unwrap();
        std::fs::write(&path, format!("{line}\n{{\"schema\":1,\"st")).unwrap();
        let trajectory = Trajectory::open(&path).unwrap();
        assert!(!trajectory.append_if_absent(&row("s1")).unwrap());
        assert!(trajectory.append_if_absent(&row("s2")).unwrap());
        assert_eq!(trajectory.rows().unwrap().len(), 2);
        assert!(broken(&path).is_empty());
        std::fs::write(&path, format!("{{\"schema\":2}}\n{line}\n")).unwrap();
        let error = trajectory.rows().unwrap_err();
        assert_eq!(error.class(), FailureClass::TrajectoryCorrupt);
        assert!(error.to_string().contains("t.jsonl:1:1: "), "{error}");
    }

    /// The breaks of the chain of a file.
    fn broken(path: &Path) -> Vec<u64> {
        let text = std::fs::read_to_string(path).unwrap();
        let breaks = check_chain(text.lines().map(str::as_bytes)).breaks;
        breaks.into_iter().map(|found| found.line).collect()
    }

    #[test]
    fn rows_of_several_writers_and_of_other_programs_are_one_chain() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let foreign = row("foreign").line().unwrap();
        std::fs::write(&path, format!("{foreign}\n")).unwrap();
        let (a, b) = (
            Trajectory::open(&path).unwrap(),
            Trajectory::open(&path).unwrap(),
        );
        assert_eq!(a.chain_head().unwrap(), None);
        a.append(&row("1")).unwrap();
        let first = b.chain_head().unwrap();
        assert!(first.is_some());
        assert_eq!(a.chain_head().unwrap(), first);
        b.append(&row("2")).unwrap();
        // Another program appends without a newline at the end.
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str(&foreign);
        std::fs::write(&path, &text).unwrap();
        let second = a.chain_head().unwrap();
        assert!(second.is_some() && second != first);
        a.append(&row("3")).unwrap();
        a.append(&row("4")).unwrap();
        b.append(&row("5")).unwrap();
        assert!(broken(&path).is_empty());
        assert_eq!(a.rows().unwrap().len(), 7);
        let report = check_chain(
            std::fs::read_to_string(&path)
                .unwrap()
                .lines()
                .map(str::as_bytes),
        );
        assert_eq!(report.covered, [1, 4]);
        assert_eq!(report.head(), a.chain_head().unwrap());
        assert_eq!(second.and_then(|value| report.line_of(value)), Some(3));
    }

    #[test]
    fn a_write_that_fails_does_not_break_the_chain() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let trajectory = Trajectory::open(&path).unwrap();
        trajectory.append(&row("1")).unwrap();
        trajectory.state().journal.panic_on_append();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            trajectory.append(&row("2")).unwrap();
        }));
        assert!(panicked.is_err());
        trajectory.append(&row("3")).unwrap();
        let other = Trajectory::open(&path).unwrap();
        other.state().journal.fail_next_sync();
        other.append(&row("4")).unwrap_err();
        trajectory.append(&row("5")).unwrap();
        assert!(broken(&path).is_empty());
    }

    #[test]
    fn a_file_that_is_replaced_begins_its_own_chain() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let trajectory = Trajectory::open(&path).unwrap();
        trajectory.append(&row("1")).unwrap();
        let line = row("other").line().unwrap();
        std::fs::write(folder.path().join("new"), format!("{line}\n")).unwrap();
        std::fs::rename(folder.path().join("new"), &path).unwrap();
        trajectory.append(&row("2")).unwrap();
        trajectory.append(&row("3")).unwrap();
        assert!(broken(&path).is_empty());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(trajectory.chain_head().unwrap(), None);
        trajectory.append(&row("4")).unwrap();
        assert!(broken(&path).is_empty());
    }

    #[test]
    fn rows_that_name_an_issue_are_taken_and_what_is_no_row_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let named = |path: &Path| {
            let mut found = Vec::new();
            each_row_naming(path, "é\"1", |number, row| {
                found.push((number, row.step_id))
            })
            .unwrap();
            let found = found
                .into_iter()
                .map(|(number, id)| (number, id.to_string()));
            found.collect::<Vec<_>>()
        };
        assert_eq!(named(&path), []);
        let log = Trajectory::open(&path).unwrap();
        for (step, issue) in [("s1", "é\"1"), ("s2", "é\"11"), ("s3", "é\"1")] {
            let mut row = row(step);
            row.issue_id = Some(issue.into());
            log.append(&row).unwrap();
        }
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.insert_str(0, "{\"issueId\":\"é\\\"1\"}\n");
        let escaped = text.lines().nth(1).unwrap().replace('é', "\\u00e9");
        text.push_str(&escaped.replace("s1", "s4"));
        text.push('\n');
        std::fs::write(&path, text).unwrap();
        let expected = [(2, "s1"), (4, "s3"), (5, "s4")];
        let expected = expected.map(|(number, id)| (number, id.to_owned()));
        assert_eq!(named(&path), expected);
    }
}
