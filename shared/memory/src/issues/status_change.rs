//! What an operator does to several issues at once: closes, reopens, defers or
//! deletes them, all or none.

use super::change::{ChangeOutcome, Decided, edited, find};
use super::edit::ChangeSigner;
use super::state::State;
use crate::error::ChangeError;
use crate::row::IssueRow;
use premath_kernel::authority::OperatorOverride;
use premath_kernel::issue::lease::{self, Observation};
use premath_kernel::issue::{EdgeKind, Issue, RowChange, Status};
use premath_kernel::json::time;
use std::collections::{BTreeMap, BTreeSet};

/// The fields that a deleted issue has beside its own, as in beads.
const DELETION: [&str; 4] = ["deleted_at", "deleted_by", "delete_reason", "original_type"];
/// The type of issues that have parts.
const EPIC: &str = "epic";

/// What is done to issues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusChange {
    /// Closes them.
    Close,
    /// Opens them again, deleted ones too.
    Reopen,
    /// Sets them aside.
    Defer,
    /// Makes them tombstones, which keep every field.
    Delete {
        /// Also where open issues depend on them.
        force: bool,
    },
}

/// Which issues a change is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusTargets {
    /// These.
    Issues(Vec<String>),
    /// Every open epic that has children, all of them over.
    FinishedEpics,
}

/// An issue after such a change.
#[derive(Clone, Debug)]
pub struct StatusChanged {
    /// Its row.
    pub row: IssueRow,
    /// Whether it was changed; it may have been so before.
    pub changed: bool,
    /// The owner of the lease that the change cleared.
    pub lease_cleared: Option<String>,
}

pub(super) fn set_statuses(
    state: &State,
    (authority, change): (&OperatorOverride, StatusChange),
    targets: &StatusTargets,
    seen: &Observation<'_>,
) -> Decided {
    let needs_reason = matches!(change, StatusChange::Close | StatusChange::Delete { .. });
    if needs_reason && authority.reason().is_none() {
        let detail = "closing or deleting issues without a turn requires a reason";
        return Err(ChangeError::Invalid(detail.to_owned()));
    }
    let ids = match targets {
        StatusTargets::Issues(ids) => ids.clone(),
        StatusTargets::FinishedEpics => finished_epics(state),
    };
    let mut known = BTreeSet::new();
    let ids: Vec<&String> = ids.iter().filter(|id| known.insert(id.as_str())).collect();
    if change == (StatusChange::Delete { force: false }) {
        refuse_dependents(state, &known)?;
    }
    let mut written = Vec::new();
    let mut outcomes = Vec::new();
    for id in ids {
        let row = find(state, id)?;
        let status = target(&row.issue, change)?;
        let is_changed = row.issue.status != status;
        let row = match is_changed {
            true => moved(row, (authority, change), &status, seen)?,
            false => row.clone(),
        };
        let lease = find(state, id)?.issue.lease.as_ref();
        outcomes.push(StatusChanged {
            lease_cleared: lease
                .filter(|_| is_changed)
                .map(|lease| lease.owner.to_string()),
            changed: is_changed,
            row: row.clone(),
        });
        written.extend(is_changed.then_some(row));
    }
    Ok((written, ChangeOutcome::StatusChanged(outcomes)))
}

/// Returns the status that an issue gets, or why it gets none.
fn target(issue: &Issue, change: StatusChange) -> Result<Status, ChangeError> {
    let refuse = |why: &str| Err(ChangeError::Invalid(format!("issue {} {why}", issue.id)));
    match (change, &issue.status) {
        (StatusChange::Close, Status::Tombstone) => {
            refuse("is deleted; reopen it with `premath issue reopen`")
        }
        (StatusChange::Close, _) => Ok(Status::Closed),
        (StatusChange::Reopen, Status::InProgress) => {
            refuse("is in progress; release its lease with `premath issue release`")
        }
        (StatusChange::Reopen, _) => Ok(Status::Open),
        (StatusChange::Defer, status) if status.is_terminal() => {
            refuse("is over; reopen it with `premath issue reopen`")
        }
        (StatusChange::Defer, _) => Ok(Status::parse("deferred")),
        (StatusChange::Delete { .. }, _) => Ok(Status::Tombstone),
    }
}

fn moved(
    row: &IssueRow,
    (authority, change): (&OperatorOverride, StatusChange),
    status: &Status,
    seen: &Observation<'_>,
) -> Result<IssueRow, ChangeError> {
    let now = seen.moment.wall;
    let mut fields = RowChange::new();
    fields.set_status(&row.issue, status, now);
    // An issue that a step closed keeps its assignee until it is reopened.
    if row.issue.lease.is_some() || change == StatusChange::Reopen {
        lease::without_claim(&row.issue, &mut fields);
    }
    match change {
        StatusChange::Close | StatusChange::Defer => {}
        StatusChange::Reopen => {
            fields.remove("retry_at");
            for field in DELETION {
                fields.remove(field);
            }
        }
        StatusChange::Delete { .. } => {
            let reason = authority.reason().unwrap_or_default();
            fields
                .set("deleted_at", time::micros(now))
                .set("deleted_by", authority.operator())
                .set("delete_reason", reason)
                .set("original_type", &*row.issue.issue_type);
        }
    }
    ChangeSigner::Operator(authority).sign(&mut fields, now);
    edited(row, &fields)
}

/// Refuses to delete what other issues, which are not over, depend on: a
/// tombstone holds nothing, and would make them ready.
fn refuse_dependents(state: &State, ids: &BTreeSet<&str>) -> Result<(), ChangeError> {
    for row in state.rows() {
        let issue = &row.issue;
        if issue.status.is_terminal() || ids.contains(&*issue.id) {
            continue;
        }
        let needed = issue.dependencies.iter().find(|edge| {
            !matches!(edge.kind, EdgeKind::Informs(_)) && ids.contains(&*edge.depends_on)
        });
        if let Some(edge) = needed {
            let how = match edge.kind {
                EdgeKind::ParentChild => "is a part of it",
                _ => "depends on it",
            };
            return Err(ChangeError::Invalid(format!(
                "cannot delete issue {}: {} {how}; delete that one too, or use --force",
                edge.depends_on, issue.id
            )));
        }
    }
    Ok(())
}

/// Returns the epics that can be closed, inner ones first: one that is closed
/// may be the last child of another.
fn finished_epics(state: &State) -> Vec<String> {
    let mut children: BTreeMap<&str, Vec<&Issue>> = BTreeMap::new();
    for row in state.rows() {
        for edge in row.issue.dependencies.iter() {
            if edge.kind == EdgeKind::ParentChild {
                children
                    .entry(&edge.depends_on)
                    .or_default()
                    .push(&row.issue);
            }
        }
    }
    let mut over: BTreeSet<&str> = BTreeSet::new();
    let mut finished: Vec<String> = Vec::new();
    loop {
        let before = finished.len();
        for row in state.rows() {
            let issue = &row.issue;
            let is_open = !issue.status.is_terminal() && !over.contains(&*issue.id);
            let is_finished = || {
                children.get(&*issue.id).is_some_and(|children| {
                    let mut all = children.iter();
                    all.all(|child| child.status.is_terminal() || over.contains(&*child.id))
                })
            };
            if is_open && &*issue.issue_type == EPIC && is_finished() {
                over.insert(&issue.id);
                finished.push(issue.id.to_string());
            }
        }
        if finished.len() == before {
            return finished;
        }
    }
}
