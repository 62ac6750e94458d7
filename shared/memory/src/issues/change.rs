//! The changes that issue memory can make, each decided by the kernel's rules.

use super::state::State;
use crate::error::ChangeError;
use crate::row::IssueRow;
use premath_kernel::authority::{OperatorOverride, StepIdentity};
use premath_kernel::escalation::append_notes;
use premath_kernel::failure::FailureClass;
use premath_kernel::graph::Scope;
use premath_kernel::issue::{EdgeKind, RowChange, Selection, Status};
use premath_kernel::lease::{
    self, Claim, ClaimRequest, LeaseKey, LeaseRefusal, LeaseState, Observation, Term,
};
use premath_kernel::time;
use premath_kernel::turn::{Block, Close, Discover, MutationReady};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An issue that was claimed, with its row.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The lease.
    pub claim: Claim,
    /// The row with the lease in it.
    pub row: IssueRow,
}

/// Which issues a claim may take.
#[derive(Clone, Debug, Default)]
pub struct ClaimScope {
    /// What is worked on at all.
    pub selection: Selection,
    /// Issues to leave alone.
    pub left_out: BTreeSet<String>,
    /// The highest generation of issues that is known from elsewhere.
    pub generation_floors: Arc<BTreeMap<String, u64>>,
}

/// One change, with the authority for it.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a change is made, decided and dropped; it is never kept in numbers"
)]
pub(super) enum Change {
    ClaimNext {
        request: ClaimRequest,
        scope: ClaimScope,
    },
    Claim {
        issue_id: String,
        request: ClaimRequest,
    },
    Renew {
        issue_id: String,
        key: LeaseKey,
        term: Term,
    },
    Release {
        issue_id: String,
        key: LeaseKey,
        retry_at: Option<jiff::Timestamp>,
    },
    Close(MutationReady<Close>),
    Block {
        ready: MutationReady<Block>,
        notes: String,
    },
    Discover {
        ready: MutationReady<Discover>,
        new: NewIssue,
    },
    Operate {
        authority: OperatorOverride,
        edit: OperatorEdit,
    },
}

/// What a change came to.
#[derive(Debug)]
pub(super) enum Outcome {
    Claimed(Option<Box<Claimed>>),
    Changed(Box<IssueRow>),
}

/// An issue to be filed; empty fields are left out of its row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewIssue {
    /// Its id; by default the next number behind the ids that are there.
    pub id: Option<String>,
    /// Its title.
    pub title: String,
    /// What is to be done.
    pub description: String,
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
    /// Who answers for it.
    pub owner: String,
    /// Its labels.
    pub labels: Vec<String>,
}

/// Fields of an issue that a person sets; `None` leaves one as it is, an
/// empty text clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IssueEdit {
    /// The title.
    pub title: Option<String>,
    /// What is to be done.
    pub description: Option<String>,
    /// Notes.
    pub notes: Option<String>,
    /// The status.
    pub status: Option<String>,
    /// The priority.
    pub priority: Option<i64>,
    /// The assignee.
    pub assignee: Option<String>,
    /// The owner.
    pub owner: Option<String>,
}

/// What a person does to an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DependencyEdit {
    /// Adds an edge.
    Add {
        /// Its word.
        kind: String,
        /// Who adds it.
        created_by: Option<String>,
    },
    /// Takes an edge away.
    Remove {
        /// Its word.
        kind: String,
    },
    /// Gives an edge another word.
    Replace {
        /// The word it has.
        from: String,
        /// The word it gets.
        to: String,
        /// Who replaces it.
        created_by: Option<String>,
    },
}

/// A person's change of issue memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorEdit {
    /// Files an issue.
    Add(NewIssue),
    /// Files an issue found while working on another.
    Discover {
        /// The issue that was worked on.
        parent: String,
        /// The new one.
        new: NewIssue,
    },
    /// Sets fields of an issue.
    Update {
        /// The issue.
        id: String,
        /// The fields.
        edit: IssueEdit,
    },
    /// Changes an edge.
    Dependency {
        /// The issue that has the edge.
        id: String,
        /// The issue that it points to.
        depends_on: String,
        /// What is done to it.
        edit: DependencyEdit,
    },
}

type Decided = Result<(Vec<IssueRow>, Outcome), ChangeError>;

impl Change {
    /// Decides the change on what is there now.
    pub(super) fn decide(&self, state: &mut State, seen: &Observation<'_>) -> Decided {
        match self {
            Self::ClaimNext { request, scope } => claim_next(state, request, scope, seen),
            Self::Claim { issue_id, request } => claim(state, issue_id, request, seen),
            Self::Renew {
                issue_id,
                key,
                term,
            } => {
                let row = find(state, issue_id)?;
                changed(row, &lease::renew(&row.issue, key, *term, seen)?)
            }
            Self::Release {
                issue_id,
                key,
                retry_at,
            } => {
                let row = find(state, issue_id)?;
                let change = lease::release(&row.issue, key, *retry_at, seen.moment.wall)?;
                changed(row, &change)
            }
            Self::Close(ready) => {
                let step = ready.step();
                let row = find(state, &step.issue_id)?;
                let change = lease::close(&row.issue, &key_of(step), &step.step_id(), seen)?;
                changed(row, &change)
            }
            Self::Block { ready, notes } => {
                let step = ready.step();
                let row = find(state, &step.issue_id)?;
                let notes = append_notes(&readable(row, "notes")?, notes);
                let change = lease::block(&row.issue, &key_of(step), &notes, seen)?;
                changed(row, &change)
            }
            Self::Discover { ready, new } => {
                let step = ready.step();
                let row = find(state, &step.issue_id)?;
                lease::fence(&row.issue, &key_of(step), seen)?;
                // A crash between filing and closing files once more.
                if let Some(filed) = filed_already(state, &step.issue_id, &new.title) {
                    return Ok((Vec::new(), Outcome::Changed(Box::new(filed.clone()))));
                }
                let by = format!("{} (step {})", step.worker_id, step.step_id());
                add(state, new, Some((&step.issue_id, &by)), None, seen)
            }
            Self::Operate { authority, edit } => operate(state, authority, edit, seen),
        }
    }
}

fn key_of(step: &StepIdentity) -> LeaseKey {
    LeaseKey {
        lease_id: Some(step.lease_id.clone()),
        owner: Some(step.owner.clone()),
        generation: Some(step.generation),
    }
}

/// Finds an open issue of this title that was discovered from another.
fn filed_already<'a>(state: &'a State, parent: &str, title: &str) -> Option<&'a IssueRow> {
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

/// A text field that is to be added to, and so must be readable.
fn readable(row: &IssueRow, field: &str) -> Result<String, ChangeError> {
    match row.field(field) {
        Ok(Some(Value::String(text))) => Ok(text),
        Ok(_) => Ok(String::new()),
        Err(_) => Err(unreadable(row, field)),
    }
}

fn unreadable(row: &IssueRow, field: &str) -> ChangeError {
    ChangeError::Invalid(format!(
        "field `{field}` of issue {} cannot be read, and is not written over; mend the row first",
        row.issue.id
    ))
}

fn find<'a>(state: &'a State, id: &str) -> Result<&'a IssueRow, ChangeError> {
    state.get(id).ok_or_else(|| {
        ChangeError::Refused(LeaseRefusal {
            class: FailureClass::LeaseNotFound,
            detail: format!("there is no issue {id}"),
        })
    })
}

fn edited(row: &IssueRow, change: &RowChange) -> Result<IssueRow, ChangeError> {
    row.with(change)
        .map_err(|error| ChangeError::Invalid(format!("issue {}: {error}", row.issue.id)))
}

fn changed(row: &IssueRow, change: &RowChange) -> Decided {
    let row = edited(row, change)?;
    Ok((vec![row.clone()], Outcome::Changed(Box::new(row))))
}

fn claimed(row: &IssueRow, change: &RowChange, claim: Claim) -> Decided {
    let row = edited(row, change)?;
    let outcome = Outcome::Claimed(Some(Box::new(Claimed {
        claim,
        row: row.clone(),
    })));
    Ok((vec![row], outcome))
}

fn claim(state: &State, id: &str, request: &ClaimRequest, seen: &Observation<'_>) -> Decided {
    let row = find(state, id)?;
    let ready = state.graph().is_ready(id);
    let (change, claim) = lease::claim(&row.issue, ready, request, seen)?;
    claimed(row, &change, claim)
}

/// The next issue: ready ones and stale leases together, by priority, then id.
fn claim_next(
    state: &State,
    request: &ClaimRequest,
    scope: &ClaimScope,
    seen: &Observation<'_>,
) -> Decided {
    request.validate(seen.moment)?;
    let admitted = |row: &&IssueRow| {
        scope.selection.admits(&row.issue)
            && !scope.left_out.contains(&*row.issue.id)
            && lease::claimable(&row.issue, request, seen)
    };
    let ready = state
        .graph()
        .frontier()
        .filter_map(|id| state.get(id))
        .find(admitted);
    let stale = state
        .maybe_stale(seen)
        .filter(|row| lease::state(Some(&row.issue), seen) == LeaseState::Stale)
        .filter(admitted)
        .min_by_key(|row| (row.issue.priority, row.issue.id.clone()));
    let next = ready
        .into_iter()
        .chain(stale)
        .min_by_key(|row| (row.issue.priority, row.issue.id.clone()));
    match next {
        None => Ok((Vec::new(), Outcome::Claimed(None))),
        Some(row) => {
            let id = &row.issue.id;
            let floor = scope.generation_floors.get(&**id).copied().unwrap_or(0);
            let request = ClaimRequest {
                generation_floor: floor.max(request.generation_floor),
                ..request.clone()
            };
            claim(state, id, &request, seen)
        }
    }
}

fn operate(
    state: &mut State,
    authority: &OperatorOverride,
    edit: &OperatorEdit,
    seen: &Observation<'_>,
) -> Decided {
    let now = seen.moment.wall;
    match edit {
        OperatorEdit::Add(new) => add(state, new, None, Some(authority), seen),
        OperatorEdit::Discover { parent, new } => {
            find(state, parent)?;
            let by = authority.operator();
            add(state, new, Some((parent, by)), Some(authority), seen)
        }
        OperatorEdit::Update { id, edit } => {
            let row = find(state, id)?;
            let mut change = RowChange::new();
            update(&mut change, row, edit, now)?;
            sign(&mut change, authority, now);
            changed(row, &change)
        }
        OperatorEdit::Dependency {
            id,
            depends_on,
            edit,
        } => {
            let row = find(state, id)?;
            let mut change = RowChange::new();
            change.set("dependencies", edges(state, row, depends_on, edit, now)?);
            change.touch(now);
            sign(&mut change, authority, now);
            let new = edited(row, &change)?;
            if !matches!(edit, DependencyEdit::Remove { .. }) {
                refuse_new_cycle(state, &row.clone(), &new)?;
            }
            Ok((vec![new.clone()], Outcome::Changed(Box::new(new))))
        }
    }
}

/// Writes who overrode the gate, and why where it was said.
fn sign(change: &mut RowChange, authority: &OperatorOverride, now: jiff::Timestamp) {
    let mut record = json!({"operator": authority.operator(), "at": time::micros(now)});
    if let Some(reason) = authority.reason() {
        record["reason"] = reason.into();
    }
    change.set("operator_override", record);
}

fn update(
    change: &mut RowChange,
    row: &IssueRow,
    edit: &IssueEdit,
    now: jiff::Timestamp,
) -> Result<(), ChangeError> {
    if edit
        .title
        .as_deref()
        .is_some_and(|title| title.trim().is_empty())
    {
        return Err(ChangeError::Invalid(
            "the title must not be empty".to_owned(),
        ));
    }
    let mut text = |field: &'static str, value: &Option<String>| match value.as_deref() {
        None => {}
        Some("") => drop(change.remove(field)),
        Some(value) => drop(change.set(field, value)),
    };
    text("title", &edit.title);
    text("description", &edit.description);
    text("notes", &edit.notes);
    text("assignee", &edit.assignee);
    text("owner", &edit.owner);
    if let Some(priority) = edit.priority {
        change.set("priority", priority);
    }
    if let Some(status) = &edit.status {
        let status = Status::parse(status);
        if status != row.issue.status {
            change.set_status(&status, now);
        } else if status != Status::InProgress {
            // A lease that was left over goes with any other status.
            change.remove("lease");
        }
        if status == Status::Open {
            change.remove("retry_at");
        }
    }
    change.touch(now);
    Ok(())
}

/// The issue's edges after an edit, as they stand in the row.
fn edges(
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
                return invalid(format!("issue {id} has this edge to {depends_on} already"));
            }
            let mut edge = json!({
                "issue_id": &**id,
                "depends_on_id": depends_on,
                "type": EdgeKind::parse(kind).as_str(),
                "created_at": time::micros(now),
            });
            if let Some(by) = created_by.as_deref().filter(|by| !by.is_empty()) {
                edge["created_by"] = by.into();
            }
            edges.push(edge);
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
                    "issue {id} has a {to} edge to {depends_on} already"
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

/// Refuses an edge that closes a circle among active issues.
fn refuse_new_cycle(state: &mut State, old: &IssueRow, new: &IssueRow) -> Result<(), ChangeError> {
    let before = state.diagnose(Scope::Active).cycles;
    state.graph_mut().upsert(&new.issue);
    let after = state.graph().diagnose(Scope::Active);
    state.graph_mut().upsert(&old.issue);
    // A circle that was there, or what is left of one, is no reason to refuse
    // what may be its repair.
    let made = after.cycles.iter().find(|cycle| {
        cycle.contains(&new.issue.id)
            && !before
                .iter()
                .any(|old| cycle.iter().all(|member| old.contains(member)))
    });
    let Some(made) = made else {
        return Ok(());
    };
    let path = match after.cycle_path {
        Some(path) if path.contains(&new.issue.id) => path.join(" -> "),
        _ => made.join(", "),
    };
    Err(ChangeError::Refused(LeaseRefusal {
        class: FailureClass::DependencyCycle,
        detail: format!("the edge closes a circle: {path}"),
    }))
}

fn add(
    state: &State,
    new: &NewIssue,
    discovered_from: Option<(&str, &str)>,
    authority: Option<&OperatorOverride>,
    seen: &Observation<'_>,
) -> Decided {
    let now = time::micros(seen.moment.wall);
    if new.title.trim().is_empty() {
        return Err(ChangeError::Invalid(
            "the title must not be empty".to_owned(),
        ));
    }
    let id = match new.id.as_deref().map(str::trim).filter(|id| !id.is_empty()) {
        Some(id) => id.to_owned(),
        None => next_id(state),
    };
    if state.get(&id).is_some() {
        return Err(ChangeError::Invalid(format!(
            "there is an issue {id} already"
        )));
    }
    let status = Status::parse(new.status.as_deref().unwrap_or(""));
    let mut row = Map::new();
    row.insert("id".into(), id.clone().into());
    row.insert("title".into(), new.title.trim().into());
    for (field, value) in [
        ("description", &new.description),
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
    row.insert("created_at".into(), now.clone().into());
    row.insert("updated_at".into(), now.clone().into());
    if status == Status::Closed {
        row.insert("closed_at".into(), now.clone().into());
    }
    row.insert("ephemeral".into(), false.into());
    if !new.labels.is_empty() {
        row.insert("labels".into(), json!(new.labels));
    }
    if let Some((parent, by)) = discovered_from {
        row.insert(
            "dependencies".into(),
            json!([{
                "issue_id": id,
                "depends_on_id": parent,
                "type": "discovered-from",
                "created_at": now,
                "created_by": by,
            }]),
        );
    }
    let text = Value::Object(row).to_string();
    let mut row = IssueRow::parse(&text)
        .map_err(|error| ChangeError::Invalid(format!("issue {id}: {error}")))?;
    if let Some(authority) = authority {
        let mut change = RowChange::new();
        sign(&mut change, authority, seen.moment.wall);
        row = edited(&row, &change)?;
    }
    Ok((vec![row.clone()], Outcome::Changed(Box::new(row))))
}

/// `<prefix>-<n>`: the prefix that most ids have, the first by name among
/// equals, and the number after the highest; `bd` in an empty memory.
fn next_id(state: &State) -> String {
    let mut prefixes: std::collections::BTreeMap<&str, (usize, u64)> = Default::default();
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
    match best {
        Some((prefix, (_, highest))) => format!("{prefix}-{}", highest.saturating_add(1)),
        None => "bd-1".to_owned(),
    }
}
