//! What a process knows about issue memory: every issue's last row, the graph
//! over them, and how much of the file is superseded.

use super::CompactionRule;
use super::leases::Leases;
use super::seal::{RowSum, Seal};
use crate::error::StoreError;
use crate::journal::{FileState, Journal, JournalLine, Refreshed, Tail};
use crate::row::IssueRow;
use crate::snapshot;
use premath_kernel::issue::graph::{Diagnosis, IssueGraph, Scope};
use premath_kernel::issue::lease::Observation;
use premath_kernel::issue::{Issue, Status};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Superseded bytes below this are not worth a compaction of their own.
const COMPACTION_MIN: u64 = 1 << 20;

/// Boxed: the map moves its values about, and takes room for twice as many.
type Rows = BTreeMap<Arc<str>, Box<IssueRow>>;

/// More changed issues than this are not entered into the graph one by one: a
/// change of the tree visits every issue.
const REBUILD_ABOVE: usize = 64;

#[derive(Debug)]
pub(super) struct State {
    pub(super) journal: Journal,
    id_prefix: String,
    rows: Rows,
    graph: IssueGraph,
    leases: Leases,
    /// By line, so that one that is read twice appears once.
    comments: BTreeMap<u64, Box<[u8]>>,
    /// Bytes of the rows that count, newlines included.
    live: u64,
    diagnosis: Option<(u64, Scope, Diagnosis)>,
    pub(super) seal: Seal,
}

impl State {
    pub(super) fn new(journal: Journal, id_prefix: &str) -> Self {
        Self {
            id_prefix: id_prefix.to_owned(),
            seal: Seal::beside(journal.path()),
            journal,
            rows: Rows::new(),
            graph: IssueGraph::default(),
            leases: Leases::default(),
            comments: BTreeMap::new(),
            live: 0,
            diagnosis: None,
        }
    }

    /// Returns the prefix of new ids where no row has one.
    pub(super) fn id_prefix(&self) -> &str {
        &self.id_prefix
    }

    /// Reads what is new in the file.
    pub(super) fn refresh(&mut self, tail: Tail) -> Result<(), StoreError> {
        let Self {
            journal,
            rows,
            graph,
            leases,
            comments,
            live,
            diagnosis,
            seal: _,
            id_prefix: _,
        } = self;
        let path = journal.path().to_path_buf();
        let mut anew = false;
        // The graph of a whole file is built once, not row by row.
        let mut changed: BTreeSet<Arc<str>> = BTreeSet::new();
        let fresh = std::cell::Cell::new(false);
        let result = journal.refresh(
            tail,
            |refreshed| fresh.set(refreshed == Refreshed::Anew),
            |line| {
                if fresh.replace(false) {
                    anew = true;
                    rows.clear();
                    leases.clear();
                    comments.clear();
                    *live = 0;
                }
                let Some(row) = read_line(&path, &line, comments)? else {
                    return Ok(());
                };
                if !anew {
                    changed.insert(row.issue.id.clone());
                }
                insert(rows, leases, live, row);
                Ok(())
            },
        );
        if fresh.get() {
            // A file without lines.
            anew = true;
            rows.clear();
            leases.clear();
            comments.clear();
            *live = 0;
        }
        if anew {
            *graph = IssueGraph::build(rows.values().map(|row| &row.issue));
            *diagnosis = None;
        } else {
            if changed.len() > REBUILD_ABOVE {
                *graph = IssueGraph::build(rows.values().map(|row| &row.issue));
                *diagnosis = None;
            } else {
                for id in changed {
                    if let Some(row) = rows.get(&id) {
                        graph.upsert(&row.issue);
                    }
                }
            }
        }
        result
    }

    /// Compares what was just read under the lock with what the last
    /// transaction left, and records changes made outside a transaction.
    pub(super) fn check_seal(&mut self, now: jiff::Timestamp) {
        let rows = &self.rows;
        let all = || rows.values().map(|row| &**row);
        self.seal.check(self.journal.state(), all, now);
    }

    /// Seals the file in the state that the lock's holder left.
    pub(super) fn end_seal(&mut self, sum: RowSum) {
        let rows = self.rows.values().map(|row| &**row);
        self.seal.end(sum, self.journal.state(), rows);
    }

    /// Seals a file that was just rewritten.
    pub(super) fn end_seal_of(&mut self, sum: RowSum, state: Option<&FileState>) {
        let rows = self.rows.values().map(|row| &**row);
        self.seal.renew();
        self.seal.end(sum, state, rows);
    }

    /// Takes a row over that is about to be written.
    pub(super) fn put(&mut self, row: IssueRow) {
        self.graph.upsert(&row.issue);
        insert(&mut self.rows, &mut self.leases, &mut self.live, row);
    }

    pub(super) fn get(&self, id: &str) -> Option<&IssueRow> {
        self.rows.get(id).map(|row| &**row)
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &IssueRow> {
        self.rows.values().map(|row| &**row)
    }

    pub(super) fn graph(&self) -> &IssueGraph {
        &self.graph
    }

    pub(super) fn graph_mut(&mut self) -> &mut IssueGraph {
        &mut self.graph
    }

    pub(super) fn leased(&self) -> impl Iterator<Item = &IssueRow> {
        self.leases.ids().filter_map(|id| self.get(id))
    }

    /// Returns the issues whose lease may be over; every stale one is among them.
    pub(super) fn maybe_stale(&self, seen: &Observation<'_>) -> impl Iterator<Item = &IssueRow> {
        let over = self.leases.maybe_over(seen);
        over.into_iter().filter_map(|id| self.get(id))
    }

    pub(super) fn diagnose(&mut self, scope: Scope) -> Diagnosis {
        let revision = self.graph.revision();
        match &self.diagnosis {
            Some((at, of, diagnosis)) if *at == revision && *of == scope => diagnosis.clone(),
            _ => {
                let diagnosis = self.graph.diagnose(scope);
                self.diagnosis = Some((revision, scope, diagnosis.clone()));
                diagnosis
            }
        }
    }

    pub(super) fn compact(&mut self, when: CompactionRule) -> Result<bool, StoreError> {
        let superseded = self.journal.length().saturating_sub(self.live);
        if when == CompactionRule::WhereItPays
            && (superseded <= self.live || superseded <= COMPACTION_MIN)
        {
            return Ok(false);
        }
        let mut content = Vec::with_capacity(usize::try_from(self.live).unwrap_or(0));
        for comment in self.comments.values() {
            content.extend_from_slice(comment);
            content.push(b'\n');
        }
        for row in self.rows.values() {
            content.extend_from_slice(row.text.as_bytes());
            content.push(b'\n');
        }
        if content.len() as u64 == self.journal.length()
            && std::fs::read(self.journal.path()).is_ok_and(|now| now == content)
        {
            return Ok(false);
        }
        self.journal.replace(&content)?;
        Ok(true)
    }
}

fn insert(rows: &mut Rows, leases: &mut Leases, live: &mut u64, row: IssueRow) {
    let id = row.issue.id.clone();
    leases.enter(&row);
    *live += row.text.len() as u64 + 1;
    if let Some(old) = rows.insert(id, Box::new(row)) {
        *live -= old.text.len() as u64 + 1;
    }
}

/// Reads one line: a row, or nothing for a blank one and a comment.
fn read_line(
    path: &Path,
    line: &JournalLine<'_>,
    comments: &mut BTreeMap<u64, Box<[u8]>>,
) -> Result<Option<IssueRow>, StoreError> {
    let bytes = line.bytes.trim_ascii();
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.starts_with(b"#") {
        comments.insert(line.number, line.bytes.into());
        return Ok(None);
    }
    read_row(path, line).map(Some)
}

/// Reads a line that is neither blank nor a comment.
pub(crate) fn read_row(path: &Path, line: &JournalLine<'_>) -> Result<IssueRow, StoreError> {
    let corrupt = |column: usize, detail: String| StoreError::Corrupt {
        path: path.to_path_buf(),
        line: line.number,
        column: column.max(1) as u64,
        detail,
    };
    // Fields that no rule looks at are skipped by the parser: check them here.
    let text = std::str::from_utf8(line.bytes).map_err(|error| {
        corrupt(
            error.valid_up_to() + 1,
            "not an issue row: not UTF-8".to_owned(),
        )
    })?;
    let indent = text.len() - text.trim_start().len();
    IssueRow::parse(text).map_err(|error| {
        let detail = error.to_string();
        // serde_json counts lines of its own input, which is one line.
        let detail = detail
            .rsplit_once(" at line ")
            .map_or(detail.as_str(), |(text, _)| text);
        corrupt(
            error.column() + indent,
            format!("not an issue row: {detail}"),
        )
    })
}

/// A look at issue memory as it is now.
#[derive(Debug)]
pub struct MemoryView<'a> {
    state: &'a State,
}

impl<'a> MemoryView<'a> {
    pub(super) fn of(state: &'a State) -> Self {
        Self { state }
    }

    /// Returns an issue with its row.
    pub fn row(&self, id: &str) -> Option<&'a IssueRow> {
        self.state.get(id)
    }

    /// Returns an issue.
    pub fn issue(&self, id: &str) -> Option<&'a Issue> {
        self.state.get(id).map(|row| &row.issue)
    }

    /// Returns all issues by id.
    pub fn rows(&self) -> impl Iterator<Item = &'a IssueRow> {
        self.state.rows()
    }

    /// Returns the issues in progress under a lease, by id.
    pub fn leased(&self) -> impl Iterator<Item = &'a IssueRow> {
        self.state.leased()
    }

    /// Returns the graph.
    pub fn graph(&self) -> &'a IssueGraph {
        self.state.graph()
    }

    /// Returns the ready issues by priority, then id.
    pub fn ready(&self) -> impl Iterator<Item = &'a IssueRow> {
        let state = self.state;
        state.graph().frontier().filter_map(|id| state.get(id))
    }

    /// Counts the issues by state, for reports.
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for row in self.rows() {
            let name = match &row.issue.status {
                Status::Open if self.graph().is_ready(&row.issue.id) => "ready",
                Status::Open => "waiting",
                Status::InProgress => "in progress",
                Status::Blocked => "blocked",
                Status::Closed | Status::Tombstone => "closed",
                Status::Other(_) => "set aside",
            };
            *counts.entry(name).or_insert(0) += 1;
        }
        counts
    }

    /// Computes the issues snapshot ref (`contracts.md` 1); it visits every
    /// issue.
    pub fn snapshot_ref(&self) -> String {
        snapshot::snapshot_ref(self.state.rows())
    }
}
