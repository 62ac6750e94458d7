//! What a turn is held to beside its own evidence (`contracts.md` 2).
//!
//! Each block is optional and only checked where present; MutationReady is
//! stricter and demands some of them. Beside the five blocks that
//! implementations share, the blocks here are ours: the content of policies,
//! to which the call spec's digests bind, and the figures of gates. A verdict
//! and the facts that disagree with it fail closed, whichever way round.

mod governance;
mod scope;
mod tools;

pub use governance::{
    Counts, EvalConstraints, Lineage, Measures, MutationConstraints, Probe, RedTeamConstraints,
    RiskConstraints, SelfEvolutionConstraints, TokenCost, TraceConstraints,
};
pub use scope::{CompactionConstraints, GuardrailConstraints, ScopeConstraints};
pub use tools::ToolConstraints;

use super::block::block;
use super::word::OrchestrationRole;
use crate::failure::FailureClass;
use crate::json::read::{flag, given};
use serde_json::Number;
use std::collections::BTreeSet;

block! {
    /// The constraint blocks that are next to `evidence`.
    #[derive(Default)]
    pub struct Constraints {
        /// The governance claim and what its policy package is pinned to.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub governance_profile: Option<GovernanceProfile>,
        /// What is known about the transport.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub protocol_constraints: Option<ProtocolConstraints>,
        /// What a handoff must satisfy.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub handoff_constraints: Option<HandoffConstraints>,
        /// What is known about cut results.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub truncation_constraints: Option<TruncationConstraints>,
        /// What splitting the turn up must satisfy.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub decomposition_constraints: Option<DecompositionConstraints>,
        /// Catalog, examples and callers of tools (ours).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tool_constraints: Option<ToolConstraints>,
        /// Which guardrail stages must have decided (ours).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub guardrail_constraints: Option<GuardrailConstraints>,
        /// What a compaction must carry forward (ours).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub compaction_constraints: Option<CompactionConstraints>,
        /// What a role may read and write (ours).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub scope_constraints: Option<ScopeConstraints>,
        /// How the turn may be traced (ours).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub trace_constraints: Option<TraceConstraints>,
        /// The control profiles of risk tiers (ours).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub risk_constraints: Option<RiskConstraints>,
        /// The evaluation gate (ours).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub eval_constraints: Option<EvalConstraints>,
        /// The adversarial regression gate (ours).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub red_team_constraints: Option<RedTeamConstraints>,
        /// What a self-evolving change must supply (ours).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub self_evolution_constraints: Option<SelfEvolutionConstraints>,
        /// The authority that is active (ours).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub mutation_constraints: Option<MutationConstraints>,
    }
}

block! {
    /// The governance claim (`HARNESS-TYPESTATE 8`).
    #[derive(Default)]
    pub struct GovernanceProfile {
        /// The claim; any but [`GOVERNANCE_CLAIM`] is refused, claimed or not.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub claim_id: Option<String>,
        /// Whether the turn claims governance.
        pub claimed: bool,
        /// Where the policy comes from.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub policy_provenance: Option<PolicyProvenance>,
    }
}

impl GovernanceProfile {
    /// Returns whether the claim is the one that this contract knows, or none.
    pub(crate) fn claim_is_known(&self) -> bool {
        text(&self.claim_id).is_none_or(|claim| claim == GOVERNANCE_CLAIM)
    }

    /// Returns the expected and the bound digest of a package that is pinned.
    pub(crate) fn pinned(&self) -> Option<(&str, &str)> {
        let provenance = self.policy_provenance.as_ref()?;
        text(&provenance.package_ref).filter(|_| provenance.pinned)?;
        Some((
            text(&provenance.expected_digest)?,
            text(&provenance.bound_digest)?,
        ))
    }

    /// Returns the class by which the gate refuses every turn under this
    /// profile; `None` where it has nothing against it.
    pub fn fault(&self) -> Option<FailureClass> {
        if !self.claim_is_known() {
            return Some(FailureClass::GovernanceClaimIdInvalid);
        }
        if !self.claimed {
            return None;
        }
        match self.pinned() {
            None => Some(FailureClass::GovernancePolicyPackageUnpinned),
            Some((expected, bound)) if expected != bound => {
                Some(FailureClass::GovernancePolicyPackageMismatch)
            }
            Some(_) => None,
        }
    }
}

/// Returns an optional text trimmed, where anything is left.
pub(in crate::turn) fn text(text: &Option<String>) -> Option<&str> {
    text.as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

/// The only governance claim that this contract knows.
pub const GOVERNANCE_CLAIM: &str = "profile.doctrine_inf_governance.v0";

block! {
    /// Where a governance policy comes from.
    #[derive(Default)]
    pub struct PolicyProvenance {
        /// Whether the package is pinned.
        pub pinned: bool,
        /// The package.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub package_ref: Option<String>,
        /// The digest that it should have.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub expected_digest: Option<String>,
        /// The digest that it has.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub bound_digest: Option<String>,
    }
}

block! {
    /// What is known about the transport.
    #[derive(Default)]
    pub struct ProtocolConstraints {
        /// Whether calls and outputs came in the order that the policy demands.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub parallel_transport_order_valid: Option<bool>,
    }
}

block! {
    /// What a handoff must satisfy; binds also when none is given.
    #[derive(Default)]
    pub struct HandoffConstraints {
        /// Artifacts that must go with it.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        #[schemars(default)]
        pub required_artifact_refs: BTreeSet<String>,
        /// Who may take over; anybody where empty.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        #[schemars(default)]
        pub allowed_targets: BTreeSet<String>,
        /// Whether there must be a way back.
        #[serde(deserialize_with = "flag")]
        #[schemars(default)]
        pub require_return_path: bool,
        /// The artifacts that exist (ours); those required must be among them.
        #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
        pub available_artifact_refs: Option<BTreeSet<String>>,
        /// The roles that may hand over (ours); any where empty.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        #[schemars(default)]
        pub allowed_roles: BTreeSet<OrchestrationRole>,
        /// The contract that these constraints are taken from (ours); it must be
        /// the call spec's `handoffContractDigest`. Compared as it is: the writer
        /// of this block vouches that it is that contract's.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub contract_digest: Option<String>,
    }
}

block! {
    /// What is known about cut results.
    #[derive(Default)]
    pub struct TruncationConstraints {
        /// Whether the truncation policy applies.
        #[serde(deserialize_with = "flag")]
        #[schemars(default)]
        pub required: bool,
        /// Whether the policy was kept.
        #[serde(deserialize_with = "flag")]
        #[schemars(default)]
        pub valid: bool,
    }
}

block! {
    /// What splitting the turn up must satisfy.
    #[derive(Default)]
    pub struct DecompositionConstraints {
        /// Whether it is admitted at all.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub admissible: Option<bool>,
        /// The pattern that the turn must have.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub expected_execution_pattern: Option<String>,
        /// The decomposition policy that the turn must be bound to.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub expected_policy_digest: Option<String>,
        /// The most branches (ours).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub max_branches: Option<u64>,
        /// Whether anything beyond a workflow needs a measured trigger (ours).
        #[serde(deserialize_with = "flag", skip_serializing_if = "is_false")]
        #[schemars(default)]
        pub require_trigger: bool,
        /// The measured trigger (ours).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub trigger: Option<AutonomyTrigger>,
    }
}

block! {
    /// Why a turn was given more autonomy than a workflow has (ours).
    pub struct AutonomyTrigger {
        /// The metric of the trigger.
        pub metric: String,
        /// What the simpler way reached.
        pub baseline: Number,
        /// What this way reached; it must be more.
        pub measured: Number,
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is serde's"
)]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
