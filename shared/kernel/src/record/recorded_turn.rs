//! A turn that was judged before, judged again for a change that is asked for
//! under an instruction (`contracts.md` 8).

use super::audit::{WitnessRef, digest_of};
use super::trajectory::{StepRow, action};
use crate::authority::{InstructedSurface, StepIdentity};
use crate::failure::{FailureClass, causes_first};
use crate::issue::lease::LeaseRefusal;
use crate::turn::{
    AddEdge, Block, CallSpec, Close, GatedChange, GovernanceProfile, JoinCheckInput,
    MutationBinding, MutationKind, MutationReady, ParsedInput, RemoveEdge, ReplaceEdge,
};
use serde::Deserialize;
use serde_json::Value;

/// Refuses a turn that is not a record of the harness.
fn refuse<T>(detail: impl Into<String>) -> Result<T, LeaseRefusal> {
    Err(LeaseRefusal {
        class: FailureClass::MutationUseEvidenceMissing,
        detail: detail.into(),
    })
}

/// A turn as its witness records it.
#[derive(Debug)]
pub struct RecordedTurn {
    reference: String,
    facts: TurnFacts,
    input: JoinCheckInput,
    /// The branch with work that did not land.
    salvage: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TurnFacts {
    step: StepIdentity,
    verification_call_id: Option<String>,
    instruction_ref: Option<String>,
    admitted: Vec<String>,
}

impl RecordedTurn {
    /// Reads a turn from its witness, which a row of the trajectory must name.
    ///
    /// # Errors
    ///
    /// [`LeaseRefusal`]: no row of a step names the witness, or the document is
    /// not the one that the row names.
    pub fn read<'a>(
        reference: &WitnessRef,
        document: &Value,
        rows: impl IntoIterator<Item = &'a StepRow>,
    ) -> Result<Self, LeaseRefusal> {
        let step_id = &reference.step_id;
        let is_named = |row: &&StepRow| {
            let of_step = [action::WORKER_LOOP, action::ESCALATION].contains(&&*row.action);
            let mut refs = row.witness_refs.iter();
            of_step
                && row.step_id == *step_id
                && refs.any(|text| WitnessRef::parse(text).as_ref() == Some(reference))
        };
        let Some(row) = rows.into_iter().find(is_named) else {
            return refuse(format!("no row of step {step_id} names this turn"));
        };
        if digest_of(document) != reference.digest {
            return refuse("the witness of the turn is not the one that the row names");
        }
        if row.world.is_some() {
            return refuse("the turn belongs to another repository");
        }
        let facts = TurnFacts::deserialize(document);
        let input = ParsedInput::from_value(document["input"].clone());
        let (Ok(facts), Ok(input)) = (facts, input) else {
            return refuse("the witness of the turn cannot be read");
        };
        if facts.step.step_id() != *step_id || row.issue_id.as_ref() != Some(&facts.step.issue_id) {
            return refuse("the witness and the row of the turn name different steps");
        }
        Ok(Self {
            reference: format!("step {step_id}"),
            facts,
            input: input.input,
            salvage: row.salvage.clone(),
        })
    }

    /// Has the turn judged for one change, against the instruction, the policy and the
    /// governance profile that are in force now.
    ///
    /// # Errors
    ///
    /// [`LeaseRefusal`] with the first class that the gate refuses it with, or
    /// because the turn did not admit the change when it was made.
    pub fn admit(
        &self,
        change: &str,
        surface: &InstructedSurface,
        governance: Option<GovernanceProfile>,
    ) -> Result<GatedChange, LeaseRefusal> {
        let facts = &self.facts;
        if !facts.admitted.iter().any(|admitted| admitted == change) {
            let admitted = match facts.admitted.as_slice() {
                [] => "no change".to_owned(),
                admitted => admitted.join(", "),
            };
            return refuse(format!(
                "the turn of {} admits {admitted}, not {change}",
                self.reference
            ));
        }
        if change == Close::NAME
            && let Some(branch) = &self.salvage
        {
            return refuse(format!(
                "the work of {} did not land; it is on {branch}",
                self.reference
            ));
        }
        let mut input = self.input.clone();
        if governance.is_some() {
            input.constraints.governance_profile = governance;
        }
        match change {
            Close::NAME => self.right(surface, &input).map(GatedChange::Close),
            Block::NAME => self.right(surface, &input).map(GatedChange::Block),
            AddEdge::NAME => self.right(surface, &input).map(GatedChange::AddEdge),
            RemoveEdge::NAME => self.right(surface, &input).map(GatedChange::RemoveEdge),
            ReplaceEdge::NAME => self.right(surface, &input).map(GatedChange::ReplaceEdge),
            _ => refuse(format!("no turn admits {change} under an instruction")),
        }
    }

    fn right<C: MutationKind>(
        &self,
        surface: &InstructedSurface,
        input: &JoinCheckInput,
    ) -> Result<MutationReady<C>, LeaseRefusal> {
        let link = surface.link();
        let binding = MutationBinding {
            step: self.facts.step.clone(),
            mutation_policy_digest: link.policy_digest().to_owned(),
            claims: link.claims().clone(),
            verification: self.facts.verification_call_id.clone(),
            // The turn of an escalation has the harness's own.
            normalizer: (C::NAME != Block::NAME).then(|| link.normalizer_id().to_owned()),
            instruction_ref: self.facts.instruction_ref.clone(),
        };
        let turn = CallSpec::bind(input).map_err(|error| LeaseRefusal {
            class: error.class(),
            detail: error.to_string(),
        })?;
        turn.admitted::<C>(&binding).map_err(|classes| {
            let first = causes_first(&classes).into_iter().next();
            LeaseRefusal {
                class: first.unwrap_or(FailureClass::MutationUseEvidenceMissing),
                detail: format!(
                    "the gate does not admit {} by the turn of {}",
                    C::NAME,
                    self.reference
                ),
            }
        })
    }
}
