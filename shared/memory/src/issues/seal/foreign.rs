//! Rows that changed outside a transaction and that the operator has not
//! accepted: kept in a file beside issue memory until then. A later transaction
//! over such a row does not take it off the list.

use super::digest;
use crate::artifact;
use crate::error::StoreError;
use crate::row::IssueRow;
use premath_kernel::issue::Issue;
use premath_kernel::json::canonical;
use premath_kernel::json::id::IssueId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How many field names an entry keeps.
const FIELDS_MAX: usize = 32;
/// How many characters of a field's name are kept.
const FIELD_MAX: usize = 80;
/// How many issues a line names before it counts the rest.
const NAMED: usize = 8;

/// How a row differs from the last one that a transaction left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForeignKind {
    /// There was no row of that issue.
    Added,
    /// The row has other fields.
    Altered,
    /// The row is gone.
    Removed,
    /// Issue memory changed; which rows is unknown.
    Unknown,
}

impl ForeignKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Altered => "altered",
            Self::Removed => "removed",
            Self::Unknown => "unknown rows",
        }
    }
}

/// A row of issue memory that changed outside a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForeignRow {
    /// The issue; empty where it is unknown which rows changed.
    pub issue_id: IssueId,
    /// The kind of the difference.
    pub kind: ForeignKind,
    /// The fields that differ, sorted.
    pub fields: Vec<String>,
    /// Whether the change closed the issue.
    pub closes: bool,
    /// When a transaction first found it.
    pub first_seen: String,
    /// The digest of the foreign row; absent where the row is gone.
    pub digest: Option<String>,
    /// The digest of the last row that a transaction left; absent where there
    /// was none.
    pub accepted_digest: Option<String>,
}

impl ForeignRow {
    fn unknown(found_at: &str) -> Self {
        Self {
            issue_id: IssueId::default(),
            kind: ForeignKind::Unknown,
            fields: Vec::new(),
            closes: false,
            first_seen: found_at.to_owned(),
            digest: None,
            accepted_digest: None,
        }
    }

    /// Describes the change in a few words, without the issue's id.
    pub fn summary(&self) -> String {
        let mut text = self.kind.as_str().to_owned();
        if !self.fields.is_empty() {
            text = format!("{text}: {}", self.fields.join(", "));
        }
        if self.closes {
            text.push_str("; closed without evidence");
        }
        text
    }

    /// Describes several changes in one line; the first few are named.
    pub fn summary_of(rows: &[Self]) -> String {
        let mut text = format!(
            "{} issue(s) changed outside a transaction and are not accepted: ",
            rows.len()
        );
        let named: Vec<String> = rows
            .iter()
            .take(NAMED)
            .map(|row| match row.kind {
                ForeignKind::Unknown => "unknown rows".to_owned(),
                _ => format!("{} ({})", row.issue_id, row.summary()),
            })
            .collect();
        text.push_str(&named.join("; "));
        if rows.len() > NAMED {
            text.push_str(&format!("; and {} more", rows.len() - NAMED));
        }
        text
    }
}

/// Which foreign rows are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForeignSelection {
    /// Those of the named issues.
    Issues(BTreeSet<IssueId>),
    /// All rows.
    All,
}

/// The rows that are not accepted yet, by issue.
#[derive(Debug)]
pub(super) struct ForeignList {
    path: PathBuf,
    rows: BTreeMap<IssueId, ForeignRow>,
}

impl ForeignList {
    pub(super) fn beside(data: &Path) -> Self {
        let mut name = data.file_name().unwrap_or_default().to_os_string();
        name.push(".foreign");
        Self {
            path: data.with_file_name(name),
            rows: BTreeMap::new(),
        }
    }

    /// Reads the file, which should have `count` rows. One that cannot be read
    /// counts as one change of unknown rows.
    pub(super) fn read(&mut self, count: usize, found_at: &str) {
        self.rows.clear();
        if count == 0 {
            return;
        }
        let read = artifact::read(&self.path).ok().flatten();
        let read = read.and_then(|bytes| serde_json::from_slice::<Vec<ForeignRow>>(&bytes).ok());
        let rows = match read {
            Some(rows) if rows.len() >= count => rows,
            Some(mut rows) => {
                rows.push(ForeignRow::unknown(found_at));
                rows
            }
            None => vec![ForeignRow::unknown(found_at)],
        };
        self.rows = rows
            .into_iter()
            .map(|row| (row.issue_id.clone(), row))
            .collect();
    }

    pub(super) fn is_there(&self) -> bool {
        self.path.exists()
    }

    /// Writes the file; an empty list has none.
    pub(super) fn write(&self) -> Result<(), StoreError> {
        if self.rows.is_empty() {
            return artifact::remove(&self.path);
        }
        let rows: Vec<&ForeignRow> = self.rows.values().collect();
        let text = canonical::canonical(&rows);
        artifact::write(&self.path, format!("{text}\n").as_bytes())
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &ForeignRow> {
        self.rows.values()
    }

    /// Adds changes to the list. A row that is again what the last transaction
    /// left is taken off.
    pub(super) fn merge(&mut self, found: Vec<ForeignRow>) {
        for new in found {
            let Some(old) = self.rows.get_mut(&new.issue_id) else {
                self.rows.insert(new.issue_id.clone(), new);
                continue;
            };
            if old.kind != ForeignKind::Unknown && old.accepted_digest == new.digest {
                self.rows.remove(&new.issue_id);
                continue;
            }
            old.kind = match (&old.accepted_digest, &new.digest) {
                (None, Some(_)) => ForeignKind::Added,
                (_, None) => new.kind,
                (Some(_), Some(_)) => ForeignKind::Altered,
            };
            let fields: BTreeSet<String> = old.fields.drain(..).chain(new.fields).collect();
            old.fields = fields.into_iter().take(FIELDS_MAX).collect();
            old.closes |= new.closes;
            old.digest = new.digest;
        }
    }

    pub(super) fn merge_unknown(&mut self, found_at: &str) {
        self.merge(vec![ForeignRow::unknown(found_at)]);
    }

    /// Returns the rows that an acceptance names.
    ///
    /// # Errors
    ///
    /// The ids that are not on the list.
    pub(super) fn named(&self, which: &ForeignSelection) -> Result<Vec<ForeignRow>, Vec<IssueId>> {
        let ForeignSelection::Issues(ids) = which else {
            return Ok(self.rows.values().cloned().collect());
        };
        let missing: Vec<IssueId> = ids
            .iter()
            .filter(|id| id.is_empty() || !self.rows.contains_key(*id))
            .cloned()
            .collect();
        if !missing.is_empty() {
            return Err(missing);
        }
        Ok(ids
            .iter()
            .filter_map(|id| self.rows.get(id))
            .cloned()
            .collect())
    }

    pub(super) fn remove(&mut self, rows: &[ForeignRow]) {
        for row in rows {
            self.rows.remove(&row.issue_id);
        }
    }
}

/// Compares the rows that transactions left with those that are there now.
pub(super) fn compare<'a>(
    base: &BTreeMap<Box<str>, IssueRow>,
    rows: impl Iterator<Item = &'a IssueRow>,
    found_at: &str,
) -> Vec<ForeignRow> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for row in rows {
        let id = &*row.issue.id;
        let before = base.get(id);
        seen.insert(id);
        if before.is_none_or(|before| before.text != row.text) {
            found.push(difference(id, before, Some(row), found_at));
        }
    }
    let gone = base.iter().filter(|(id, _)| !seen.contains(&***id));
    found.extend(gone.map(|(id, before)| difference(id, Some(before), None, found_at)));
    found
}

fn difference(
    id: &str,
    before: Option<&IssueRow>,
    now: Option<&IssueRow>,
    found_at: &str,
) -> ForeignRow {
    let kind = match (before, now) {
        (None, _) => ForeignKind::Added,
        (Some(_), None) => ForeignKind::Removed,
        (Some(_), Some(_)) => ForeignKind::Altered,
    };
    let is_closed = |issue: &Issue| issue.status.is_terminal();
    let digest_of = |row: &IssueRow| canonical::hex(&digest(&row.text));
    ForeignRow {
        issue_id: id.into(),
        kind,
        fields: match (before, now) {
            (Some(before), Some(now)) => fields(before, now),
            _ => Vec::new(),
        },
        closes: now.is_some_and(|row| is_closed(&row.issue))
            && !before.is_some_and(|row| is_closed(&row.issue)),
        first_seen: found_at.to_owned(),
        digest: now.map(digest_of),
        accepted_digest: before.map(digest_of),
    }
}

/// Returns the names of the fields that differ; of none, the rows differ in
/// their spelling alone.
fn fields(before: &IssueRow, now: &IssueRow) -> Vec<String> {
    let (before, now) = (before.value(), now.value());
    let (Some(before), Some(now)) = (before.as_object(), now.as_object()) else {
        return Vec::new();
    };
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    names
        .into_iter()
        .filter(|name| before.get(*name) != now.get(*name))
        .take(FIELDS_MAX)
        .map(|name| name.chars().take(FIELD_MAX).collect())
        .collect()
}
