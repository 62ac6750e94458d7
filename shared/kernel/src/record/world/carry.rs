//! The transport's part: it maps a context from one world to another and says
//! how that went. It judges no turn.

use super::context::WorkContext;
use super::profile::{TURN_ADMISSION, WorldProfile};
use crate::failure::FailureClass;
use crate::json::canonical;
use crate::json::id::{StepId, WorldId};
use crate::json::reference::RefSet;
use crate::json::token::encode;
use crate::turn::{JoinCheck, JoinCheckInput, ParsedInput, normalize};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The kind of a [`TransportWitness`].
pub(crate) const TRANSPORT_WITNESS_KIND: &str = "premath.world.transport_witness.v1";

/// The outcome of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TransportOutcome {
    /// The context is there.
    Carried,
    /// It is not, and no gate was asked.
    Failed,
}

/// The witness of a transport.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransportWitness {
    #[schemars(schema_with = "crate::json::schema::one")]
    schema: u8,
    #[schemars(extend("const" = TRANSPORT_WITNESS_KIND))]
    witness_kind: &'static str,
    /// The class of the witness.
    #[schemars(extend("const" = "transport"))]
    witness_class: &'static str,
    /// The transport, as in `transport.local_root.v1`.
    pub transport_id: String,
    /// The step whose turn it is.
    pub step_id: StepId,
    /// The world that it comes from; null if it is not a world.
    pub from_world: Option<WorldId>,
    /// The world that it goes to; null if it is not a world.
    pub to_world: Option<WorldId>,
    /// The outcome of the transport.
    pub outcome: TransportOutcome,
    /// The failure classes of the transport, sorted.
    pub failure_classes: BTreeSet<FailureClass>,
    /// Why it failed, for a person.
    pub detail: Option<String>,
    /// The turn's witness.
    pub turn_ref: String,
    /// The context that the turn was made in; null where none is resolved.
    pub context_ref: Option<String>,
    /// The context that it is mapped to; null where it was not.
    pub mapped_context_ref: Option<String>,
    /// The site lineage.
    pub lineage_refs: RefSet,
}

/// A turn that a transport has carried to a world.
#[derive(Debug)]
#[must_use = "what is carried is judged"]
pub struct Carried {
    pub(super) witness: TransportWitness,
    pub(super) input: Value,
    pub(super) policy_digest: String,
}

/// A turn that a transport has not carried: there is no gate that it could go to.
#[derive(Clone, Debug, PartialEq)]
pub struct NotCarried {
    witness: Box<TransportWitness>,
}

/// One thing that keeps a transport from mapping a context.
struct Fault(FailureClass, String);

impl Carried {
    /// Returns the transport's witness.
    pub const fn witness(&self) -> &TransportWitness {
        &self.witness
    }

    /// Makes the transport one that failed: no gate was reached, or its answer
    /// is unknown.
    pub fn lost(self, detail: impl Into<String>) -> NotCarried {
        let mut witness = self.witness;
        witness.outcome = TransportOutcome::Failed;
        witness.failure_classes = [FailureClass::TransportContextUnresolved].into();
        witness.detail = Some(detail.into());
        let witness = Box::new(witness);
        NotCarried { witness }
    }
}

impl NotCarried {
    /// Returns the transport's witness.
    pub fn witness(&self) -> &TransportWitness {
        &self.witness
    }
}

impl WorkContext {
    /// Maps the context from one world to another; `policy_digest` is that of
    /// the policy which is active in the world that it comes from. A world
    /// that cannot be read is given with the reason.
    ///
    /// # Errors
    ///
    /// [`NotCarried`], with every class that refuses it.
    pub(crate) fn carry(
        self,
        transport_id: &str,
        from: Result<&WorldProfile, &str>,
        to: Result<&WorldProfile, &str>,
        policy_digest: &str,
    ) -> Result<Carried, NotCarried> {
        let faults = self.faults(from, to, policy_digest);
        let [from_world, to_world] =
            [from, to].map(|world| world.ok().map(|world| world.world_id.clone()));
        let context = self.context_ref().map(str::to_owned);
        let mapped = match (&context, &from_world, &to_world) {
            (Some(context), Some(from), Some(to)) if faults.is_empty() => {
                Some(self.mapped_ref(context, from, to, transport_id))
            }
            _ => None,
        };
        let details: Vec<String> = faults.iter().map(|fault| fault.1.clone()).collect();
        let witness = TransportWitness {
            schema: 1,
            witness_kind: TRANSPORT_WITNESS_KIND,
            witness_class: "transport",
            transport_id: transport_id.to_owned(),
            step_id: self.step_id,
            from_world,
            to_world,
            outcome: match faults.is_empty() {
                true => TransportOutcome::Carried,
                false => TransportOutcome::Failed,
            },
            failure_classes: faults.iter().map(|fault| fault.0).collect(),
            detail: (!details.is_empty()).then(|| details.join("; ")),
            turn_ref: self.turn_ref,
            context_ref: context,
            mapped_context_ref: mapped,
            lineage_refs: self.lineage,
        };
        if witness.outcome == TransportOutcome::Failed {
            let witness = Box::new(witness);
            return Err(NotCarried { witness });
        }
        Ok(Carried {
            witness,
            input: self.input,
            policy_digest: policy_digest.to_owned(),
        })
    }

    /// Returns every reason to refuse a crossing.
    fn faults(
        &self,
        from: Result<&WorldProfile, &str>,
        to: Result<&WorldProfile, &str>,
        policy_digest: &str,
    ) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut unresolved = |detail: String| {
            faults.push(Fault(FailureClass::TransportContextUnresolved, detail));
        };
        if let Err(detail) = from {
            unresolved(format!("the world that the turn comes from: {detail}"));
        }
        if let Err(detail) = to {
            unresolved(format!("the world that it goes to: {detail}"));
        }
        if self.context_ref().is_none() {
            unresolved(format!(
                "no row of step {} names one context of it",
                self.step_id
            ));
        }
        faults.extend(self.unverifiable());
        if let (Ok(from), Ok(to)) = (from, to) {
            faults.extend(uncomposable(&self.lineage, from, to, policy_digest));
        }
        faults
    }

    /// Returns the reference of a context in the world that it is mapped to.
    fn mapped_ref(
        &self,
        context: &str,
        from: &WorldId,
        to: &WorldId,
        transport_id: &str,
    ) -> String {
        let digest = canonical::ref_digest(&json!({
            "kind": "world",
            "ctxRef": context,
            "fromWorld": from,
            "toWorld": to,
            "transportId": transport_id,
            "turnRef": self.turn_ref,
        }));
        format!("world://{}/{}/{digest}", encode(from), encode(to))
    }

    /// The witness must be the one that the step's row names, and report about
    /// its turn what the turn says itself.
    fn unverifiable(&self) -> Option<Fault> {
        let class = FailureClass::TransportWitnessUnverifiable;
        if !self.witnesses.contains(&self.turn_ref) {
            let detail = format!("no row of step {} names {}", self.step_id, self.turn_ref);
            return Some(Fault(class, detail));
        }
        let digest =
            ParsedInput::from_value(self.input.clone()).and_then(|parsed| digest(parsed.input));
        match digest {
            Ok(digest) if Some(&digest) == self.recorded_digest.as_ref() => None,
            Ok(digest) => {
                let detail = format!("the turn's digest is {digest}, and its witness says another");
                Some(Fault(class, detail))
            }
            Err(error) => Some(Fault(class, format!("the turn cannot be read: {error}"))),
        }
    }
}

/// What keeps two worlds from being joined by a map.
fn uncomposable(
    lineage: &RefSet,
    from: &WorldProfile,
    to: &WorldProfile,
    policy_digest: &str,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    let back = format!("world://{}/", encode(&to.world_id));
    if from.world_id == to.world_id {
        let detail = format!("both worlds are {}", to.world_id);
        faults.push(Fault(FailureClass::TransportNonComposable, detail));
    } else if lineage.iter().any(|part| part.starts_with(&back)) {
        let detail = format!("the turn came from {} in the first place", to.world_id);
        faults.push(Fault(FailureClass::TransportNonComposable, detail));
    }
    if !to.offers.contains(TURN_ADMISSION) {
        let detail = format!("{} does not offer {TURN_ADMISSION}", to.world_id);
        faults.push(Fault(FailureClass::WorldCapabilityMismatch, detail));
    }
    if !to.takes(&from.world_id, policy_digest) {
        let detail = format!(
            "{} takes no turns of {} that were made under {policy_digest}",
            to.world_id, from.world_id
        );
        faults.push(Fault(FailureClass::WorldPolicyMismatch, detail));
    }
    faults
}

/// Returns whether work that is done in another world could come to its gate:
/// what a step looks at before any of it is done. Its own crossing asks again,
/// and has the classes.
pub fn may_be_placed(
    lineage: &RefSet,
    from: &WorldProfile,
    to: &WorldProfile,
    policy_digest: &str,
) -> bool {
    uncomposable(lineage, from, to, policy_digest).is_empty()
}

fn digest(input: JoinCheckInput) -> Result<String, crate::turn::EvidenceError> {
    let check = JoinCheck::of(normalize(input.evidence)?, &input.constraints);
    Ok(check.witness.digests.join_set_digest)
}
