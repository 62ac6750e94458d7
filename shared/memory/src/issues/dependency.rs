//! An issue's edges, and what a person does to them.

use super::change::{find, unreadable};
use super::state::State;
use crate::error::ChangeError;
use crate::row::IssueRow;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::EdgeKind;
use premath_kernel::issue::graph::{Diagnosis, IssueGraph, Scope};
use premath_kernel::issue::lease::LeaseRefusal;
use premath_kernel::json::time;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What a person does to an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DependencyEdit {
    /// Adds an edge.
    Add {
        /// The word of the dependency's type.
        kind: String,
        /// The creator of the dependency.
        created_by: Option<String>,
    },
    /// Removes an edge.
    Remove {
        /// The word of the dependency's type.
        kind: String,
    },
    /// Changes the type of an edge.
    Replace {
        /// The word of the old type.
        from: String,
        /// The word of the new type.
        to: String,
        /// The creator of the new dependency.
        created_by: Option<String>,
    },
}

/// The issue's edges after an edit, as they are stored in the row.
pub(super) fn edges(
    state: &State,
    row: &IssueRow,
    depends_on: &str,
    edit: &DependencyEdit,
    now: jiff::Timestamp,
) -> Result<Vec<Value>, ChangeError> {
    let id = &row.issue.id;
    let invalid = |text: String| Err(ChangeError::Invalid(text));
    let mut edges = match row.field("dependencies") {
        Ok(Some(Value::Array(edges))) => edges,
        Ok(_) => Vec::new(),
        Err(_) => return Err(unreadable(row, "dependencies")),
    };
    let at = |edges: &[Value], kind: &str| {
        edges.iter().position(|edge| {
            let word = edge
                .get("type")
                .or_else(|| edge.get("dep_type"))
                .and_then(Value::as_str);
            edge.get("depends_on_id").and_then(Value::as_str) == Some(depends_on)
                && EdgeKind::parse(word.unwrap_or("")) == EdgeKind::parse(kind)
        })
    };
    match edit {
        DependencyEdit::Add { kind, created_by } => {
            if depends_on == &**id {
                return invalid(format!("issue {id} cannot depend on itself"));
            }
            find(state, depends_on)?;
            if at(&edges, kind).is_some() {
                return invalid(format!("issue {id} already has this edge to {depends_on}"));
            }
            let created_by = created_by.as_deref().unwrap_or_default();
            edges.push(new_edge(id, depends_on, kind, created_by, now));
        }
        DependencyEdit::Remove { kind } => match at(&edges, kind) {
            Some(index) => drop(edges.remove(index)),
            None => return invalid(format!("issue {id} has no {kind} edge to {depends_on}")),
        },
        DependencyEdit::Replace {
            from,
            to,
            created_by,
        } => {
            let Some(index) = at(&edges, from) else {
                return invalid(format!("issue {id} has no {from} edge to {depends_on}"));
            };
            if at(&edges, to).is_some_and(|other| other != index) {
                return invalid(format!(
                    "issue {id} already has a {to} edge to {depends_on}"
                ));
            }
            if let Some(edge) = edges[index].as_object_mut() {
                edge.remove("dep_type");
                edge.insert("type".into(), EdgeKind::parse(to).as_str().into());
                if let Some(by) = created_by.as_deref().filter(|by| !by.is_empty()) {
                    edge.insert("created_by".into(), by.into());
                }
            }
        }
    }
    Ok(edges)
}

pub(super) fn new_edge(
    id: &str,
    depends_on: &str,
    kind: &str,
    created_by: &str,
    now: jiff::Timestamp,
) -> Value {
    let mut edge = json!({
        "issue_id": id,
        "depends_on_id": depends_on,
        "type": EdgeKind::parse(kind).as_str(),
        "created_at": time::micros(now),
    });
    if !created_by.is_empty() {
        edge["created_by"] = created_by.into();
    }
    edge
}

/// Refuses an edge that closes a cycle among active issues.
pub(super) fn refuse_new_cycle(
    state: &mut State,
    old: &IssueRow,
    new: &IssueRow,
) -> Result<(), ChangeError> {
    let before = state.diagnose(Scope::Active);
    state.graph_mut().upsert(&new.issue);
    let after = state.graph().diagnose(Scope::Active);
    state.graph_mut().upsert(&old.issue);
    refuse_made_cycle(&before, after, |id| *id == *new.issue.id)
}

/// Refuses issues whose edges close a cycle among active issues.
pub(super) fn refuse_cycle_of_new(state: &State, new: &[IssueRow]) -> Result<(), ChangeError> {
    let before = state.graph().diagnose(Scope::Active);
    let issues = state.rows().chain(new).map(|row| &row.issue);
    let after = IssueGraph::build(issues).diagnose(Scope::Active);
    let ids: BTreeSet<&str> = new.iter().map(|row| &*row.issue.id).collect();
    refuse_made_cycle(&before, after, |id| ids.contains(id))
}

/// Refuses a cycle that was not there before and that a changed issue is in.
fn refuse_made_cycle(
    before: &Diagnosis,
    after: Diagnosis,
    is_changed: impl Fn(&str) -> bool,
) -> Result<(), ChangeError> {
    // An existing cycle does not refuse the edge, which may be part of its
    // repair.
    let made = after.cycles.iter().find(|cycle| {
        cycle.iter().any(|id| is_changed(id))
            && !before
                .cycles
                .iter()
                .any(|old| cycle.iter().all(|member| old.contains(member)))
    });
    let Some(made) = made else {
        return Ok(());
    };
    let path = match after.cycle_path {
        Some(path) if path.iter().any(|id| is_changed(id)) => path.join(" -> "),
        _ => made.join(", "),
    };
    Err(ChangeError::Refused(LeaseRefusal {
        class: FailureClass::DependencyCycle,
        detail: format!("the edge closes a cycle: {path}"),
    }))
}
