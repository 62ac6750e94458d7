//! The destination's part: its own gate, by its own policies. And what the
//! harness records of the whole.

use super::carry::{Carried, NotCarried, TransportWitness};
use super::profile::{Demand, WorldProfile};
use crate::authority::instruction::InstructionPolicy;
use crate::failure::FailureClass;
use crate::json::canonical::value_of;
use crate::json::id::{StepId, WorldId};
use crate::record::trajectory::CrossingResult;
use crate::turn::join_check::Verdict;
use crate::turn::{EvidenceError, JoinCheck, JoinCheckInput, ParsedInput, normalize};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// The kind of a [`GateWitness`].
pub(crate) const GATE_WITNESS_KIND: &str = "premath.world.gate_witness.v1";

/// What a destination judges by.
#[derive(Clone, Copy, Debug)]
pub struct DestinationGate<'a> {
    /// The world.
    pub world: &'a WorldProfile,
    /// The instruction policy that is active in it.
    pub policy: &'a InstructionPolicy,
}

/// What the destination's gate said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateWitness {
    #[schemars(schema_with = "crate::json::schema::one")]
    schema: u8,
    #[schemars(extend("const" = GATE_WITNESS_KIND))]
    witness_kind: &'static str,
    /// The class of the witness.
    #[schemars(extend("const" = "gate"))]
    witness_class: &'static str,
    /// The step whose turn it is.
    pub step_id: StepId,
    /// The world that the gate belongs to.
    pub world: WorldId,
    /// The digest of the instruction policy that is active there.
    pub policy_digest: String,
    /// The context that the turn was mapped to.
    pub mapped_context_ref: Option<String>,
    /// The turn's witness.
    pub turn_ref: String,
    /// The digest of the turn as the gate read it; null where it could not.
    pub join_set_digest: Option<String>,
    /// The verdict.
    pub result: Verdict,
    /// Why it was rejected, sorted.
    pub failure_classes: BTreeSet<FailureClass>,
    /// Why it could not be read.
    pub detail: Option<String>,
}

/// A turn that a transport carried and a gate judged.
#[derive(Debug)]
pub struct Judged {
    transport: TransportWitness,
    gate: GateWitness,
}

/// What the harness records of a crossing.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossing {
    /// The witness of the transport.
    pub transport: TransportWitness,
    /// What the gate said; `None` where it was not asked.
    pub gate: Option<GateWitness>,
}

impl Carried {
    /// Judges the turn by the destination's own gate.
    ///
    /// Its constraint blocks replace those that the turn brings; the turn must
    /// be bound to the policy that the crossing was taken under, and to a
    /// normaliser that is allowed here.
    pub fn judge(self, gate: &DestinationGate<'_>) -> Judged {
        let Self {
            witness: transport,
            input,
            policy_digest,
        } = self;
        let (join_set_digest, classes, detail) = match check(input, gate.world) {
            Err(error) => {
                let classes = [FailureClass::ToolSchemaInvalid].into();
                (None, classes, Some(error.to_string()))
            }
            Ok(check) => {
                let classes = gate.classes(&check, &policy_digest);
                let digest = check.witness.digests.join_set_digest;
                (Some(digest), classes, None)
            }
        };
        let gate = GateWitness {
            schema: 1,
            witness_kind: GATE_WITNESS_KIND,
            witness_class: "gate",
            step_id: transport.step_id.clone(),
            world: gate.world.world_id.clone(),
            policy_digest: gate.policy.policy_digest().to_owned(),
            mapped_context_ref: transport.mapped_context_ref.clone(),
            turn_ref: transport.turn_ref.clone(),
            join_set_digest,
            result: match classes.is_empty() {
                true => Verdict::Accepted,
                false => Verdict::Rejected,
            },
            failure_classes: classes,
            detail,
        };
        Judged { transport, gate }
    }
}

/// What a gate refuses a turn by, whatever its calls will be: the policies that
/// it is bound to, the claims, the risk tier.
const FORESEEABLE: [FailureClass; 7] = [
    FailureClass::GovernanceClaimIdInvalid,
    FailureClass::GovernancePolicyPackageMismatch,
    FailureClass::GovernancePolicyPackageUnpinned,
    FailureClass::GovernanceRiskTierProfileMissing,
    FailureClass::InstructionNormalizerNotAllowed,
    FailureClass::MutationCapabilityClaimMissing,
    FailureClass::MutationPolicyDigestMismatch,
];

impl DestinationGate<'_> {
    fn classes(&self, check: &JoinCheck, policy_digest: &str) -> BTreeSet<FailureClass> {
        let mut classes = check.failure_classes.clone();
        if self.world.require == Demand::ReadyForChange {
            classes.extend(check.mutation_failure_classes.iter().copied());
        }
        let bound = &check.normalized.call_spec;
        if bound.mutation_policy_digest != policy_digest {
            classes.insert(FailureClass::MutationPolicyDigestMismatch);
        }
        let normalizers = self.policy.allowed_normalizers();
        if !normalizers.contains(&bound.normalizer_id) {
            classes.insert(FailureClass::InstructionNormalizerNotAllowed);
        }
        classes
    }

    /// Returns why the gate will refuse a turn of which only the binding is known
    /// yet, before any of it is done; what depends on its calls is not among it.
    /// `policy_digest` is that of the crossing.
    pub fn foreseen(&self, turn: &JoinCheckInput, policy_digest: &str) -> BTreeSet<FailureClass> {
        let Ok(check) = check(value_of(turn), self.world) else {
            return BTreeSet::new();
        };
        let mut classes = self.classes(&check, policy_digest);
        classes.retain(|class| FORESEEABLE.contains(class));
        classes
    }
}

fn check(mut input: Value, world: &WorldProfile) -> Result<JoinCheck, EvidenceError> {
    if let Some(blocks) = input.as_object_mut() {
        for (name, block) in &world.constraints {
            // The evidence is the turn's own.
            if name != "evidence" {
                blocks.insert(name.clone(), block.clone());
            }
        }
    }
    let input = ParsedInput::from_value(input)?.input;
    let normal = normalize(input.evidence)?;
    Ok(JoinCheck::of(normal, &input.constraints))
}

impl From<Judged> for Crossing {
    fn from(judged: Judged) -> Self {
        Self {
            transport: judged.transport,
            gate: Some(judged.gate),
        }
    }
}

impl From<NotCarried> for Crossing {
    fn from(lost: NotCarried) -> Self {
        Self {
            transport: lost.witness().clone(),
            gate: None,
        }
    }
}

impl Crossing {
    /// Returns how the crossing ended.
    pub fn result(&self) -> CrossingResult {
        match &self.gate {
            None => CrossingResult::TransportFailed,
            Some(gate) if gate.result == Verdict::Accepted => CrossingResult::Accepted,
            Some(_) => CrossingResult::Rejected,
        }
    }

    /// Returns the classes: the gate's where it was asked, else the transport's.
    pub fn failure_classes(&self) -> &BTreeSet<FailureClass> {
        match &self.gate {
            Some(gate) => &gate.failure_classes,
            None => &self.transport.failure_classes,
        }
    }
}
