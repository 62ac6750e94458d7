//! Issues of other trackers, filed in one transaction: all of a file, or none.
//!
//! An issue that is there already stays as it is, so that the same file can be
//! imported again.

use super::IssueMemory;
use super::change::{ChangeOutcome, Decided, PendingChange, edited};
use super::dependency::{new_edge, refuse_cycle_of_new};
use super::edit::ChangeSigner;
use super::new_issue::FreeIds;
use super::state::State;
use crate::clock;
use crate::error::ChangeError;
use crate::journal::Tail;
use crate::row::IssueRow;
use premath_kernel::authority::OperatorOverride;
use premath_kernel::issue::import::{
    ImportBody, ImportFault, ImportKey, ImportRecord, ImportTarget,
};
use premath_kernel::issue::lease::Observation;
use premath_kernel::issue::{DEFAULT_PRIORITY, DEFAULT_TYPE, RowChange, Status};
use premath_kernel::json::time;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The field that names where an issue came from, as in beads.
const REFERENCE: &str = "external_ref";
/// The field that keeps what an imported row has about another issue memory's
/// leases and turns: here it would claim what never happened.
const KEPT: &str = "imported_fields";
/// Those fields.
const OWNED: [&str; 11] = [
    "lease",
    "lease_generation",
    "retry_at",
    "closed_by_step",
    "reopened_from",
    "closed_under",
    "blocked_by",
    "mutation_refs",
    "discovered_by",
    "instructed_change",
    "operator_override",
];

/// What an import makes of a record.
#[derive(Clone, Debug)]
pub struct ImportedIssue {
    /// The line of the record.
    pub line: usize,
    /// The issue's row.
    pub row: IssueRow,
    /// Whether it was filed; it is there otherwise, and stays as it is.
    pub filed: bool,
}

/// What an import makes of a file.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// The issues, in the order of the file; none where there are faults.
    pub issues: Vec<ImportedIssue>,
    /// The records that do not fit; where there is one, nothing is filed.
    pub faults: Vec<ImportFault>,
}

impl IssueMemory {
    /// Files the records of a file that are not there.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Refused`] where their edges close a cycle, or
    /// [`ChangeError::Store`].
    pub fn import(
        &self,
        authority: OperatorOverride,
        records: Vec<ImportRecord>,
    ) -> Result<Imported, ChangeError> {
        let change = PendingChange::Import { authority, records };
        match self.commit_one(change)? {
            ChangeOutcome::Imported(imported) => Ok(imported),
            _ => Err(ChangeError::Invalid("the import had no outcome".to_owned())),
        }
    }

    /// Returns what [`IssueMemory::import`] would do now, and changes nothing.
    ///
    /// # Errors
    ///
    /// As [`IssueMemory::import`].
    pub fn plan_import(
        &self,
        authority: &OperatorOverride,
        records: &[ImportRecord],
    ) -> Result<Imported, ChangeError> {
        let mut state = self.state();
        state.refresh(Tail::Peek)?;
        match import(&state, authority, records, &clock::observe())? {
            (_, ChangeOutcome::Imported(imported)) => Ok(imported),
            _ => Err(ChangeError::Invalid("the import had no outcome".to_owned())),
        }
    }
}

pub(super) fn import(
    state: &State,
    authority: &OperatorOverride,
    records: &[ImportRecord],
    seen: &Observation<'_>,
) -> Decided {
    let signer = ChangeSigner::Operator(authority);
    let (places, mut faults) = places(state, records);
    let in_file: BTreeSet<&str> = places.iter().map(|place| place.id.as_str()).collect();
    let mut issues = Vec::new();
    for (record, place) in records.iter().zip(&places) {
        let fault = |detail: String| ImportFault {
            line: record.line,
            detail,
        };
        if let Some(row) = place.there {
            issues.push(ImportedIssue {
                line: record.line,
                row: row.clone(),
                filed: false,
            });
            continue;
        }
        let edges = edges_of(record, place, (&places, state, &in_file));
        let row = edges.and_then(|edges| filed(record, &place.id, edges, (signer, seen)));
        match row {
            Err(detail) => faults.push(fault(detail)),
            Ok(row) => issues.push(ImportedIssue {
                line: record.line,
                row,
                filed: true,
            }),
        }
    }
    if !faults.is_empty() {
        faults.sort_by_key(|fault| fault.line);
        let issues = Vec::new();
        return Ok((
            Vec::new(),
            ChangeOutcome::Imported(Imported { issues, faults }),
        ));
    }
    let new = issues.iter().filter(|issue| issue.filed);
    let rows: Vec<IssueRow> = new.map(|issue| issue.row.clone()).collect();
    if !rows.is_empty() {
        refuse_cycle_of_new(state, &rows)?;
    }
    Ok((rows, ChangeOutcome::Imported(Imported { issues, faults })))
}

/// Where a record goes.
struct Place<'a> {
    id: String,
    /// The row of the issue, where it is there.
    there: Option<&'a IssueRow>,
}

/// Finds the issues of the records, and ids for those that are new.
fn places<'a>(state: &'a State, records: &[ImportRecord]) -> (Vec<Place<'a>>, Vec<ImportFault>) {
    let mut by_reference: BTreeMap<String, &IssueRow> = BTreeMap::new();
    for row in state.rows().filter(|row| row.text.contains(REFERENCE)) {
        by_reference.entry(row.text_of(REFERENCE)).or_insert(row);
    }
    let named: BTreeSet<&str> = records
        .iter()
        .filter_map(|record| match &record.key {
            ImportKey::Id(id) => Some(id.as_str()),
            ImportKey::Reference(_) => None,
        })
        .collect();
    let mut free = FreeIds::of(state);
    let mut faults = Vec::new();
    let places = records
        .iter()
        .map(|record| match &record.key {
            ImportKey::Id(id) => {
                let there = state.get(id);
                if let Some(row) = there.filter(|row| is_another(row, record)) {
                    faults.push(ImportFault {
                        line: record.line,
                        detail: format!(
                            "issue {id} is here already and is another one: {}",
                            row.text_of("title")
                        ),
                    });
                }
                let id = id.clone();
                Place { id, there }
            }
            ImportKey::Reference(reference) => match by_reference.get(reference) {
                Some(row) => Place {
                    id: row.issue.id.to_string(),
                    there: Some(row),
                },
                None => Place {
                    id: free.next(|id| state.get(id).is_some() || named.contains(id)),
                    there: None,
                },
            },
        })
        .collect();
    (places, faults)
}

/// Returns whether an issue is not the one of a record with its id: neither the
/// title nor the time of its creation is the same.
fn is_another(row: &IssueRow, record: &ImportRecord) -> bool {
    let fields = match &record.body {
        ImportBody::Fields(fields) => fields.clone(),
        ImportBody::Row(text) => serde_json::from_str(text).unwrap_or_default(),
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let created = text("created_at");
    text("title").trim() != row.text_of("title").trim()
        && (created.is_empty() || created != row.text_of("created_at"))
}

/// Returns what the edges of a record lead to, with the word of each.
fn edges_of<'a>(
    record: &'a ImportRecord,
    place: &Place<'_>,
    (places, state, in_file): (&'a [Place<'_>], &State, &BTreeSet<&str>),
) -> Result<Vec<(&'a str, &'a str)>, String> {
    let mut edges = Vec::new();
    for (target, kind) in &record.edges {
        let id = match target {
            ImportTarget::Issue(id) => id.as_str(),
            ImportTarget::Record(at) => places.get(*at).map_or("", |place| place.id.as_str()),
        };
        if id == place.id {
            return Err(format!("issue {id} depends on itself"));
        }
        if !in_file.contains(id) && state.get(id).is_none() {
            return Err(format!(
                "depends on {id}, which is neither in the file nor here"
            ));
        }
        edges.push((id, kind.as_str()));
    }
    Ok(edges)
}

/// Makes the row of a new issue.
fn filed(
    record: &ImportRecord,
    id: &str,
    edges: Vec<(&str, &str)>,
    (signer, seen): (ChangeSigner<'_>, &Observation<'_>),
) -> Result<IssueRow, String> {
    let now = seen.moment.wall;
    let mut change = RowChange::new();
    let row = match &record.body {
        ImportBody::Row(text) => IssueRow::parse(text),
        ImportBody::Fields(fields) => {
            let mut row = Map::new();
            row.insert("id".to_owned(), id.into());
            row.extend(fields.clone());
            if let ImportKey::Reference(reference) = &record.key {
                row.insert(REFERENCE.to_owned(), reference.as_str().into());
            }
            if !edges.is_empty() {
                let edges = edges.iter();
                let edges: Vec<Value> = edges
                    .map(|(to, kind)| new_edge(id, to, kind, signer.name(), now))
                    .collect();
                row.insert("dependencies".to_owned(), edges.into());
            }
            IssueRow::parse(&Value::Object(row).to_string())
        }
    };
    let row = row.map_err(|error| error.to_string())?;
    let fields = row.value();
    let has = |name: &str| fields.get(name).is_some_and(|value| !value.is_null());
    let owned = OWNED.into_iter().filter(|name| has(name));
    let owned: Vec<(&'static str, Value)> =
        owned.map(|name| (name, fields[name].clone())).collect();
    for (name, _) in &owned {
        change.remove(name);
    }
    let kept: Map<String, Value> = owned
        .into_iter()
        .map(|(name, value)| (name.into(), value))
        .collect();
    if !kept.is_empty() {
        change.set(KEPT, kept);
    }
    let at = time::micros(now);
    for (name, value) in [
        ("status", Value::from("open")),
        ("priority", DEFAULT_PRIORITY.into()),
        ("issue_type", DEFAULT_TYPE.into()),
        ("created_at", at.as_str().into()),
        ("updated_at", at.as_str().into()),
        ("ephemeral", false.into()),
    ] {
        if !has(name) {
            change.set(name, value);
        }
    }
    if row.issue.status == Status::Closed && !has("closed_at") {
        change.set("closed_at", at);
    }
    signer.sign(&mut change, now);
    edited(&row, &change).map_err(|error| error.to_string())
}
