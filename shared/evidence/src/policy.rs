//! The policies that a turn of the harness's own is bound to.

use indexmap::IndexSet;
use premath_kernel::authority::StepIdentity;
use premath_kernel::json::canonical;
use premath_kernel::turn::mutation::{session_ref, trajectory_ref};
use premath_kernel::turn::{
    ActionMode, CallSpecRow, Evidence, ExecutionPattern, GovernanceProfile, ProtocolState,
    QueueRow, RenderRow, StateViewRow,
};
use serde_json::json;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The digests that are in a turn's call spec, each over the text of the rule
/// that this crate follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnPolicies {
    /// The active mutation policy's digest.
    pub mutation: String,
    /// The governance profile, where the repository claims it.
    pub profile: Option<GovernanceProfile>,
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
        "policy": "premath.harness.render.v1",
        "operatorPayload": "digest of exit and output streams",
        "reminder": "digest of exit and failure class",
        "injectionPoint": "tool_response",
    }))
}

fn queue_policy() -> String {
    canonical::digest(&json!({
        "policy": "premath.harness.reminder_queue.v1",
        "reduction": "the failure class of every failed call, in call order, each once",
    }))
}

fn view_policy() -> String {
    canonical::digest(&json!({
        "policy": "premath.harness.state_view.v1",
        "view": "the end of every call, by call id",
    }))
}

fn agent_queue_policy() -> String {
    canonical::digest(&json!({
        "policy": "premath.harness.agent_reminder_queue.v1",
        "queue/step": "the failure class of every failed call, in call order, each once",
        "queue/agent": "a fold over the agent's events: the class of every failed call, in the order of their ends, each once; how often the provider was asked again; the limit that it refuses by; how many warnings there were",
    }))
}

fn agent_view_policy() -> String {
    canonical::digest(&json!({
        "policy": "premath.harness.agent_state_view.v1",
        "state/step": "the end of every call, by call id",
        "state/agent": "a fold over the agent's events: the end of every call by the agent's id, session, model, messages, spending, unknown types, terminal event, and the digest over all lines",
    }))
}

/// Binds a turn to the folds over the streams of an agent, and adds what they
/// gave: of each round the digests of its state and of its queue.
pub(crate) fn bind_agent_folds(evidence: &mut Evidence, rounds: &[(String, String)]) {
    let (queue, view) = (agent_queue_policy(), agent_view_policy());
    for (number, (view_digest, queue_digest)) in (1..).zip(rounds) {
        let round = match number {
            1 => String::new(),
            later => format!("-{later}"),
        };
        evidence.reminder_queue.push(QueueRow {
            queue_id: format!("queue/agent{round}"),
            reduced_digest: queue_digest.clone(),
            policy_digest: String::new(),
        });
        evidence.state_views.push(StateViewRow {
            view_id: format!("state/agent{round}"),
            view_digest: view_digest.clone(),
            policy_digest: String::new(),
            source_refs: evidence.trajectory_refs.clone(),
        });
    }
    for row in &mut evidence.reminder_queue {
        row.policy_digest.clone_from(&queue);
    }
    for row in &mut evidence.state_views {
        row.policy_digest.clone_from(&view);
    }
    evidence.call_spec.reminder_queue_policy_digest = queue;
    evidence.call_spec.state_view_policy_digest = view;
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

/// Starts the evidence of a turn: its binding, and the render rows, queue
/// reduction and state view that are folds over its calls.
pub(crate) fn evidence_of(
    step: &StepIdentity,
    call_id: &str,
    model_ref: &str,
    normalizer_id: &str,
    policies: &TurnPolicies,
    calls: &[Seen<'_>],
) -> Evidence {
    let call_spec = CallSpecRow {
        call_id: call_id.to_owned(),
        model_ref: model_ref.to_owned(),
        action_mode: ActionMode::Code,
        execution_pattern: ExecutionPattern::Chain,
        normalizer_id: normalizer_id.to_owned(),
        mutation_policy_digest: policies.mutation.clone(),
        governance_policy_digest: policies.governance(),
        tool_render_protocol_digest: render_policy(),
        reminder_queue_policy_digest: queue_policy(),
        state_view_policy_digest: view_policy(),
        decomposition_policy_digest: decomposition_policy(),
        text_adapter_profile: None,
        ..CallSpecRow::default()
    };
    let mut evidence = Evidence::new(call_spec, ProtocolState::ended("end_turn"));
    evidence.tool_render = calls
        .iter()
        .map(|call| RenderRow {
            tool_call_id: call.call_id.to_owned(),
            operator_payload_digest: call.result_digest.to_string(),
            reminder_render_digest: canonical::digest(&json!({"failureClass": call.failure})),
            injection_point: "tool_response".to_owned(),
            policy_digest: render_policy(),
        })
        .collect();
    let failures = calls.iter().filter_map(|call| call.failure);
    let reminders: IndexSet<&str> = failures.collect();
    let reminders: Vec<&str> = reminders.into_iter().collect();
    evidence.reminder_queue = vec![QueueRow {
        queue_id: "queue/step".to_owned(),
        reduced_digest: canonical::digest(&reminders),
        policy_digest: queue_policy(),
    }];
    let view: BTreeMap<&str, &str> = calls
        .iter()
        .map(|call| (call.call_id, call.failure.unwrap_or("ok")))
        .collect();
    let trajectory = trajectory_ref(step);
    evidence.state_views = vec![StateViewRow {
        view_id: "state/step".to_owned(),
        view_digest: canonical::digest(&view),
        policy_digest: view_policy(),
        source_refs: BTreeSet::from([trajectory.clone()]),
    }];
    evidence.session_refs = BTreeSet::from([session_ref(step)]);
    evidence.trajectory_refs = BTreeSet::from([trajectory]);
    evidence
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
            };
            policies.governance()
        };
        assert_eq!(bound(Some("sha256:package")), "sha256:package");
        let none = TurnPolicies {
            mutation: "pol1_m".to_owned(),
            profile: None,
        };
        assert_eq!(none.governance(), bound(None));
        assert!(none.governance().starts_with("sha256:"));
    }
}
