//! Whether rows, issues, witnesses and commits say the same, judged from what
//! the files hold alone (`isolation.md` 6, 14).
//!
//! Pure: the caller collects the [`AuditFacts`], this module compares them. What
//! contradicts something else is a [`Contradiction`]; what cannot be checked is a note.

mod closed;
mod commit;
mod contradiction;
mod facts;
mod history;
mod shared;
mod witness;

pub use contradiction::{Contradiction, ContradictionCode};
pub use facts::{
    AuditFacts, AuditRow, CommitFacts, IssueState, SignaturePolicy, SignatureState, StreamFile,
    UnsealedChange, WitnessFile,
};
pub use witness::{StreamName, WitnessRef, digest_of, streams_of};

use crate::record::trajectory::{BreakKind, action};
use std::collections::BTreeSet;

/// The findings of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditReport {
    /// What contradicts something else, in the order of the checks.
    pub contradictions: Vec<Contradiction>,
    /// What is true and cannot be proven, or was not checked.
    pub notes: Vec<String>,
    /// How many issues were closed by steps.
    pub closed: usize,
    /// How many landing commits there are.
    pub landings: usize,
    /// How many of the closed ones were verified only with later work.
    pub shared: usize,
    /// How many rows a later row or a landing covers.
    pub anchored_rows: usize,
}

/// Compares everything with everything.
pub fn audit(facts: &AuditFacts) -> AuditReport {
    let mut audit = Audit {
        facts,
        report: AuditReport::default(),
        uncompared: 0,
    };
    audit.chain();
    audit.rows();
    audit.outside();
    audit.closed();
    audit.history();
    audit.report
}

struct Audit<'a> {
    facts: &'a AuditFacts,
    report: AuditReport,
    /// How many streams of closed issues' steps could not be compared.
    uncompared: usize,
}

impl Audit<'_> {
    fn contradiction(
        &mut self,
        code: ContradictionCode,
        place: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        self.report.contradictions.push(Contradiction {
            code,
            place: place.into(),
            expected: expected.into(),
            found: found.into(),
        });
    }

    fn note(&mut self, note: impl Into<String>) {
        self.report.notes.push(note.into());
    }

    fn row_place(&self, line: u64) -> String {
        format!("{}:{line}", self.facts.trajectory)
    }

    fn chain(&mut self) {
        let facts = self.facts;
        for found in &facts.chain.breaks {
            let code = match found.kind {
                BreakKind::Altered => ContradictionCode::RowAltered,
                BreakKind::Inserted { .. } => ContradictionCode::RowInserted,
                BreakKind::Moved { .. } => ContradictionCode::RowMoved,
                BreakKind::BeginsAgain => ContradictionCode::ChainBeginsAgain,
                BreakKind::Repeated { .. } => ContradictionCode::RowRepeated,
                BreakKind::Rewritten => ContradictionCode::RowRewritten,
            };
            let place = self.row_place(found.line);
            let expected = found.expected.to_string();
            self.contradiction(
                code,
                place,
                expected,
                format!("{} ({})", found.found, found.kind),
            );
        }
        let chain = &facts.chain;
        self.report.anchored_rows = chain.values.len() + chain.covered.len();
        if !chain.uncovered.is_empty() {
            self.note(format!(
                "not anchored: {} line(s) of {} have no chain value, and no row after them has one",
                chain.uncovered.len(),
                facts.trajectory
            ));
        }
    }

    /// Each step has at most one row that completes it, and the issue that
    /// such a row closes is there.
    fn rows(&mut self) {
        let facts = self.facts;
        let mut completed = BTreeSet::new();
        for found in facts.steps().filter(|found| found.row.succeeded()) {
            let row = &found.row;
            let place = self.row_place(found.line);
            if !completed.insert(row.step_id.as_str()) {
                self.contradiction(
                    ContradictionCode::RowDuplicate,
                    place,
                    format!("one row that completes {}", row.step_id),
                    "another one",
                );
                continue;
            }
            let Some(issue) = &row.issue_id else {
                continue;
            };
            let Some(state) = facts.issues.get(issue) else {
                self.contradiction(
                    ContradictionCode::IssueMissing,
                    place,
                    format!("the issue {issue}, which the step {} closed", row.step_id),
                    "no such issue",
                );
                continue;
            };
            if state.closed_by.as_deref() != Some(row.step_id.as_str()) && state.is_closed {
                let by = state.closed_by.as_deref().unwrap_or("no step");
                self.note(format!(
                    "{issue}: closed by {by} now; {} closed it before",
                    row.step_id
                ));
            } else if !state.is_closed {
                self.note(format!("{issue}: reopened after {} closed it", row.step_id));
            }
        }
    }
}

impl Audit<'_> {
    /// No change made outside a transaction closes an issue, or alters one that
    /// a step closed.
    fn outside(&mut self) {
        let facts = self.facts;
        for change in &facts.outside {
            let of_step = |found: &&AuditRow| {
                found.row.succeeded() && found.row.issue_id.as_deref() == Some(&change.issue)
            };
            let was_closed = facts.steps().any(|found| of_step(&found));
            if change.closes || was_closed {
                self.contradiction(
                    ContradictionCode::IssueChangedOutside,
                    format!("{}: {}", facts.issues_path, change.issue),
                    "a change by a transaction, or one that is accepted",
                    &change.summary,
                );
            } else {
                self.note(format!(
                    "{}: {} changed outside a transaction and is not accepted: {}",
                    facts.issues_path, change.issue, change.summary
                ));
            }
        }
    }
}

impl AuditFacts {
    /// Returns the commit that a step's row or its witness of the close names.
    fn commit_of<'a>(&'a self, found: &'a AuditRow) -> Option<&'a str> {
        if let Some(record) = &found.row.landing {
            return Some(&record.commit);
        }
        found.row.witness_refs.iter().find_map(|text| {
            let reference = WitnessRef::parse(text)?;
            match self.witnesses.get(text) {
                Some(WitnessFile::Found { document, .. }) if reference.is_close() => {
                    document["commit"].as_str()
                }
                _ => None,
            }
        })
    }

    /// Returns a commit that was found.
    fn commit(&self, id: &str) -> Option<&CommitFacts> {
        let mut held = self.targets.values().flatten().flatten();
        self.strays
            .get(id)
            .or_else(|| held.find(|commit| commit.id == id))
    }

    /// The rows of steps, in the order of the file.
    fn steps(&self) -> impl Iterator<Item = &AuditRow> {
        let rows = self.rows.iter();
        rows.filter(|found| found.row.action == action::WORKER_LOOP)
    }
}
