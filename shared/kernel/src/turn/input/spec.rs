//! Reads a call spec (`TOOL-CALLING-HARNESS-TYPESTATE 4.1`).

use super::super::evidence::{
    BoundaryPolicy, CallSpecRow, FurtherBinding, ParallelPolicy, ProtocolStatePolicy, StopPolicy,
    ToolPolicy, ToolRule, TransportPolicy, TruncationPolicy,
};
use super::super::path::EvidenceError;
use super::super::reader::BlockFields;

pub(super) fn call_spec(fields: &mut BlockFields<'_>) -> Result<CallSpecRow, EvidenceError> {
    Ok(CallSpecRow {
        call_id: fields.string("callId")?,
        model_ref: fields.string("modelRef")?,
        action_mode: fields.word("actionMode")?,
        execution_pattern: fields.word("executionPattern")?,
        normalizer_id: fields.string("normalizerId")?,
        mutation_policy_digest: fields.string("mutationPolicyDigest")?,
        governance_policy_digest: fields.string("governancePolicyDigest")?,
        tool_render_protocol_digest: fields.string("toolRenderProtocolDigest")?,
        reminder_queue_policy_digest: fields.string("reminderQueuePolicyDigest")?,
        state_view_policy_digest: fields.string("stateViewPolicyDigest")?,
        decomposition_policy_digest: fields.string("decompositionPolicyDigest")?,
        text_adapter_profile: fields.optional_string("textAdapterProfile")?,
        further: further(fields)?,
    })
}

fn further(fields: &mut BlockFields<'_>) -> Result<FurtherBinding, EvidenceError> {
    Ok(FurtherBinding {
        tool_choice: fields.optional_word("toolChoice")?,
        tool_policy: fields.policy("toolPolicy", tool_policy)?,
        tool_catalog_digest: fields.optional_string("toolCatalogDigest")?,
        defer_policy_digest: fields.optional_string("deferPolicyDigest")?,
        tool_example_digest: fields.optional_string("toolExampleDigest")?,
        allowed_callers_digest: fields.optional_string("allowedCallersDigest")?,
        pre_context_filter_policy: fields.optional_word("preContextFilterPolicy")?,
        eval_profile_ref: fields.optional_string("evalProfileRef")?,
        parallel_policy: fields.policy("parallelPolicy", |policy| {
            Ok(ParallelPolicy {
                admissible: policy.required_flag("admissible")?,
                max_branches: policy.optional_count("maxBranches")?,
            })
        })?,
        tool_transport_policy: fields.policy("toolTransportPolicy", |policy| {
            Ok(TransportPolicy {
                parallel_tool_calls: policy.required_flag("parallelToolCalls")?,
                ordering: policy.word("ordering")?,
            })
        })?,
        tool_response_truncation_policy: fields.policy(
            "toolResponseTruncationPolicy",
            |policy| {
                Ok(TruncationPolicy {
                    max_bytes: policy.count("maxBytes")?,
                    marker: policy.string("marker")?,
                })
            },
        )?,
        execution_boundary_policy: fields.policy("executionBoundaryPolicy", boundary_policy)?,
        runtime_sandbox_ref: fields.optional_string("runtimeSandboxRef")?,
        compaction_policy_digest: fields.optional_string("compactionPolicyDigest")?,
        guardrail_stage_policy_digest: fields.optional_string("guardrailStagePolicyDigest")?,
        eval_gate_policy_digest: fields.optional_string("evalGatePolicyDigest")?,
        red_team_policy_digest: fields.optional_string("redTeamPolicyDigest")?,
        observability_mode: fields.optional_word("observabilityMode")?,
        risk_tier: fields.optional_word("riskTier")?,
        orchestration_role: fields.optional_word("orchestrationRole")?,
        context_scope_digest: fields.optional_string("contextScopeDigest")?,
        handoff_contract_digest: fields.optional_string("handoffContractDigest")?,
        stop_policy: fields.policy("stopPolicy", stop_policy)?,
        protocol_state_policy: fields.policy("protocolStatePolicy", protocol_state_policy)?,
    })
}

fn tool_policy(policy: &mut BlockFields<'_>) -> Result<ToolPolicy, EvidenceError> {
    Ok(ToolPolicy {
        tools: policy.rows("tools", |tool| {
            Ok(ToolRule {
                tool_name: tool.string("toolName")?,
                schema_digest: tool.optional_string("schemaDigest")?,
            })
        })?,
    })
}

fn boundary_policy(policy: &mut BlockFields<'_>) -> Result<BoundaryPolicy, EvidenceError> {
    Ok(BoundaryPolicy {
        shell_tools: policy.refs("shellTools")?,
        edit_surfaces: policy.refs("editSurfaces")?,
        workdir_roots: policy.refs("workdirRoots")?,
    })
}

fn stop_policy(policy: &mut BlockFields<'_>) -> Result<StopPolicy, EvidenceError> {
    Ok(StopPolicy {
        max_turns: policy.optional_ordinal("maxTurns")?,
        checkpoint: policy.optional_word("checkpoint")?.unwrap_or_default(),
    })
}

fn protocol_state_policy(
    policy: &mut BlockFields<'_>,
) -> Result<ProtocolStatePolicy, EvidenceError> {
    Ok(ProtocolStatePolicy {
        handled_stop_reasons: policy.words("handledStopReasons")?,
        continue_on: policy.optional_words("continueOn")?,
    })
}
