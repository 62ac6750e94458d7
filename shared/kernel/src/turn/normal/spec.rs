//! The normal form of a call spec (`TOOL-CALLING-HARNESS-TYPESTATE 4.1`).

use super::super::evidence::{
    BoundaryPolicy, CallSpecRow, FurtherBinding, Policy, ToolPolicy, ToolRule, TruncationPolicy,
};
use super::super::path::{EvidenceError, Path};
use super::rows::{RowKind, set};
use super::text::{optional, refs, required, trimmed};
use crate::json::strict::excerpt;

pub(super) fn call_spec(row: CallSpecRow, at: &Path<'_>) -> Result<CallSpecRow, EvidenceError> {
    let digest = |text: String, name: &'static str| required(text, at, name);
    Ok(CallSpecRow {
        call_id: required(row.call_id, at, "callId")?,
        model_ref: required(row.model_ref, at, "modelRef")?,
        action_mode: row.action_mode,
        execution_pattern: row.execution_pattern,
        normalizer_id: required(row.normalizer_id, at, "normalizerId")?,
        mutation_policy_digest: digest(row.mutation_policy_digest, "mutationPolicyDigest")?,
        governance_policy_digest: digest(row.governance_policy_digest, "governancePolicyDigest")?,
        tool_render_protocol_digest: digest(
            row.tool_render_protocol_digest,
            "toolRenderProtocolDigest",
        )?,
        reminder_queue_policy_digest: digest(
            row.reminder_queue_policy_digest,
            "reminderQueuePolicyDigest",
        )?,
        state_view_policy_digest: digest(row.state_view_policy_digest, "stateViewPolicyDigest")?,
        decomposition_policy_digest: digest(
            row.decomposition_policy_digest,
            "decompositionPolicyDigest",
        )?,
        text_adapter_profile: optional(row.text_adapter_profile),
        further: further(row.further, at)?,
    })
}

fn further(row: FurtherBinding, at: &Path<'_>) -> Result<FurtherBinding, EvidenceError> {
    Ok(FurtherBinding {
        tool_choice: row.tool_choice,
        tool_policy: policy(row.tool_policy, |tools| {
            tool_policy(tools, &at.field("toolPolicy"))
        })?,
        tool_catalog_digest: optional(row.tool_catalog_digest),
        defer_policy_digest: optional(row.defer_policy_digest),
        tool_example_digest: optional(row.tool_example_digest),
        allowed_callers_digest: optional(row.allowed_callers_digest),
        pre_context_filter_policy: row.pre_context_filter_policy,
        eval_profile_ref: optional(row.eval_profile_ref),
        parallel_policy: policy(row.parallel_policy, Ok)?,
        tool_transport_policy: policy(row.tool_transport_policy, Ok)?,
        tool_response_truncation_policy: policy(row.tool_response_truncation_policy, |policy| {
            let at = at.field("toolResponseTruncationPolicy");
            Ok(TruncationPolicy {
                max_bytes: policy.max_bytes,
                marker: required(policy.marker, &at, "marker")?,
            })
        })?,
        execution_boundary_policy: policy(row.execution_boundary_policy, |policy| {
            Ok(BoundaryPolicy {
                shell_tools: refs(policy.shell_tools),
                edit_surfaces: refs(policy.edit_surfaces),
                workdir_roots: refs(policy.workdir_roots),
            })
        })?,
        runtime_sandbox_ref: optional(row.runtime_sandbox_ref),
        compaction_policy_digest: optional(row.compaction_policy_digest),
        guardrail_stage_policy_digest: optional(row.guardrail_stage_policy_digest),
        eval_gate_policy_digest: optional(row.eval_gate_policy_digest),
        red_team_policy_digest: optional(row.red_team_policy_digest),
        observability_mode: row.observability_mode,
        risk_tier: row.risk_tier,
        orchestration_role: row.orchestration_role,
        context_scope_digest: optional(row.context_scope_digest),
        handoff_contract_digest: optional(row.handoff_contract_digest),
        stop_policy: policy(row.stop_policy, Ok)?,
        protocol_state_policy: policy(row.protocol_state_policy, Ok)?,
    })
}

/// Brings a policy's content into its normal form; an empty reference is none.
fn policy<T>(
    policy: Option<Policy<T>>,
    normal: impl FnOnce(T) -> Result<T, EvidenceError>,
) -> Result<Option<Policy<T>>, EvidenceError> {
    Ok(match policy {
        None => None,
        Some(Policy::Ref(reference)) => trimmed(reference).map(Policy::Ref),
        Some(Policy::Content(content)) => Some(Policy::Content(normal(content)?)),
    })
}

const TOOLS: RowKind<ToolRule, ToolRule> = RowKind {
    key: "toolName",
    order: |a, b| a.tool_name.cmp(&b.tool_name),
    named: |row| excerpt(&row.tool_name),
    normal: |row, at| {
        Ok(ToolRule {
            tool_name: required(row.tool_name, at, "toolName")?,
            schema_digest: optional(row.schema_digest),
        })
    },
};

fn tool_policy(policy: ToolPolicy, at: &Path<'_>) -> Result<ToolPolicy, EvidenceError> {
    Ok(ToolPolicy {
        tools: set(policy.tools, &at.field("tools"), TOOLS)?,
    })
}
