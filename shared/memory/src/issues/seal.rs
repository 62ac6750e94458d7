//! The seal: what issue memory was when the last transaction ended, in a file
//! beside it. A transaction that finds other rows than the seal says was
//! preceded by a change that was none: an editor's, git's, or that of a command
//! that went past the harness. It is told and not refused, for a person may.
//!
//! The seal holds a sum over the rows and the file's state. Where the state is
//! the same, nothing is read; where it is another, the sum decides, so that a
//! compaction, a copy or a touch is no change. Both the rows before and those
//! after are written before they are appended: a process that is killed in
//! between leaves one or the other.
//!
//! It finds what happened by mistake or without knowing of it. Who can write
//! issue memory can write the seal as well.

mod file;

use crate::journal::FileState;
use crate::row::IssueRow;
use file::{Look, SealFile};
use premath_kernel::canonical;
use premath_kernel::stamp::Stamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many findings the seal keeps for other processes to tell of.
const KEPT: usize = 8;
/// How many issues a finding names.
const NAMED: usize = 8;
/// A longer name is cut: a row's id is whatever somebody wrote.
const NAME_MAX: usize = 80;

/// What issue memory was changed by without a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutsideChange {
    /// Which finding of this memory it is, from 1.
    pub number: u64,
    /// When the transaction found it.
    pub found_at: String,
    /// How many issues are there that were not, as far as it could be told.
    pub added: usize,
    /// How many have another row.
    pub altered: usize,
    /// How many are gone.
    pub removed: usize,
    /// Their ids, the first few.
    pub issues: Vec<String>,
}

impl OutsideChange {
    /// Says in a line what was found.
    pub fn told(&self) -> String {
        if self.issues.is_empty() {
            return "issue memory was changed outside of a transaction; which rows cannot be told"
                .to_owned();
        }
        let named = self.added + self.altered + self.removed;
        let more = named.saturating_sub(self.issues.len());
        let more = match more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(
            "issue memory was changed outside of a transaction: {} added, {} altered, {} removed ({}{more})",
            self.added,
            self.altered,
            self.removed,
            self.issues.join(", ")
        )
    }
}

/// A sum over rows, the same in any order: each row's digest, added bit by bit
/// without carry. An id stands once in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum([u8; 32]);

impl Sum {
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

/// The rows that this process saw change since its last transaction, each with
/// the digest that it had before; `None` where it was not there.
#[derive(Debug, Default)]
pub(super) struct News(BTreeMap<Arc<str>, Option<[u8; 32]>>);

impl News {
    /// Takes note of an issue whose row was read anew.
    pub(super) fn note(&mut self, id: &Arc<str>, before: Option<&IssueRow>) {
        if !self.0.contains_key(id) {
            let before = before.map(|row| digest(&row.text));
            self.0.insert(id.clone(), before);
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Says what became of them.
    fn change<'a>(&self, now: impl Fn(&str) -> Option<&'a IssueRow>) -> OutsideChange {
        let mut change = OutsideChange::default();
        for (id, before) in &self.0 {
            let count = match (before, now(id)) {
                (None, Some(_)) => &mut change.added,
                (Some(_), None) => &mut change.removed,
                (Some(before), Some(row)) if digest(&row.text) != *before => &mut change.altered,
                _ => continue,
            };
            *count += 1;
            if change.issues.len() < NAMED {
                change.issues.push(id.chars().take(NAME_MAX).collect());
            }
        }
        change
    }
}

/// What the file of the seal says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    /// The sum after the latest append.
    after: String,
    /// The sum before it.
    before: String,
    /// What the file was then; absent while it is appended to.
    file: Option<FileState>,
    /// How many changes were found outside of a transaction.
    found: u64,
    /// The latest of them.
    latest: Vec<OutsideChange>,
    schema: u8,
}

/// The seal of one issue memory; used under its lock alone.
#[derive(Debug)]
pub(super) struct Seal {
    file: SealFile,
    data: PathBuf,
    record: Record,
    /// The sum of the rows, once it was checked.
    sum: Sum,
    /// The number of the last finding that this process told of.
    told: Option<u64>,
}

impl Seal {
    /// Names the file beside issue memory.
    pub(super) fn beside(data: &Path) -> Self {
        Self {
            file: SealFile::beside(data),
            data: data.to_path_buf(),
            record: Record::default(),
            sum: Sum::default(),
            told: None,
        }
    }

    /// Compares what was just read, from a file that was in `state`, with what
    /// the last transaction left.
    pub(super) fn check<'a, I: Iterator<Item = &'a IssueRow>>(
        &mut self,
        state: Option<&FileState>,
        rows: impl Fn() -> I,
        get: impl Fn(&str) -> Option<&'a IssueRow>,
        news: &News,
        now: jiff::Timestamp,
    ) {
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
        // One that somebody took away is as this process left it.
        let own = (self.record.schema == 1).then(|| self.record.clone());
        let Some(record) = read.or(own) else {
            // The first transaction that seals, or a seal that nobody can read.
            self.record = Record {
                schema: 1,
                ..Record::default()
            };
            self.sum = Sum::of(rows());
            self.told.get_or_insert(0);
            return;
        };
        self.record = record;
        let told = *self.told.get_or_insert(self.record.found);
        let is_same = state.is_some() && self.record.file.as_ref() == state;
        if is_same && is_known {
            return;
        }
        if is_same && let Some(sum) = sum_of(&self.record.after) {
            self.sum = sum;
            return;
        }
        self.sum = Sum::of(rows());
        self.record.file = None;
        self.file.forget();
        let sum = self.sum.text();
        if sum == self.record.after || sum == self.record.before {
            return;
        }
        let change = OutsideChange {
            number: self.record.found.max(told) + 1,
            found_at: Stamp::at(now).as_str().to_owned(),
            ..news.change(get)
        };
        tracing::debug!(path = %self.data.display(), "{}", change.told());
        self.record.found = change.number;
        self.record.latest.push(change);
        let surplus = self.record.latest.len().saturating_sub(KEPT);
        self.record.latest.drain(..surplus);
        self.record.before = sum.clone();
        self.record.after = sum;
    }

    /// Returns the sum of the rows as they were checked.
    pub(super) const fn sum(&self) -> Sum {
        self.sum
    }

    /// Tells whether there is something that the file does not say yet.
    pub(super) fn is_open(&self) -> bool {
        self.record.file.is_none()
    }

    /// Says what is about to be appended.
    pub(super) fn begin(&mut self, after: Sum) {
        self.record.before = self.sum.text();
        self.record.after = after.text();
        self.record.file = None;
        let written = self.file.write_on(self.text());
        self.told_of(written);
    }

    /// Says that the rows of this sum stand in the file, which is in `state`.
    pub(super) fn end(&mut self, sum: Sum, state: Option<&FileState>) {
        self.sum = sum;
        self.record.before = sum.text();
        self.record.after.clone_from(&self.record.before);
        self.record.file = state.cloned();
        let written = self.file.write(self.text());
        self.told_of(written);
    }

    /// Returns what was found since the last call, by this process or another;
    /// what was there before its first transaction is none of its business.
    pub(super) fn take_found(&mut self) -> Vec<OutsideChange> {
        let told = self.told.unwrap_or(self.record.found);
        if self.told.is_some() {
            self.told = Some(self.record.found.max(told));
        }
        let latest = self.record.latest.iter();
        latest
            .filter(|change| change.number > told)
            .cloned()
            .collect()
    }

    fn text(&self) -> String {
        serde_json::to_string(&self.record).unwrap_or_default()
    }

    fn told_of(&self, written: io::Result<()>) {
        if let Err(error) = written {
            tracing::debug!(path = %self.file.path().display(), %error, "issue memory is not sealed");
        }
    }
}

fn sum_of(text: &str) -> Option<Sum> {
    let mut sum = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, at) in sum.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(Sum(sum))
}
