//! Verifications that operators wrote into issues: who wrote one is what the
//! transaction knows, and goes to a file beside issue memory. A row does not
//! show it, for another transaction or an editor may have written the row since.

use super::IssueMemory;
use super::change::PendingChange;
use super::edit::IssueChange;
use super::fields::IssueEdit;
use super::state::MemoryView;
use crate::artifact;
use crate::error::StoreError;
use crate::row::IssueRow;
use premath_kernel::authority::OperatorOverride;
use premath_kernel::issue::own_check::{
    CheckEdit, CheckWriter, METADATA_FIELD, digest_of, own_check, writer,
};
use premath_kernel::json::id::IssueId;
use premath_kernel::json::{canonical, time};
use premath_kernel::record::own_checks::{OwnCheckRecord, OwnCheckRecords};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// What an operator's transaction makes of an issue's verification.
#[derive(Debug)]
pub(super) struct CheckNote {
    issue_id: IssueId,
    /// None where the operator left the issue without one.
    record: Option<OwnCheckRecord>,
}

/// The verifications of issues that are not over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnChecks {
    /// Those that an operator wrote, as the transaction recorded them.
    pub written: BTreeMap<IssueId, OwnCheckRecord>,
    /// Issues whose row has another one, or one that no operator wrote.
    pub unknown: Vec<IssueId>,
}

impl IssueRow {
    /// Returns the verification in the row, of whichever origin.
    pub fn own_check(&self) -> Option<String> {
        if !mentions_verification(&self.text) {
            return None;
        }
        let metadata = self.field("metadata").ok().flatten();
        own_check(&self.text_of("description"), metadata.as_ref())
    }
}

impl IssueRow {
    /// Returns whether the verification is in the metadata, whatever the
    /// description has.
    fn has_metadata_check(&self) -> bool {
        let metadata = self.field("metadata").ok().flatten();
        own_check("", metadata.as_ref()).is_some()
    }
}

/// Returns whether a row can have a verification: most have none, and need not be
/// taken apart.
fn mentions_verification(text: &str) -> bool {
    let word = METADATA_FIELD.as_bytes();
    let mut windows = text.as_bytes().windows(word.len());
    windows.any(|window| window.eq_ignore_ascii_case(word))
}

impl PendingChange {
    /// Returns what the change makes of the verification of its issue, where an
    /// operator writes the text that it is in.
    pub(super) fn check_note(&self, rows: &[IssueRow], now: jiff::Timestamp) -> Option<CheckNote> {
        let Self::Operate { authority, edit } = self else {
            return None;
        };
        // Beside a command in the metadata the description has no say: the
        // operator wrote none here.
        let sets_check = |edit: &IssueEdit| {
            let is_described = edit.description.is_some();
            edit.verification.is_some()
                || is_described && !rows.first().is_some_and(IssueRow::has_metadata_check)
        };
        let writes = match edit {
            IssueChange::Add(_) | IssueChange::Discover { .. } => true,
            IssueChange::Update { edit, .. } => sets_check(edit),
            IssueChange::Revise { edit, .. } => sets_check(edit),
            IssueChange::Retry { .. } | IssueChange::Dependency { .. } => false,
        };
        let row = rows.first().filter(|_| writes)?;
        let command = row.own_check();
        let by = |edit: &IssueEdit, was: Option<&IssueEdit>, command| {
            let edit = CheckEdit {
                verification: edit.verification.as_deref(),
                describes: edit.description.is_some(),
                earlier: was.and_then(|was| was.description.as_deref()),
            };
            writer(&edit, command)
        };
        let by = match edit {
            IssueChange::Update { edit, .. } => by(edit, None, command),
            IssueChange::Revise { edit, was, .. } => by(edit, Some(was), command),
            _ => CheckWriter::Now(command),
        };
        let CheckWriter::Now(command) = by else {
            return None;
        };
        let record = command.map(|command| recorded(command, authority, now));
        Some(CheckNote {
            issue_id: IssueId::from(&*row.issue.id),
            record,
        })
    }
}

fn recorded(command: String, authority: &OperatorOverride, now: jiff::Timestamp) -> OwnCheckRecord {
    OwnCheckRecord {
        digest: digest_of(&command),
        command,
        operator: authority.operator().to_owned(),
        at: time::micros(now),
    }
}

impl IssueMemory {
    /// Returns the verifications of issues that are not over.
    ///
    /// # Errors
    ///
    /// [`StoreError`] where issue memory or the record of the transactions cannot
    /// be read.
    pub fn own_checks(&self) -> Result<OwnChecks, StoreError> {
        let records = read(&self.path)?;
        self.view(|view| sorted(&view, records))
    }
}

fn sorted(view: &MemoryView<'_>, mut records: OwnCheckRecords) -> OwnChecks {
    let mut found = OwnChecks::default();
    for row in view.rows().filter(|row| !row.issue.status.is_terminal()) {
        let id = IssueId::from(&*row.issue.id);
        let record = records.checks.remove(&id);
        let in_row = row.own_check().map(|command| digest_of(&command));
        if in_row.as_ref() != record.as_ref().map(|record| &record.digest) {
            found.unknown.push(id.clone());
        }
        if let Some(record) = record {
            found.written.insert(id, record);
        }
    }
    found.unknown.sort();
    found
}

/// Names the file beside issue memory.
fn beside(data: &Path) -> PathBuf {
    let mut name = data.file_name().unwrap_or_default().to_os_string();
    name.push(".checks");
    data.with_file_name(name)
}

fn read(data: &Path) -> Result<OwnCheckRecords, StoreError> {
    let path = beside(data);
    let Some(bytes) = artifact::read(&path)? else {
        return Ok(OwnCheckRecords::default());
    };
    OwnCheckRecords::parse(&bytes).map_err(|error| {
        let cause = io::Error::new(io::ErrorKind::InvalidData, error);
        StoreError::io("read", &path)(cause)
    })
}

/// Records what operators wrote, under the lock and before the rows: a record
/// without its row runs nothing that the operator did not write.
pub(super) fn note(data: &Path, notes: Vec<CheckNote>) -> Result<(), StoreError> {
    if notes.is_empty() {
        return Ok(());
    }
    let before = read(data)?;
    let mut records = before.clone();
    for note in notes {
        match note.record {
            Some(record) => drop(records.checks.insert(note.issue_id, record)),
            None => drop(records.checks.remove(&note.issue_id)),
        }
    }
    if records == before {
        return Ok(());
    }
    let text = format!("{}\n", canonical::canonical(&records));
    artifact::write_durably(&beside(data), text.as_bytes())
}
