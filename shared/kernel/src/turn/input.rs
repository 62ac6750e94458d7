//! The wire input of `premath harness-join-check` (`contracts.md` 2).

use super::constraints::{
    Constraints, DecompositionConstraints, GovernanceProfile, HandoffConstraints, PolicyProvenance,
    ProtocolConstraints, TruncationConstraints,
};
use super::evidence::{
    CallSpecRow, Evidence, FURTHER_FIELDS, HandoffPacket, ProtocolState, QueueRow, RenderRow,
    RequestRow, ResultRow, StateViewRow, UseRow,
};
use super::path::{EvidenceError, Path};
use super::reader::{self, Fields, Unknown};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// A turn's evidence and what it is held to.
///
/// Serialises to the very document that `premath harness-join-check --input`
/// reads, so that a worker's turn can be checked again by anybody.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinCheckInput {
    /// What the turn left behind.
    pub evidence: Evidence,
    /// What it is held to.
    #[serde(flatten)]
    pub constraints: Constraints,
}

impl JoinCheckInput {
    /// Holds evidence to nothing but the contract.
    pub fn new(evidence: Evidence) -> Self {
        Self {
            evidence,
            constraints: Constraints::default(),
        }
    }
}

/// An input that was read, and the fields of it that nobody knows.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedInput {
    /// The input.
    pub input: JoinCheckInput,
    /// Paths of ignored fields, rows without their number, as in
    /// `evidence.toolRequests[].colour`.
    pub unknown_fields: BTreeSet<String>,
}

impl ParsedInput {
    /// Reads an input from the bytes of a JSON document.
    ///
    /// # Errors
    ///
    /// Bytes that are no JSON document, nesting deeper than `serde_json`
    /// follows, a key that stands twice, and whatever
    /// [`from_value`](Self::from_value) refuses.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, EvidenceError> {
        Self::from_value(reader::parse(bytes).map_err(EvidenceError::NotJson)?)
    }

    /// Reads an input from JSON.
    ///
    /// # Errors
    ///
    /// A missing field, a wrong type, null where the contract does not admit
    /// it, or a word outside its set; with the path of the field.
    pub fn from_value(value: Value) -> Result<Self, EvidenceError> {
        let unknown = Unknown::default();
        let input = reader::read(value, &Path::Root, &unknown, |input| {
            Ok(JoinCheckInput {
                evidence: input.object("evidence", evidence)?,
                constraints: constraints(input)?,
            })
        })?;
        Ok(Self {
            input,
            unknown_fields: unknown.into_inner(),
        })
    }
}

fn evidence(fields: &mut Fields<'_>) -> Result<Evidence, EvidenceError> {
    Ok(Evidence {
        call_spec: fields.object("callSpec", call_spec)?,
        tool_requests: fields.rows("toolRequests", request)?,
        tool_results: fields.rows("toolResults", result)?,
        tool_use: fields.rows("toolUse", tool_use)?,
        protocol_state: fields.object("protocolState", protocol_state)?,
        handoff: fields.optional_object("handoff", handoff)?,
        tool_render: fields.rows("toolRender", render)?,
        reminder_queue: fields.rows("reminderQueue", queue)?,
        state_views: fields.rows("stateViews", state_view)?,
        session_refs: fields.refs("sessionRefs")?,
        trajectory_refs: fields.refs("trajectoryRefs")?,
    })
}

fn call_spec(fields: &mut Fields<'_>) -> Result<CallSpecRow, EvidenceError> {
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
        further: FURTHER_FIELDS
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), fields.payload(name)?)))
            .collect(),
    })
}

fn request(fields: &mut Fields<'_>) -> Result<RequestRow, EvidenceError> {
    Ok(RequestRow {
        tool_call_id: fields.string("toolCallId")?,
        tool_name: fields.string("toolName")?,
        schema_digest: fields.optional_string("schemaDigest")?,
        caller_id: fields.optional_string("callerId")?,
        search_ref_digest: fields.optional_string("searchRefDigest")?,
    })
}

fn result(fields: &mut Fields<'_>) -> Result<ResultRow, EvidenceError> {
    Ok(ResultRow {
        tool_call_id: fields.string("toolCallId")?,
        status: fields.optional_word("status")?,
        result_digest: fields.optional_string("resultDigest")?,
        payload: fields.payload("payload"),
        error_code: fields.optional_string("errorCode")?,
        retryable: fields.optional_flag("retryable")?,
        error_message: fields.optional_string("errorMessage")?,
        raw_error: fields.payload("rawError"),
    })
}

fn tool_use(fields: &mut Fields<'_>) -> Result<UseRow, EvidenceError> {
    Ok(UseRow {
        tool_call_id: fields.string("toolCallId")?,
        disposition: fields.word("disposition")?,
        result_digest: fields.optional_string("resultDigest")?,
        use_reason: fields.optional_string("useReason")?,
        provenance_ref: fields.optional_string("provenanceRef")?,
    })
}

fn protocol_state(fields: &mut Fields<'_>) -> Result<ProtocolState, EvidenceError> {
    Ok(ProtocolState {
        stop_reason: fields.string("stopReason")?,
        continuation_allowed: fields.flag("continuationAllowed")?,
    })
}

fn handoff(fields: &mut Fields<'_>) -> Result<HandoffPacket, EvidenceError> {
    Ok(HandoffPacket {
        target: fields.string("target")?,
        required_artifact_refs: fields.refs("requiredArtifactRefs")?,
        return_path_ref: fields.optional_string("returnPathRef")?,
    })
}

fn render(fields: &mut Fields<'_>) -> Result<RenderRow, EvidenceError> {
    Ok(RenderRow {
        tool_call_id: fields.string("toolCallId")?,
        operator_payload_digest: fields.string("operatorPayloadDigest")?,
        reminder_render_digest: fields.string("reminderRenderDigest")?,
        injection_point: fields.string("injectionPoint")?,
        policy_digest: fields.string("policyDigest")?,
    })
}

fn queue(fields: &mut Fields<'_>) -> Result<QueueRow, EvidenceError> {
    Ok(QueueRow {
        queue_id: fields.string("queueId")?,
        reduced_digest: fields.string("reducedDigest")?,
        policy_digest: fields.string("policyDigest")?,
    })
}

fn state_view(fields: &mut Fields<'_>) -> Result<StateViewRow, EvidenceError> {
    Ok(StateViewRow {
        view_id: fields.string("viewId")?,
        view_digest: fields.string("viewDigest")?,
        policy_digest: fields.string("policyDigest")?,
        source_refs: fields.refs("sourceRefs")?,
    })
}

fn constraints(fields: &mut Fields<'_>) -> Result<Constraints, EvidenceError> {
    Ok(Constraints {
        governance_profile: fields.optional_object("governanceProfile", governance)?,
        protocol_constraints: fields.optional_object("protocolConstraints", |block| {
            Ok(ProtocolConstraints {
                parallel_transport_order_valid: block
                    .optional_flag("parallelTransportOrderValid")?,
            })
        })?,
        handoff_constraints: fields.optional_object("handoffConstraints", |block| {
            Ok(HandoffConstraints {
                required_artifact_refs: block.refs("requiredArtifactRefs")?,
                allowed_targets: block.refs("allowedTargets")?,
                require_return_path: block.flag("requireReturnPath")?,
            })
        })?,
        truncation_constraints: fields.optional_object("truncationConstraints", |block| {
            Ok(TruncationConstraints {
                required: block.flag("required")?,
                valid: block.flag("valid")?,
            })
        })?,
        decomposition_constraints: fields.optional_object("decompositionConstraints", |block| {
            Ok(DecompositionConstraints {
                admissible: block.optional_flag("admissible")?,
                expected_execution_pattern: block.optional_string("expectedExecutionPattern")?,
                expected_policy_digest: block.optional_string("expectedPolicyDigest")?,
            })
        })?,
    })
}

fn governance(fields: &mut Fields<'_>) -> Result<GovernanceProfile, EvidenceError> {
    Ok(GovernanceProfile {
        claim_id: fields.optional_string("claimId")?,
        claimed: fields.required_flag("claimed")?,
        policy_provenance: fields.optional_object("policyProvenance", |block| {
            Ok(PolicyProvenance {
                pinned: block.required_flag("pinned")?,
                package_ref: block.optional_string("packageRef")?,
                expected_digest: block.optional_string("expectedDigest")?,
                bound_digest: block.optional_string("boundDigest")?,
            })
        })?,
    })
}
