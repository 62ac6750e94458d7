//! What a turn is bound to before it begins (`HARNESS-TYPESTATE 3.1`,
//! `TOOL-CALLING-HARNESS-TYPESTATE 4.1`).

use super::super::block::block;
use super::super::pattern::ExecutionPattern;
use super::super::word::{
    ActionMode, ObservabilityMode, OrchestrationRole, PreContextFilter, RiskTier, ToolChoice,
};
use super::policy::{
    BoundaryPolicy, ParallelPolicy, Policy, ProtocolStatePolicy, StopPolicy, ToolPolicy,
    TransportPolicy, TruncationPolicy,
};
use crate::json::read::unless_blank;

block! {
    /// The binding of a turn: eleven required fields, and what else was fixed,
    /// each of which enters the digest only where present.
    ///
    /// A `…Digest` is `D` of a policy's content (`contracts.md` 1); where a
    /// constraint block shows that content, its digest must be the bound one.
    #[derive(Default)]
    pub struct CallSpecRow {
        /// The turn's identity.
        pub call_id: String,
        /// The model and its version.
        pub model_ref: String,
        /// The form in which the model acts.
        pub action_mode: ActionMode,
        /// How the turn is arranged.
        pub execution_pattern: ExecutionPattern,
        /// The normalisation contract of the output.
        pub normalizer_id: String,
        /// The mutation policy that the turn expects to be active.
        pub mutation_policy_digest: String,
        /// The governance policy package.
        pub governance_policy_digest: String,
        /// How tool outputs are shown.
        pub tool_render_protocol_digest: String,
        /// The digest of the policy for reminder queues.
        pub reminder_queue_policy_digest: String,
        /// The digest of the policy for state views.
        pub state_view_policy_digest: String,
        /// When work may be split up.
        pub decomposition_policy_digest: String,
        /// The adapter that makes structured calls of text (ours); without one,
        /// tool calls in text mode are refused.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub text_adapter_profile: Option<String>,
        /// How free the model was in its choice of tools.
        #[serde(deserialize_with = "unless_blank", skip_serializing_if = "Option::is_none")]
        pub tool_choice: Option<ToolChoice>,
        /// Which tools may be called.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tool_policy: Option<Policy<ToolPolicy>>,
        /// Every tool that can be discovered.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tool_catalog_digest: Option<String>,
        /// Which of them are loaded only when they are searched for.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub defer_policy_digest: Option<String>,
        /// The usage examples of tools.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tool_example_digest: Option<String>,
        /// Who may call which tool.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub allowed_callers_digest: Option<String>,
        /// Whether tools may filter before the model sees anything.
        #[serde(deserialize_with = "unless_blank", skip_serializing_if = "Option::is_none")]
        pub pre_context_filter_policy: Option<PreContextFilter>,
        /// The benchmark profile that changes of defaults are measured by.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub eval_profile_ref: Option<String>,
        /// Whether calls may run side by side.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub parallel_policy: Option<Policy<ParallelPolicy>>,
        /// How calls and outputs are transported.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tool_transport_policy: Option<Policy<TransportPolicy>>,
        /// How results may be cut.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tool_response_truncation_policy: Option<Policy<TruncationPolicy>>,
        /// Where edits are made, and what the shell may do.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub execution_boundary_policy: Option<Policy<BoundaryPolicy>>,
        /// The sandbox profile that shell commands run under.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub runtime_sandbox_ref: Option<String>,
        /// What a compaction carries forward.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub compaction_policy_digest: Option<String>,
        /// Which guardrails decide at which stage.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub guardrail_stage_policy_digest: Option<String>,
        /// The thresholds of the evaluation gate.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub eval_gate_policy_digest: Option<String>,
        /// The adversarial regression policy.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub red_team_policy_digest: Option<String>,
        /// How the run is traced.
        #[serde(deserialize_with = "unless_blank", skip_serializing_if = "Option::is_none")]
        pub observability_mode: Option<ObservabilityMode>,
        /// The risk tier, which needs a bound control profile.
        #[serde(deserialize_with = "unless_blank", skip_serializing_if = "Option::is_none")]
        pub risk_tier: Option<RiskTier>,
        /// The role of the agent.
        #[serde(deserialize_with = "unless_blank", skip_serializing_if = "Option::is_none")]
        pub orchestration_role: Option<OrchestrationRole>,
        /// What that role may read and write.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub context_scope_digest: Option<String>,
        /// The contract of a transfer.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub handoff_contract_digest: Option<String>,
        /// When the loop must stop.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub stop_policy: Option<Policy<StopPolicy>>,
        /// Which stop reasons are handled.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub protocol_state_policy: Option<Policy<ProtocolStatePolicy>>,
    }
}
