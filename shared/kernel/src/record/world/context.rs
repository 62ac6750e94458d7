//! What the harness computes before anything is carried: which turn it is,
//! and the site lineage and witnesses that it rests on.

use crate::json::canonical;
use crate::json::id::{IssueId, StepId};
use crate::json::reference::RefSet;
use crate::json::token::encode;
use crate::record::trajectory::StepRow;
use crate::record::witness::TURN_KIND;
use serde_json::Value;

/// A turn that is to cross, with its context.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a context that is not carried crosses nothing"]
pub struct WorkContext {
    pub(super) step_id: StepId,
    pub(super) issue_id: Option<IssueId>,
    pub(super) lineage: RefSet,
    /// The witnesses that the step's row names.
    pub(super) witnesses: RefSet,
    /// What the row would call the witness if it is the one that was written.
    pub(super) turn_ref: String,
    /// The digest that the witness says its turn has.
    pub(super) recorded_digest: Option<String>,
    pub(super) input: Value,
}

/// A document that is not a turn's witness.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkContextError {
    /// It is of another kind.
    #[error("it must be the witness of a turn, `witnessKind` \"{TURN_KIND}\"")]
    Kind,
    /// A field is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
}

impl WorkContext {
    /// Computes the context of a turn from its witness and the row of its
    /// step; a step that has no row has no lineage, and will not be carried.
    ///
    /// # Errors
    ///
    /// [`WorkContextError`].
    pub fn compute(mut witness: Value, row: Option<&StepRow>) -> Result<Self, WorkContextError> {
        if witness["witnessKind"] != TURN_KIND {
            return Err(WorkContextError::Kind);
        }
        let digest = canonical::sha256_hex(canonical::canonical_value(&witness).as_bytes());
        let step_id = match witness["stepId"].as_str() {
            Some(id) if !id.trim().is_empty() => StepId::from(id),
            _ => return Err(WorkContextError::Missing("stepId")),
        };
        let input = witness["input"].take();
        if !input.is_object() {
            return Err(WorkContextError::Missing("input"));
        }
        let recorded = &witness["joinCheck"]["witness"]["digests"]["joinSetDigest"];
        Ok(Self {
            turn_ref: format!("ciwitness://{}/turn/{digest}", encode(&step_id)),
            recorded_digest: recorded.as_str().map(str::to_owned),
            issue_id: row.and_then(|row| row.issue_id.clone()),
            lineage: row.map(|row| row.lineage_refs.clone()).unwrap_or_default(),
            witnesses: row.map(|row| row.witness_refs.clone()).unwrap_or_default(),
            step_id,
            input,
        })
    }

    /// Returns the step that the turn belongs to.
    pub const fn step_id(&self) -> &StepId {
        &self.step_id
    }

    /// Returns the step's issue, where its row names one.
    pub const fn issue_id(&self) -> Option<&IssueId> {
        self.issue_id.as_ref()
    }

    /// Returns the reference of the turn's witness.
    pub fn turn_ref(&self) -> &str {
        &self.turn_ref
    }

    /// Returns the site lineage of the step.
    pub const fn lineage(&self) -> &RefSet {
        &self.lineage
    }

    /// Returns the one context that the lineage names.
    pub(super) fn context_ref(&self) -> Option<&str> {
        let mut contexts = self.lineage.iter().filter(|r| r.starts_with("ctx://"));
        contexts.next().filter(|_| contexts.next().is_none())
    }
}
