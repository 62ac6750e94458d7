//! Changes of issue memory beside the gate, signed with what they rest on: a
//! person's decision, or an instruction that claims them.

use super::change::{ChangeOutcome, Decided, changed, edited, find, name_right, rights_used};
use super::dependency::{DependencyEdit, edges, refuse_new_cycle};
use super::fields::{IssueEdit, refuse_moved, update};
use super::new_issue::{NewIssue, add};
use super::state::State;
use crate::error::ChangeError;
use crate::row::IssueRow;
use premath_kernel::authority::claim::ChangeMorphism;
use premath_kernel::authority::{InstructedChange, InstructedRecord, OperatorOverride};
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::lease::{self, LeaseKey, LeaseRefusal, LeaseState, Observation};
use premath_kernel::issue::word::{self, KNOWN_STATUSES};
use premath_kernel::issue::{Issue, RowChange, Status};
use premath_kernel::json::time;
use premath_kernel::policy::escalation::append_notes;
use premath_kernel::turn::{Block, Close, GatedChange, MutationKind};
use serde_json::json;
use std::collections::BTreeSet;

/// A change of issue memory that a person makes, or that an instruction claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IssueChange {
    /// Files an issue.
    Add(NewIssue),
    /// Files an issue found while working on another.
    Discover {
        /// The issue that was worked on.
        parent: String,
        /// The new issue.
        new: NewIssue,
    },
    /// Sets fields of an issue.
    Update {
        /// The issue.
        id: String,
        /// The fields.
        edit: IssueEdit,
    },
    /// Sets fields of an issue that was read before, if they are still as they
    /// were.
    Revise {
        /// The issue.
        id: String,
        /// The fields as they were read.
        was: Box<IssueEdit>,
        /// The fields that are set.
        edit: Box<IssueEdit>,
    },
    /// Opens an issue for another attempt, at once.
    Retry {
        /// The issue.
        id: String,
        /// What is added to its notes.
        note: Option<String>,
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

impl IssueChange {
    /// Returns what an instruction must claim for it.
    pub(crate) const fn kind(&self) -> ChangeMorphism {
        match self {
            Self::Add(_) => ChangeMorphism::IssueAdd,
            Self::Discover { .. } => ChangeMorphism::IssueDiscover,
            Self::Update { .. } | Self::Revise { .. } | Self::Retry { .. } => {
                ChangeMorphism::IssueUpdate
            }
            Self::Dependency { edit, .. } => match edit {
                DependencyEdit::Add { .. } => ChangeMorphism::DepAdd,
                DependencyEdit::Remove { .. } => ChangeMorphism::DepRemove,
                DependencyEdit::Replace { .. } => ChangeMorphism::DepReplace,
            },
        }
    }

    /// Returns which change a turn must admit for it under an instruction, as
    /// the turn's witness names it; none where the instruction is enough.
    pub fn gated(&self) -> Option<&'static str> {
        match (self, self.status()) {
            (Self::Dependency { .. }, _) => Some(self.kind().name()),
            (_, Some(Status::Closed)) => Some(Close::NAME),
            (_, Some(Status::Blocked)) => Some(Block::NAME),
            _ => None,
        }
    }

    /// Returns the status that it sets, where it sets one.
    fn status(&self) -> Option<Status> {
        match self {
            Self::Add(new) | Self::Discover { new, .. } => new.status.as_deref(),
            Self::Update { edit, .. } => edit.status.as_deref(),
            Self::Revise { edit, .. } => edit.status.as_deref(),
            Self::Retry { .. } | Self::Dependency { .. } => None,
        }
        .map(Status::parse)
    }

    /// Returns the issue whose row it changes; none where it files one.
    fn changes(&self) -> Option<&str> {
        match self {
            Self::Add(_) | Self::Discover { .. } => None,
            Self::Update { id, .. }
            | Self::Revise { id, .. }
            | Self::Retry { id, .. }
            | Self::Dependency { id, .. } => Some(id),
        }
    }
}

/// What a change rests on, and is signed with.
#[derive(Clone, Copy)]
pub(super) enum ChangeSigner<'a> {
    Operator(&'a OperatorOverride),
    Instruction(&'a InstructedRecord),
    /// An instruction, and the right of a turn.
    Turn(&'a InstructedRecord, &'a str),
}

impl<'a> ChangeSigner<'a> {
    pub(super) fn name(&self) -> &'a str {
        match self {
            Self::Operator(authority) => authority.operator(),
            Self::Instruction(record) | Self::Turn(record, _) => record.asked_by(),
        }
    }

    /// Writes who made the change, and what it rests on.
    pub(super) fn sign(&self, change: &mut RowChange, now: jiff::Timestamp) {
        let at = time::micros(now);
        match self {
            Self::Operator(authority) => {
                let mut record = json!({"operator": authority.operator(), "at": at});
                if let Some(reason) = authority.reason() {
                    record["reason"] = reason.into();
                }
                change.set("operator_override", record);
            }
            Self::Instruction(instructed) | Self::Turn(instructed, _) => {
                let mut record = json!({
                    "instruction_ref": instructed.instruction_ref(),
                    "change": instructed.kind().name(),
                    "asked_by": instructed.asked_by(),
                    "at": at,
                });
                if let Self::Turn(_, right) = self {
                    record["mutation_ref"] = (*right).into();
                }
                change.set("instructed_change", record);
            }
        }
    }
}

/// Refuses an issue that the instruction does not cover.
pub(super) fn in_scope(issue: &Issue, asked: Option<&InstructedRecord>) -> Result<(), ChangeError> {
    match asked {
        Some(record) if !record.scope().admits(issue) => Err(ChangeError::Refused(LeaseRefusal {
            class: FailureClass::InstructionOutOfScope,
            detail: format!(
                "the scope of {} does not cover issue {}",
                record.instruction_ref(),
                issue.id
            ),
        })),
        _ => Ok(()),
    }
}

/// Makes a change that an instruction claims. A leased row is changed only if
/// the request names the lease's id, owner and generation (`contracts.md` 4).
pub(super) fn instruct(
    state: &mut State,
    (authority, turn): (&InstructedChange, Option<&GatedChange>),
    edit: &IssueChange,
    key: &LeaseKey,
    seen: &Observation<'_>,
) -> Decided {
    if authority.kind() != edit.kind() {
        return Err(ChangeError::Refused(LeaseRefusal {
            class: FailureClass::MutationCapabilityClaimMissing,
            detail: format!(
                "`{}` was authorised, but `{}` is requested",
                authority.kind().claim(),
                edit.kind().claim()
            ),
        }));
    }
    if let IssueChange::Add(new) | IssueChange::Discover { new, .. } = edit
        && new.has_edges()
    {
        // An edge under an instruction uses up the right of a turn.
        return Err(ChangeError::Refused(LeaseRefusal {
            class: FailureClass::MutationUseEvidenceMissing,
            detail: "only an operator files an issue together with its edges".to_owned(),
        }));
    }
    let record = authority.record();
    let parent = match edit {
        IssueChange::Discover { parent, .. } => Some(parent.as_str()),
        _ => None,
    };
    if let Some(id) = edit.changes().or(parent) {
        in_scope(&find(state, id)?.issue, Some(&record))?;
    }
    if let Some(id) = edit.changes() {
        let issue = &find(state, id)?.issue;
        let named = *key != LeaseKey::default();
        let held = matches!(
            lease::state(Some(issue), seen),
            LeaseState::Active | LeaseState::Contended | LeaseState::InvalidExpiresAt
        );
        if named {
            lease::fence(issue, key, seen)?;
        }
        let whole = key.lease_id.is_some() && key.owner.is_some() && key.generation.is_some();
        if held && !whole {
            let owner = issue.lease.as_ref().map_or("", |lease| &lease.owner);
            return Err(ChangeError::Refused(LeaseRefusal {
                class: FailureClass::LeaseContentionActive,
                detail: format!(
                    "issue {id} is leased to {owner}; a change must give the lease's id, owner and \
                     generation"
                ),
            }));
        }
    }
    let Some(right) = right_to(state, edit, turn)? else {
        return edit_by(state, ChangeSigner::Instruction(&record), edit, seen);
    };
    let (rows, _) = edit_by(state, ChangeSigner::Turn(&record, &right), edit, seen)?;
    let Some(row) = rows.first() else {
        return Err(ChangeError::Invalid("nothing was changed".to_owned()));
    };
    let mut change = RowChange::new();
    name_right(&mut change, row, right.clone())?;
    changed(row, &change)
}

/// Returns the right of a turn that a change under an instruction uses; none
/// where it needs none.
///
/// The turn is that of the issue's newest lease, and each of its rights is used
/// once.
fn right_to(
    state: &State,
    edit: &IssueChange,
    turn: Option<&GatedChange>,
) -> Result<Option<String>, ChangeError> {
    let refuse = |class, detail| Err(ChangeError::Refused(LeaseRefusal { class, detail }));
    let missing = FailureClass::MutationUseEvidenceMissing;
    let Some(needed) = edit.gated() else {
        return match edit.status().filter(Status::needs_evidence) {
            None => Ok(None),
            Some(status) => refuse(
                missing,
                format!("status `{}` is set by an operator alone", status.as_str()),
            ),
        };
    };
    let Some(turn) = turn.filter(|turn| turn.name() == needed) else {
        let detail =
            format!("`{needed}` requires the turn that admits it, not only an instruction");
        return refuse(missing, detail);
    };
    let step = turn.step();
    let row = find(state, edit.changes().unwrap_or_default())?;
    if *row.issue.id != *step.issue_id {
        let detail = format!(
            "the turn is that of issue {}, not of {}",
            step.issue_id, row.issue.id
        );
        return refuse(missing, detail);
    }
    if row.issue.lease_generation != step.generation {
        let detail = format!(
            "issue {} was leased again since the turn of {}",
            row.issue.id,
            step.step_id()
        );
        return refuse(FailureClass::LeaseGenerationMismatch, detail);
    }
    let right = turn.witness_ref();
    if rights_used(row)?.contains(&right) {
        return refuse(
            missing,
            format!("the turn of {} was used for this before", step.step_id()),
        );
    }
    Ok(Some(right))
}

pub(super) fn operate(
    state: &mut State,
    authority: &OperatorOverride,
    edit: &IssueChange,
    seen: &Observation<'_>,
) -> Decided {
    edit_by(state, ChangeSigner::Operator(authority), edit, seen)
}

fn edit_by(
    state: &mut State,
    signer: ChangeSigner<'_>,
    edit: &IssueChange,
    seen: &Observation<'_>,
) -> Decided {
    let now = seen.moment.wall;
    if let Some(status) = edit.status() {
        refuse_unknown(state, &status)?;
    }
    match edit {
        IssueChange::Add(new) => add(state, new, None, Some(signer), seen),
        IssueChange::Discover { parent, new } => {
            find(state, parent)?;
            let by = signer.name();
            add(state, new, Some((parent, by)), Some(signer), seen)
        }
        IssueChange::Update { id, edit } => {
            let row = find(state, id)?;
            let mut change = RowChange::new();
            update(&mut change, row, edit, now)?;
            signer.sign(&mut change, now);
            changed(row, &change)
        }
        IssueChange::Revise { id, was, edit } => {
            let row = find(state, id)?;
            refuse_moved(row, was, edit)?;
            let mut change = RowChange::new();
            update(&mut change, row, edit, now)?;
            signer.sign(&mut change, now);
            changed(row, &change)
        }
        IssueChange::Retry { id, note } => {
            let row = find(state, id)?;
            let mut change = reopened(row, note.as_deref(), seen)?;
            signer.sign(&mut change, now);
            changed(row, &change)
        }
        IssueChange::Dependency {
            id,
            depends_on,
            edit,
        } => {
            let row = find(state, id)?;
            let mut change = RowChange::new();
            change.set("dependencies", edges(state, row, depends_on, edit, now)?);
            change.touch(now);
            signer.sign(&mut change, now);
            let new = edited(row, &change)?;
            if !matches!(edit, DependencyEdit::Remove { .. }) {
                refuse_new_cycle(state, &row.clone(), &new)?;
            }
            Ok((vec![new.clone()], ChangeOutcome::Changed(Box::new(new))))
        }
    }
}

/// Opens an issue that no step works on, with a note below its notes.
fn reopened(
    row: &IssueRow,
    note: Option<&str>,
    seen: &Observation<'_>,
) -> Result<RowChange, ChangeError> {
    let (issue, now) = (&row.issue, seen.moment.wall);
    if issue.status == Status::Tombstone {
        let detail = format!("issue {} is deleted", issue.id);
        return Err(ChangeError::Invalid(detail));
    }
    if lease::state(Some(issue), seen) == LeaseState::Active {
        return Err(ChangeError::Refused(LeaseRefusal {
            class: FailureClass::LeaseContentionActive,
            detail: format!(
                "an attempt on issue {} is running; cancel it first",
                issue.id
            ),
        }));
    }
    let mut change = RowChange::new();
    if issue.status != Status::Open {
        change.set_status(issue, &Status::Open, now);
    }
    change.remove("lease").remove("retry_at");
    lease::without_claim(issue, &mut change);
    if let Some(note) = note.map(str::trim).filter(|note| !note.is_empty()) {
        let notes = append_notes(&row.text_of("notes"), note);
        change.set("notes", notes);
    }
    change.touch(now);
    Ok(change)
}

/// Refuses a status that neither the harness nor beads nor a row of the file
/// has: a wrong word would hold every issue that depends on this one.
fn refuse_unknown(state: &State, status: &Status) -> Result<(), ChangeError> {
    let is_used = || state.rows().any(|row| row.issue.status == *status);
    if word::is_known(status) || is_used() {
        return Ok(());
    }
    let mut known: Vec<&str> = KNOWN_STATUSES.to_vec();
    let used: BTreeSet<&str> = state.rows().map(|row| row.issue.status.as_str()).collect();
    known.extend(used.iter().filter(|word| !KNOWN_STATUSES.contains(word)));
    let given = status.as_str();
    let meant = match word::status_meant_by(given) {
        Some(meant) => format!(" (`{given}` is `{meant}` here)"),
        None => String::new(),
    };
    Err(ChangeError::Invalid(format!(
        "unknown status `{given}`; it must be one of {}{meant}",
        known.join(", ")
    )))
}
