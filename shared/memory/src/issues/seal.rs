//! The seal: what the issue store was when the last transaction ended, in a file
//! beside it. A transaction that finds other rows than the seal says was
//! preceded by a change that was none: an editor's, git's, or that of a command
//! that went past the harness. It is reported and not refused, for a person
//! may.
//!
//! The seal holds a sum over the rows and the file's state. Where the state is
//! the same, nothing is read; where it is another, the sum decides, so that a
//! compaction, a copy or a touch is not a change. Both the rows before and
//! those after are written before they are appended: a process that is killed
//! in between leaves one or the other.
//!
//! A changed row is compared with the copy of what transactions left
//! ([`base`]) and stays on the list of foreign rows ([`foreign`]) until the
//! operator accepts it, whatever transactions follow.
//!
//! A process that can write all of these files can hide a change.

mod base;
mod file;
mod foreign;
mod outside;

pub use foreign::{ForeignKind, ForeignRow, ForeignSelection};
pub use outside::OutsideChange;

use crate::error::StoreError;
use crate::journal::FileState;
use crate::row::IssueRow;
use base::BaseFile;
use file::{Look, SealFile};
use foreign::ForeignList;
use premath_kernel::json::canonical;
use premath_kernel::json::id::IssueId;
use premath_kernel::json::stamp::Stamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};

/// How many findings the seal keeps for other processes to tell of.
const KEPT: usize = 8;

/// A sum over rows, the same in any order: each row's digest, added bit by bit
/// without carry. An id appears once in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowSum([u8; 32]);

impl RowSum {
    /// Returns the sum over all rows.
    pub(super) fn of<'a>(rows: impl Iterator<Item = &'a IssueRow>) -> Self {
        let mut sum = Self::default();
        rows.for_each(|row| sum.turn(&digest(&row.text)));
        sum
    }

    /// Takes a row's digest in, or out where it was in.
    fn turn(&mut self, digest: &[u8; 32]) {
        for (byte, other) in self.0.iter_mut().zip(digest) {
            *byte ^= other;
        }
    }

    /// Puts a row in the place of the one that was there.
    pub(super) fn replace(&mut self, old: Option<&IssueRow>, new: &IssueRow) {
        if let Some(old) = old {
            self.turn(&digest(&old.text));
        }
        self.turn(&digest(&new.text));
    }

    fn text(self) -> String {
        canonical::hex(&self.0)
    }
}

pub(super) fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// What the file of the seal says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    /// The sum after the latest append.
    after: String,
    /// The sum before the latest append.
    before: String,
    /// What the file was then; absent while it is appended to.
    file: Option<FileState>,
    /// How many changes were found outside of a transaction.
    found: u64,
    /// The latest of these changes.
    latest: Vec<OutsideChange>,
    /// The length of the copy of the rows; absent while it has to be rewritten.
    #[serde(default)]
    base: Option<u64>,
    /// How many foreign rows are not accepted.
    #[serde(default)]
    foreign: usize,
    schema: u8,
}

/// The seal of one issue memory; used under its lock alone.
#[derive(Debug)]
pub(super) struct Seal {
    file: SealFile,
    base: BaseFile,
    foreign: ForeignList,
    /// Whether the file of the list is as the list.
    is_listed: bool,
    data: PathBuf,
    record: Record,
    /// The sum of the rows, once it was checked.
    sum: RowSum,
    /// The number of the last finding that this process reported.
    reported: Option<u64>,
}

impl Seal {
    /// Names the file beside issue memory.
    pub(super) fn beside(data: &Path) -> Self {
        Self {
            file: SealFile::beside(data),
            base: BaseFile::beside(data),
            foreign: ForeignList::beside(data),
            is_listed: true,
            data: data.to_path_buf(),
            record: Record::default(),
            sum: RowSum::default(),
            reported: None,
        }
    }

    /// Returns whether a transaction ever sealed.
    pub(super) fn is_there(&self) -> bool {
        self.file.path().exists() || self.base.length().is_some()
    }

    /// Compares what was just read, from a file that was in `state`, with what
    /// the last transaction left.
    pub(super) fn check<'a, I: Iterator<Item = &'a IssueRow>>(
        &mut self,
        state: Option<&FileState>,
        rows: impl Fn() -> I,
        now: jiff::Timestamp,
    ) {
        let found_at = Stamp::at(now).as_str().to_owned();
        let is_known = self.take_record(&found_at);
        let Some(is_known) = is_known else {
            // The first transaction that seals.
            self.record = Record {
                schema: 1,
                ..Record::default()
            };
            self.sum = RowSum::of(rows());
            self.reported.get_or_insert(0);
            return;
        };
        self.reported.get_or_insert(self.record.found);
        let is_same = state.is_some() && self.record.file.as_ref() == state;
        if is_same && is_known {
            return;
        }
        if is_same && let Some(sum) = sum_of(&self.record.after) {
            self.sum = sum;
            return;
        }
        self.sum = RowSum::of(rows());
        let was_cut = self.record.file.take().is_none();
        self.file.forget();
        let sum = self.sum.text();
        if sum == self.record.after || sum == self.record.before {
            if was_cut {
                // The copy may lack what was appended.
                self.record.base = None;
            }
            return;
        }
        self.found(rows(), found_at);
        self.record.before.clone_from(&sum);
        self.record.after = sum;
    }

    /// Reads the record, and the list of foreign rows where another process
    /// wrote the record. Returns whether it is what this process left; `None`
    /// where there is none, nor anything to make one from.
    fn take_record(&mut self, found_at: &str) -> Option<bool> {
        let (read, is_known) = match self.file.look() {
            Look::Same => (None, true),
            Look::Other(bytes) => {
                let read = serde_json::from_slice::<Record>(bytes).ok();
                let is_known = read.as_ref() == Some(&self.record);
                (read, is_known)
            }
            Look::Nothing => (None, false),
        };
        if read.is_none() && !is_known {
            self.file.forget();
        }
        if is_known {
            return Some(true);
        }
        // A seal that is gone is as this process left it, or as the copy of the
        // rows says.
        let own = (self.record.schema == 1).then(|| self.record.clone());
        self.record = read.or(own).or_else(|| self.record_of_base())?;
        self.foreign.read(self.record.foreign, found_at);
        self.record.foreign = self.foreign.len();
        Some(false)
    }

    fn record_of_base(&self) -> Option<Record> {
        let rows = self.base.read(None)?;
        let sum = RowSum::of(rows.values()).text();
        Some(Record {
            before: sum.clone(),
            after: sum,
            base: self.base.length(),
            // A list that is still there counts; `read` takes what it holds.
            foreign: usize::from(self.foreign.is_there()),
            schema: 1,
            ..Record::default()
        })
    }

    /// Puts the rows that differ on the list.
    fn found<'a>(&mut self, rows: impl Iterator<Item = &'a IssueRow>, found_at: String) {
        let mut change = OutsideChange {
            number: self.record.found.max(self.reported.unwrap_or_default()) + 1,
            found_at: found_at.clone(),
            ..OutsideChange::default()
        };
        match self
            .record
            .base
            .and_then(|length| self.base.read(Some(length)))
        {
            Some(base) => {
                let found = foreign::compare(&base, rows, &found_at);
                change.count(&found);
                self.foreign.merge(found);
            }
            None => self.foreign.merge_unknown(&found_at),
        }
        tracing::debug!(path = %self.data.display(), "{}", change.describe());
        self.is_listed = false;
        self.record.foreign = self.foreign.len();
        self.record.base = None;
        self.record.found = change.number;
        self.record.latest.push(change);
        let surplus = self.record.latest.len().saturating_sub(KEPT);
        self.record.latest.drain(..surplus);
    }

    /// Returns the foreign rows that are not accepted, by id.
    pub(super) fn foreign(&self) -> Vec<ForeignRow> {
        self.foreign.rows().cloned().collect()
    }

    /// Returns the foreign rows that an acceptance names, or the ids that have
    /// none.
    pub(super) fn named(&self, which: &ForeignSelection) -> Result<Vec<ForeignRow>, Vec<IssueId>> {
        self.foreign.named(which)
    }

    /// Takes accepted rows off the list.
    pub(super) fn accept(&mut self, rows: &[ForeignRow]) -> Result<(), StoreError> {
        self.foreign.remove(rows);
        self.foreign.write()?;
        self.record.foreign = self.foreign.len();
        Ok(())
    }

    /// Writes the list of foreign rows where it changed; before the seal that
    /// takes these rows for granted.
    fn list(&mut self) {
        if self.is_listed {
            return;
        }
        match self.foreign.write() {
            Ok(()) => self.is_listed = true,
            Err(error) => {
                tracing::error!(%error, "foreign rows of the issue store are not recorded")
            }
        }
    }

    /// Appends what was appended to issue memory to the copy of the rows.
    pub(super) fn append(&mut self, lines: &[u8]) {
        if let Some(length) = self.record.base {
            self.record.base = self.base.append(lines, length).ok();
        }
    }

    /// Has the copy of the rows rewritten.
    pub(super) fn renew(&mut self) {
        self.record.base = None;
    }

    /// Returns the sum of the rows as they were checked.
    pub(super) const fn sum(&self) -> RowSum {
        self.sum
    }

    /// Returns whether there is something that the file does not say yet.
    pub(super) fn is_open(&self) -> bool {
        self.record.file.is_none() || self.record.base.is_none()
    }

    /// Says what is about to be appended.
    pub(super) fn begin(&mut self, after: RowSum) {
        self.list();
        self.record.before = self.sum.text();
        self.record.after = after.text();
        self.record.file = None;
        let written = self.file.write_on(self.text());
        self.log_seal_failure(written);
    }

    /// Says that the rows of this sum are in the file, which is in `state`.
    pub(super) fn end<'a>(
        &mut self,
        sum: RowSum,
        state: Option<&FileState>,
        rows: impl Iterator<Item = &'a IssueRow>,
    ) {
        self.list();
        if self.record.base.is_none() {
            let written = self.base.rewrite(rows);
            self.record.base = written.as_ref().ok().copied();
            self.log_seal_failure(written.map(drop));
        }
        self.sum = sum;
        self.record.before = sum.text();
        self.record.after.clone_from(&self.record.before);
        self.record.file = state.cloned();
        let written = self.file.write(self.text());
        self.log_seal_failure(written);
    }

    /// Returns what was found since the last call, by this process or another;
    /// what was there before its first transaction is none of its business.
    pub(super) fn take_found(&mut self) -> Vec<OutsideChange> {
        let reported = self.reported.unwrap_or(self.record.found);
        if self.reported.is_some() {
            self.reported = Some(self.record.found.max(reported));
        }
        let latest = self.record.latest.iter();
        latest
            .filter(|change| change.number > reported)
            .cloned()
            .collect()
    }

    fn text(&self) -> String {
        serde_json::to_string(&self.record).unwrap_or_default()
    }

    fn log_seal_failure(&self, written: io::Result<()>) {
        if let Err(error) = written {
            // Without a seal the copy of the rows may be an old one.
            self.base.remove();
            tracing::debug!(path = %self.file.path().display(), %error, "the issue store is not sealed");
        }
    }
}

fn sum_of(text: &str) -> Option<RowSum> {
    let mut sum = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, at) in sum.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(RowSum(sum))
}
