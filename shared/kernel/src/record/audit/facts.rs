//! What an audit looks at, as it was found.

use super::witness::StreamName;
use crate::json::id::{IssueId, StepId};
use crate::record::trajectory::{ChainReport, StepRow};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that is compared.
#[derive(Clone, Debug, Default)]
pub struct AuditFacts {
    /// The trajectory's file, for places.
    pub trajectory: String,
    /// Issue memory's file, for places.
    pub issues_path: String,
    /// The chain of the trajectory's lines.
    pub chain: ChainReport,
    /// Its rows, in the order of the file.
    pub rows: Vec<AuditRow>,
    /// The issues, by id.
    pub issues: BTreeMap<IssueId, IssueState>,
    /// The changes of issues made outside a transaction and that the operator
    /// has not accepted.
    pub outside: Vec<UnsealedChange>,
    /// The files of witnesses, by the reference that names them.
    pub witnesses: BTreeMap<String, WitnessFile>,
    /// What streams are now; those that are gone are absent.
    pub streams: BTreeMap<StreamName, StreamFile>,
    /// First-parent histories of landing targets, the newest commit first, and after them
    /// those of branches that were merged, as far as rows name commits of them; no list
    /// where the branch is not there.
    pub targets: BTreeMap<String, Option<Vec<CommitFacts>>>,
    /// Commits that rows name and no such history holds, as far as they are
    /// there.
    pub strays: BTreeMap<String, CommitFacts>,
    /// Commits of landings whose issue is yet to close, or was not closed by a harness
    /// that died.
    pub unclosed: BTreeSet<String>,
    /// The commit that the histories end before, where they were cut.
    pub since: Option<String>,
    /// What is asked of signatures.
    pub signatures: SignaturePolicy,
}

/// A row and its line.
#[derive(Clone, Debug)]
pub struct AuditRow {
    /// The line, from 1.
    pub line: u64,
    /// The row.
    pub row: StepRow,
}

/// An issue, as issue memory has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IssueState {
    /// Whether its status is `closed`.
    pub is_closed: bool,
    /// Whether it was deleted, which counts as closed.
    pub is_deleted: bool,
    /// The step that closed it.
    pub closed_by: Option<StepId>,
}

/// A change of an issue made outside a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsealedChange {
    /// The issue; empty where it is unknown which ones changed.
    pub issue: IssueId,
    /// Whether it closed the issue.
    pub closes: bool,
    /// What changed, in a few words.
    pub summary: String,
}

/// A witness's file.
#[derive(Clone, Debug, PartialEq)]
pub enum WitnessFile {
    /// The file has this document.
    Found {
        /// The file.
        path: String,
        /// The content of the witness.
        document: Value,
    },
    /// The file does not exist.
    Missing {
        /// The path where the file is expected.
        path: String,
    },
    /// It is not a JSON document.
    Unreadable {
        /// The file.
        path: String,
        /// The reason why it cannot be read.
        detail: String,
    },
}

/// A stream's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamFile {
    /// The file.
    pub path: String,
    /// How many bytes it holds, before compression.
    pub bytes: u64,
    /// The SHA-256 of the bytes, in hexadecimal.
    pub sha256: String,
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitFacts {
    /// The commit id, in hexadecimal.
    pub id: String,
    /// The id of the commit's tree.
    pub tree: String,
    /// The ids of the commit's parents.
    pub parents: Vec<String>,
    /// The commit message.
    pub message: String,
    /// The state of the commit's signature.
    pub signature: SignatureState,
}

/// What a commit's signature is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureState {
    /// The commit has no signature.
    None,
    /// It has one of another kind than SSH.
    Foreign,
    /// It is not a signature of this commit.
    Bad(String),
    /// A key made it that may sign.
    Good,
    /// A key made it, and it is not known which keys may.
    Unjudged(String),
    /// A key made it that may not sign.
    Refused {
        /// The key's fingerprint.
        key: String,
        /// The reason of the refusal.
        why: String,
    },
}

/// What is asked of the signatures of landing commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignaturePolicy {
    /// A signature that is there must be good.
    #[default]
    WhereSigned,
    /// Every landing commit must have one.
    Required,
}
