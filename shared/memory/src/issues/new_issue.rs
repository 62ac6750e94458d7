//! Issues that are filed: by a person, or by a step that came upon them.

use super::change::{ChangeOutcome, Decided, edited, find};
use super::dependency::{new_edge, refuse_cycle_of_new};
use super::edit::ChangeSigner;
use super::state::State;
use crate::error::ChangeError;
use crate::row::IssueRow;
use premath_kernel::issue::dispatch::FOLLOW_UP_LABEL;
use premath_kernel::issue::lease::Observation;
use premath_kernel::issue::own_check::METADATA_FIELD;
use premath_kernel::issue::{EdgeKind, Issue, RowChange, Status};
use premath_kernel::json::time;
use premath_kernel::policy::escalation::{EscalationReport, follow_up};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// An issue to be filed; empty fields are left out of its row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewIssue {
    /// The issue's id; by default the next free number.
    pub id: Option<String>,
    /// The title of the issue.
    pub title: String,
    /// What is to be done.
    pub description: String,
    /// The command that verifies it, in the metadata.
    pub verification: String,
    /// How it is to be done.
    pub design: String,
    /// When it counts as done.
    pub acceptance_criteria: String,
    /// Notes.
    pub notes: String,
    /// `open` by default.
    pub status: Option<String>,
    /// 2 by default.
    pub priority: Option<i64>,
    /// `task` by default.
    pub issue_type: Option<String>,
    /// Who it is assigned to.
    pub assignee: String,
    /// The owner.
    pub owner: String,
    /// The labels of the issue.
    pub labels: Vec<String>,
    /// Issues that it waits for.
    pub depends_on: Vec<String>,
    /// The issue that it is a part of.
    pub parent: Option<String>,
}

impl NewIssue {
    /// Returns whether it has edges of its own to other issues.
    pub(super) fn has_edges(&self) -> bool {
        !self.depends_on.is_empty() || self.parent.is_some()
    }

    /// Returns its edges: what it points to, and how.
    fn edges(&self) -> BTreeSet<(&str, EdgeKind)> {
        let waits = self.depends_on.iter().map(|id| (id, EdgeKind::parse("")));
        let part = self.parent.iter().map(|id| (id, EdgeKind::ParentChild));
        let named = waits.chain(part).map(|(id, kind)| (id.trim(), kind));
        named.filter(|(id, _)| !id.is_empty()).collect()
    }

    /// Makes the follow-up of an issue whose step failed.
    pub fn follow_up(report: &EscalationReport<'_>, parent: &Issue) -> Self {
        let follow_up = follow_up(report);
        Self {
            title: follow_up.title,
            description: follow_up.description,
            priority: Some(parent.priority),
            issue_type: Some(parent.issue_type.to_string()),
            labels: vec![FOLLOW_UP_LABEL.to_owned()],
            ..Self::default()
        }
    }
}

/// Finds an open issue of this title that was discovered from another.
pub(super) fn filed_already<'a>(
    state: &'a State,
    parent: &str,
    title: &str,
) -> Option<&'a IssueRow> {
    let from_parent =
        |row: &&IssueRow| {
            !row.issue.status.is_terminal()
                && row.issue.dependencies.iter().any(|edge| {
                    edge.kind.as_str() == "discovered-from" && *edge.depends_on == *parent
                })
        };
    state
        .rows()
        .filter(from_parent)
        .find(|row| row.text_of("title") == title.trim())
}

pub(super) fn add(
    state: &State,
    new: &NewIssue,
    discovered_from: Option<(&str, &str)>,
    signer: Option<ChangeSigner<'_>>,
    seen: &Observation<'_>,
) -> Decided {
    let now = time::micros(seen.moment.wall);
    if new.title.trim().is_empty() {
        return Err(ChangeError::Invalid("the title is empty".to_owned()));
    }
    let id = match new.id.as_deref().map(str::trim).filter(|id| !id.is_empty()) {
        Some(id) => id.to_owned(),
        None => FreeIds::of(state).next(|id| state.get(id).is_some()),
    };
    if state.get(&id).is_some() {
        return Err(ChangeError::Invalid(format!("issue {id} already exists")));
    }
    for (target, _) in new.edges() {
        find(state, target)?;
    }
    let mut row = row_of(new, &id, &now);
    let by = signer.map_or("", |signer| signer.name());
    let edges = edges_of(new, &id, discovered_from, (by, seen.moment.wall));
    if !edges.is_empty() {
        row.insert("dependencies".into(), edges.into());
    }
    let text = Value::Object(row).to_string();
    let mut row = IssueRow::parse(&text)
        .map_err(|error| ChangeError::Invalid(format!("issue {id}: {error}")))?;
    if new.has_edges() {
        refuse_cycle_of_new(state, std::slice::from_ref(&row))?;
    }
    if let Some(signer) = signer {
        let mut change = RowChange::new();
        signer.sign(&mut change, seen.moment.wall);
        row = edited(&row, &change)?;
    }
    Ok((vec![row.clone()], ChangeOutcome::Changed(Box::new(row))))
}

/// Makes the edges of a new issue; `discovered_from` is an issue and who came
/// upon the new one there, `made` is who files it and when.
fn edges_of(
    new: &NewIssue,
    id: &str,
    discovered_from: Option<(&str, &str)>,
    (by, now): (&str, jiff::Timestamp),
) -> Vec<Value> {
    let found =
        discovered_from.map(|(parent, by)| new_edge(id, parent, "discovered-from", by, now));
    let own = new.edges().into_iter();
    let own = own.map(|(target, kind)| new_edge(id, target, kind.as_str(), by, now));
    own.chain(found).collect()
}

/// Makes the fields of a new issue's row.
fn row_of(new: &NewIssue, id: &str, now: &str) -> Map<String, Value> {
    let status = Status::parse(new.status.as_deref().unwrap_or(""));
    let mut row = Map::new();
    row.insert("id".into(), id.into());
    row.insert("title".into(), new.title.trim().into());
    for (field, value) in [
        ("description", &new.description),
        ("design", &new.design),
        ("acceptance_criteria", &new.acceptance_criteria),
        ("notes", &new.notes),
        ("assignee", &new.assignee),
        ("owner", &new.owner),
    ] {
        if !value.is_empty() {
            row.insert(field.into(), value.as_str().into());
        }
    }
    row.insert("status".into(), status.as_str().into());
    row.insert(
        "priority".into(),
        new.priority
            .unwrap_or(premath_kernel::issue::DEFAULT_PRIORITY)
            .into(),
    );
    let issue_type = new.issue_type.as_deref().filter(|word| !word.is_empty());
    row.insert(
        "issue_type".into(),
        issue_type
            .unwrap_or(premath_kernel::issue::DEFAULT_TYPE)
            .into(),
    );
    row.insert("created_at".into(), now.into());
    row.insert("updated_at".into(), now.into());
    if status == Status::Closed {
        row.insert("closed_at".into(), now.into());
    }
    row.insert("ephemeral".into(), false.into());
    if !new.labels.is_empty() {
        row.insert("labels".into(), json!(new.labels));
    }
    let verification = new.verification.trim();
    if !verification.is_empty() {
        row.insert("metadata".into(), json!({ METADATA_FIELD: verification }));
    }
    row
}

/// The ids that are free: `<prefix>-<n>`, of the prefix that most ids have, the
/// first by name among equals, and the numbers after the highest. In an empty
/// memory it is the prefix that the memory was opened with.
pub(super) struct FreeIds {
    prefix: String,
    highest: u64,
}

impl FreeIds {
    pub(super) fn of(state: &State) -> Self {
        let mut prefixes: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
        for row in state.rows() {
            if let Some((prefix, number)) = row.issue.id.rsplit_once('-')
                && let Ok(number) = number.parse::<u64>()
            {
                let (count, highest) = prefixes.entry(prefix).or_default();
                *count += 1;
                *highest = number.max(*highest);
            }
        }
        let best = prefixes
            .iter()
            .max_by(|a, b| a.1.0.cmp(&b.1.0).then_with(|| b.0.cmp(a.0)));
        let first = (state.id_prefix(), 0);
        let (prefix, highest) = best.map_or(first, |(prefix, (_, highest))| (*prefix, *highest));
        Self {
            prefix: prefix.to_owned(),
            highest,
        }
    }

    /// Takes the next id that is not taken.
    pub(super) fn next(&mut self, is_taken: impl Fn(&str) -> bool) -> String {
        loop {
            self.highest = self.highest.saturating_add(1);
            let id = format!("{}-{}", self.prefix, self.highest);
            if !is_taken(&id) || self.highest == u64::MAX {
                return id;
            }
        }
    }
}
