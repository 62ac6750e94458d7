//! The policies that a turn of the harness's own is bound to.

use premath_kernel::authority::StepIdentity;
use premath_kernel::json::canonical;
use premath_kernel::policy::turn::TurnPolicy;
use premath_kernel::record::turn_context::TurnContext;
use premath_kernel::turn::mutation::{session_ref, trajectory_ref};
use premath_kernel::turn::word::{RiskTier, ToolChoice};
use premath_kernel::turn::{
    ActionMode, CallSpecRow, Evidence, ExecutionPattern, GovernanceProfile, ProtocolState,
    QueueRow, RenderRow, StateViewRow,
};
use serde_json::json;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The digests that are in a turn's call spec, each over the text of the rule
/// that this crate follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnPolicies {
    /// The active mutation policy's digest.
    pub mutation: String,
    /// The governance profile, where the repository claims it.
    pub profile: Option<GovernanceProfile>,
    /// The turn policy, where an agent may work.
    pub turn: Option<Arc<TurnPolicy>>,
    /// What the turn policy demands of this step.
    pub demand: StepDemand,
}

/// What a step is, as far as the turn policy demands something of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepDemand {
    /// The risk tier of its issue, where the policy has tiers.
    pub tier: Option<RiskTier>,
    /// The control profiles that its work meets, by tier.
    pub profiles: BTreeMap<RiskTier, String>,
    /// The files that it changed, from the worktree's root.
    pub changed: BTreeSet<String>,
}

impl TurnPolicies {
    /// Returns the digest of the governance package as it was read; where no
    /// package is bound, that of this fact.
    fn governance(&self) -> String {
        let profile = self.profile.as_ref();
        let bound =
            profile.and_then(|profile| profile.policy_provenance.as_ref()?.bound_digest.clone());
        bound.unwrap_or_else(|| canonical::digest(&json!({"governancePackage": null})))
    }
}

fn render_policy() -> String {
    canonical::digest(&json!({
        "policy": "premath.harness.render.v3",
        "operatorPayload": "digest of the result: of a command its exit and output streams",
        "reminder": "the rule and the reason by which the harness denied the call, as the model received them; the digest of the operator's text that the hook of its end was answered with, where hooks have ids of calls; null where there is neither",
        "injectionPoint": "tool_response",
    }))
}

fn queue_policy() -> String {
    canonical::digest(&json!({
        "policy": "premath.harness.reminder_queue.v3",
        "queue/step": "the failure class of every failed call, in call order, each once",
        "queue/denials": "the rule and the reason of every denied call, sorted, each once",
        "queue/operator": "the digest of each text of the operator that a hook was answered with, in order",
        "queue/agent": "a fold over the agent's events: the class of every failed call, in the order of their ends, each once; how often the provider was asked again; the limit that it refuses by; how many warnings there were",
    }))
}

fn view_policy() -> String {
    canonical::digest(&json!({
        "policy": "premath.harness.state_view.v2",
        "state/step": "the end of every call, by call id",
        "state/agent": "a fold over the agent's events: the end of every call by the agent's id, session, model, messages, spending, unknown types, terminal event, and the digest over all lines",
    }))
}

fn decomposition_policy() -> String {
    canonical::digest(&json!({
        "policy": "premath.harness.decomposition.v1",
        "split": "never: one step is one chain of calls",
    }))
}

/// One call as the folds over a turn see it.
pub(crate) struct Seen<'a> {
    pub(crate) call_id: &'a str,
    pub(crate) result_digest: Cow<'a, str>,
    pub(crate) failure: Option<&'a str>,
}

/// What a turn is called, and by whom it was made.
pub(crate) struct TurnHead<'a> {
    pub(crate) step: &'a StepIdentity,
    pub(crate) call_id: &'a str,
    pub(crate) model_ref: &'a str,
    pub(crate) normalizer_id: &'a str,
    pub(crate) policies: &'a TurnPolicies,
}

impl TurnHead<'_> {
    /// Starts the evidence of a turn: its binding, and the rows of its context.
    pub(crate) fn evidence(&self, calls: &[Seen<'_>], context: &TurnContext) -> Evidence {
        let call_spec = CallSpecRow {
            call_id: self.call_id.to_owned(),
            model_ref: self.model_ref.to_owned(),
            action_mode: ActionMode::Code,
            execution_pattern: ExecutionPattern::Chain,
            // The harness names every command that it runs.
            tool_choice: Some(ToolChoice::Specific),
            normalizer_id: self.normalizer_id.to_owned(),
            mutation_policy_digest: self.policies.mutation.clone(),
            governance_policy_digest: self.policies.governance(),
            tool_render_protocol_digest: render_policy(),
            reminder_queue_policy_digest: queue_policy(),
            state_view_policy_digest: view_policy(),
            decomposition_policy_digest: decomposition_policy(),
            text_adapter_profile: None,
            ..CallSpecRow::default()
        };
        let mut evidence = Evidence::new(call_spec, ProtocolState::ended("end_turn"));
        evidence.session_refs = BTreeSet::from([session_ref(self.step)]);
        evidence.trajectory_refs = BTreeSet::from([trajectory_ref(self.step)]);
        add_context(&mut evidence, calls, context);
        evidence
    }
}

/// Adds the rows of a turn's context.
fn add_context(evidence: &mut Evidence, calls: &[Seen<'_>], context: &TurnContext) {
    let renders = calls.iter().map(|call| RenderRow {
        tool_call_id: call.call_id.to_owned(),
        operator_payload_digest: call.result_digest.to_string(),
        reminder_render_digest: context.reminder_digest(call.call_id),
        injection_point: "tool_response".to_owned(),
        policy_digest: render_policy(),
    });
    evidence.tool_render = renders.collect();
    let queues = context.queues.iter().map(|(queue_id, content)| QueueRow {
        queue_id: queue_id.clone(),
        reduced_digest: canonical::digest(content),
        policy_digest: queue_policy(),
    });
    evidence.reminder_queue = queues.collect();
    let views = context.views.iter().map(|(view_id, content)| StateViewRow {
        view_id: view_id.clone(),
        view_digest: canonical::digest(content),
        policy_digest: view_policy(),
        source_refs: evidence.trajectory_refs.clone(),
    });
    evidence.state_views = views.collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use premath_kernel::turn::PolicyProvenance;

    #[test]
    fn a_turn_is_bound_to_the_governance_package_and_to_nothing_in_its_place() {
        let bound = |digest: Option<&str>| {
            let provenance = PolicyProvenance {
                pinned: true,
                package_ref: None,
                expected_digest: None,
                bound_digest: digest.map(str::to_owned),
            };
            let profile = GovernanceProfile {
                claim_id: None,
                claimed: true,
                policy_provenance: Some(provenance),
            };
            let policies = TurnPolicies {
                mutation: "pol1_m".to_owned(),
                profile: Some(profile),
                turn: None,
                demand: StepDemand::default(),
            };
            policies.governance()
        };
        assert_eq!(bound(Some("sha256:package")), "sha256:package");
        let none = TurnPolicies {
            mutation: "pol1_m".to_owned(),
            profile: None,
            turn: None,
            demand: StepDemand::default(),
        };
        assert_eq!(none.governance(), bound(None));
        assert!(none.governance().starts_with("sha256:"));
    }
}
