//! The changes that issue memory can make, each decided by the kernel's rules.

use super::edit::{ChangeSigner, IssueChange, in_scope, instruct, operate};
use super::import::{Imported, import};
use super::new_issue::{NewIssue, add, filed_already};
use super::state::State;
use super::status_change::{StatusChange, StatusChanged, StatusTargets, set_statuses};
use crate::error::ChangeError;
use crate::row::IssueRow;
use premath_kernel::authority::{
    InstructedChange, InstructedRecord, OperatorOverride, StepIdentity,
};
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::import::ImportRecord;
use premath_kernel::issue::lease::{
    self, Claim, ClaimRequest, LeaseKey, LeaseRefusal, LeaseState, Observation, Term,
};
use premath_kernel::issue::outbox::discovered_priority;
use premath_kernel::issue::{RowChange, Selection};
use premath_kernel::json::id::IssueId;
use premath_kernel::policy::escalation::append_notes;
use premath_kernel::record::trajectory::BlockedBy;
use premath_kernel::turn::{Block, Close, Discover, GatedChange, MutationReady};
use serde_json::{Value, json};
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

/// The field of the rights by which turns changed an issue.
const RIGHTS: &str = "mutation_refs";

/// Which issues a claim may take.
#[derive(Clone, Debug, Default)]
pub struct ClaimScope {
    /// What is worked on at all.
    pub selection: Selection,
    /// Issues to leave alone.
    pub left_out: BTreeSet<IssueId>,
    /// The highest generation of issues that is known from elsewhere.
    pub generation_floors: Arc<BTreeMap<IssueId, u64>>,
}

/// One change, with the authority for it.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a change is made, decided and dropped; it is never kept in numbers"
)]
pub(super) enum PendingChange {
    ClaimNext {
        request: ClaimRequest,
        scope: ClaimScope,
        asked: Option<InstructedRecord>,
    },
    Claim {
        issue_id: IssueId,
        request: ClaimRequest,
        asked: Option<InstructedRecord>,
    },
    Renew {
        issue_id: IssueId,
        key: LeaseKey,
        term: Term,
        asked: Option<InstructedRecord>,
    },
    Release {
        issue_id: IssueId,
        key: LeaseKey,
        retry_at: Option<jiff::Timestamp>,
        asked: Option<InstructedRecord>,
    },
    Close(MutationReady<Close>),
    Block {
        ready: MutationReady<Block>,
        notes: String,
        by: Option<Box<BlockedBy>>,
    },
    Discover {
        ready: MutationReady<Discover>,
        new: NewIssue,
    },
    Operate {
        authority: OperatorOverride,
        edit: IssueChange,
    },
    SetStatuses {
        authority: OperatorOverride,
        change: StatusChange,
        targets: StatusTargets,
    },
    Import {
        authority: OperatorOverride,
        records: Vec<ImportRecord>,
    },
    Instruct {
        authority: InstructedChange,
        turn: Option<GatedChange>,
        edit: IssueChange,
        key: LeaseKey,
    },
}

/// The outcome of a change.
#[derive(Debug)]
pub(super) enum ChangeOutcome {
    Claimed(Option<Box<Claimed>>),
    Changed(Box<IssueRow>),
    StatusChanged(Vec<StatusChanged>),
    Imported(Imported),
}

pub(super) type Decided = Result<(Vec<IssueRow>, ChangeOutcome), ChangeError>;

impl PendingChange {
    /// Decides the change on what is there now.
    pub(super) fn decide(&self, state: &mut State, seen: &Observation<'_>) -> Decided {
        match self {
            Self::ClaimNext {
                request,
                scope,
                asked,
            } => claim_next(state, request, scope, asked.as_ref(), seen),
            Self::Claim {
                issue_id,
                request,
                asked,
            } => claim(state, issue_id, request, asked.as_ref(), seen),
            Self::Renew {
                issue_id,
                key,
                term,
                asked,
            } => {
                let row = find(state, issue_id)?;
                let change = lease::renew(&row.issue, key, *term, seen)?;
                changed(row, &signed(change, asked.as_ref(), seen))
            }
            Self::Release {
                issue_id,
                key,
                retry_at,
                asked,
            } => {
                let row = find(state, issue_id)?;
                let change = lease::release(&row.issue, key, *retry_at, seen.moment.wall)?;
                changed(row, &signed(change, asked.as_ref(), seen))
            }
            Self::Close(ready) => close(state, ready, seen),
            Self::Block { ready, notes, by } => block(state, ready, (notes, by.as_deref()), seen),
            Self::Discover { ready, new } => discover(state, ready, new, seen),
            Self::Operate { authority, edit } => operate(state, authority, edit, seen),
            Self::SetStatuses {
                authority,
                change,
                targets,
            } => set_statuses(state, (authority, *change), targets, seen),
            Self::Import { authority, records } => import(state, authority, records, seen),
            Self::Instruct {
                authority,
                turn,
                edit,
                key,
            } => instruct(state, (authority, turn.as_ref()), edit, key, seen),
        }
    }
}

fn close(state: &State, ready: &MutationReady<Close>, seen: &Observation<'_>) -> Decided {
    let step = ready.step();
    let row = find(state, &step.issue_id)?;
    let mut change = lease::close(&row.issue, &key_of(step), &step.step_id(), seen)?;
    if let Some(instruction) = &ready.witness().instruction_ref {
        change.set("closed_under", instruction.as_str());
    }
    name_right(&mut change, row, ready.witness_ref())?;
    changed(row, &change)
}

fn block(
    state: &State,
    ready: &MutationReady<Block>,
    (notes, by): (&str, Option<&BlockedBy>),
    seen: &Observation<'_>,
) -> Decided {
    let step = ready.step();
    let row = find(state, &step.issue_id)?;
    let notes = append_notes(&readable(row, "notes")?, notes);
    let mut change = lease::block(&row.issue, &key_of(step), &notes, seen)?;
    if let Some(by) = by {
        change.set("blocked_by", by);
    }
    name_right(&mut change, row, ready.witness_ref())?;
    changed(row, &change)
}

fn discover(
    state: &State,
    ready: &MutationReady<Discover>,
    new: &NewIssue,
    seen: &Observation<'_>,
) -> Decided {
    let step = ready.step();
    let row = find(state, &step.issue_id)?;
    lease::fence(&row.issue, &key_of(step), seen)?;
    // A crash between filing and closing files once more.
    if let Some(filed) = filed_already(state, &step.issue_id, &new.title) {
        return Ok((Vec::new(), ChangeOutcome::Changed(Box::new(filed.clone()))));
    }
    let by = format!("{} (step {})", step.worker_id, step.step_id());
    let priority = discovered_priority(new.priority, row.issue.priority);
    let new = NewIssue {
        priority: Some(priority),
        ..new.clone()
    };
    let filed = add(state, &new, Some((&step.issue_id, &by)), None, seen)?;
    marked(filed, step, &ready.witness_ref())
}

/// Writes what a lease operation rests on, where it was asked for under an
/// instruction.
fn signed(
    mut change: RowChange,
    asked: Option<&InstructedRecord>,
    seen: &Observation<'_>,
) -> RowChange {
    if let Some(record) = asked {
        ChangeSigner::Instruction(record).sign(&mut change, seen.moment.wall);
    }
    change
}

/// Marks an issue with the step that filed it and the lease it ran under.
fn marked((rows, _): (Vec<IssueRow>, ChangeOutcome), step: &StepIdentity, right: &str) -> Decided {
    let mut change = RowChange::new();
    change.set(
        "discovered_by",
        json!({
            "step_id": step.step_id(),
            "lease_id": step.lease_id,
            "generation": step.generation,
            "mutation_ref": right,
        }),
    );
    match rows.first() {
        Some(row) => changed(row, &change),
        None => Err(ChangeError::Invalid("nothing was filed".to_owned())),
    }
}

fn key_of(step: &StepIdentity) -> LeaseKey {
    LeaseKey {
        lease_id: Some(step.lease_id.clone()),
        owner: Some(step.owner.clone()),
        generation: Some(step.generation),
    }
}

/// Returns the rights by which turns changed an issue so far.
pub(super) fn rights_used(row: &IssueRow) -> Result<Vec<String>, ChangeError> {
    match row.field(RIGHTS) {
        Ok(None | Some(Value::Null)) => Ok(Vec::new()),
        Ok(Some(list)) => serde_json::from_value(list).map_err(|_| unreadable(row, RIGHTS)),
        Err(_) => Err(unreadable(row, RIGHTS)),
    }
}

/// Names the right that a change of an issue uses up, behind those before it.
pub(super) fn name_right(
    change: &mut RowChange,
    row: &IssueRow,
    right: String,
) -> Result<(), ChangeError> {
    let mut rights = rights_used(row)?;
    rights.push(right);
    change.set(RIGHTS, rights);
    Ok(())
}

/// A text field that is to be added to, and so must be readable.
fn readable(row: &IssueRow, field: &str) -> Result<String, ChangeError> {
    match row.field(field) {
        Ok(Some(Value::String(text))) => Ok(text),
        Ok(_) => Ok(String::new()),
        Err(_) => Err(unreadable(row, field)),
    }
}

pub(super) fn unreadable(row: &IssueRow, field: &str) -> ChangeError {
    ChangeError::Invalid(format!(
        "cannot change issue {}: its field `{field}` is invalid; repair the row first",
        row.issue.id
    ))
}

pub(super) fn find<'a>(state: &'a State, id: &str) -> Result<&'a IssueRow, ChangeError> {
    state.get(id).ok_or_else(|| {
        ChangeError::Refused(LeaseRefusal {
            class: FailureClass::LeaseNotFound,
            detail: format!("no issue {id}"),
        })
    })
}

pub(super) fn edited(row: &IssueRow, change: &RowChange) -> Result<IssueRow, ChangeError> {
    row.with(change)
        .map_err(|error| ChangeError::Invalid(format!("issue {}: {error}", row.issue.id)))
}

pub(super) fn changed(row: &IssueRow, change: &RowChange) -> Decided {
    let row = edited(row, change)?;
    Ok((vec![row.clone()], ChangeOutcome::Changed(Box::new(row))))
}

fn claimed(row: &IssueRow, change: &RowChange, claim: Claim) -> Decided {
    let row = edited(row, change)?;
    let outcome = ChangeOutcome::Claimed(Some(Box::new(Claimed {
        claim,
        row: row.clone(),
    })));
    Ok((vec![row], outcome))
}

fn claim(
    state: &State,
    id: &str,
    request: &ClaimRequest,
    asked: Option<&InstructedRecord>,
    seen: &Observation<'_>,
) -> Decided {
    let row = find(state, id)?;
    in_scope(&row.issue, asked)?;
    let graph = state.graph();
    let held_by = (!graph.is_ready(id)).then(|| graph.holds(id));
    let (change, claim) = lease::claim(&row.issue, held_by.as_deref(), request, seen)?;
    claimed(row, &signed(change, asked, seen), claim)
}

/// The next issue: ready ones and stale leases together, by priority, then id.
fn claim_next(
    state: &State,
    request: &ClaimRequest,
    scope: &ClaimScope,
    asked: Option<&InstructedRecord>,
    seen: &Observation<'_>,
) -> Decided {
    request.validate(seen.moment)?;
    let admitted = |row: &&IssueRow| {
        scope.selection.admits(&row.issue)
            && asked.is_none_or(|record| record.scope().admits(&row.issue))
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
        None => Ok((Vec::new(), ChangeOutcome::Claimed(None))),
        Some(row) => {
            let id = &row.issue.id;
            let floor = scope.generation_floors.get(&**id).copied().unwrap_or(0);
            let request = ClaimRequest {
                generation_floor: floor.max(request.generation_floor),
                ..request.clone()
            };
            claim(state, id, &request, asked, seen)
        }
    }
}
