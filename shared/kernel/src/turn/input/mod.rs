//! The wire input of `premath harness-join-check` (`contracts.md` 2).

mod constraints;
mod facts;
mod spec;

use super::constraints::Constraints;
use super::evidence::{
    Evidence, HandoffPacket, ProtocolState, QueueRow, RenderRow, RequestRow, ResultRow,
    StateViewRow, UseRow,
};
use super::path::{EvidenceError, Path};
use super::reader::{self, BlockFields, Unknown};
use crate::json::strict;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// A turn's evidence and what it is held to.
///
/// Serialises to the very document that `premath harness-join-check --input`
/// reads, so that a worker's turn can be checked again by anybody.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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

/// An input that was read, and its unknown fields.
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
    /// Bytes that are not a JSON document, nesting deeper than `serde_json`
    /// follows, a key that appears twice, and whatever
    /// [`from_value`](Self::from_value) refuses.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, EvidenceError> {
        Self::from_value(Self::document(bytes)?)
    }

    /// Parses the bytes of a JSON document, and reads no further.
    ///
    /// # Errors
    ///
    /// Bytes that are not a JSON document, nesting deeper than `serde_json`
    /// follows, and a key that appears twice.
    pub fn document(bytes: &[u8]) -> Result<Value, EvidenceError> {
        strict::parse(bytes).map_err(EvidenceError::NotJson)
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
                constraints: constraints::constraints(input)?,
            })
        })?;
        Ok(Self {
            input,
            unknown_fields: unknown.into_inner(),
        })
    }
}

fn evidence(fields: &mut BlockFields<'_>) -> Result<Evidence, EvidenceError> {
    Ok(Evidence {
        call_spec: fields.object("callSpec", spec::call_spec)?,
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
        facts: fields
            .optional_object("facts", facts::facts)?
            .unwrap_or_default(),
    })
}

fn request(fields: &mut BlockFields<'_>) -> Result<RequestRow, EvidenceError> {
    Ok(RequestRow {
        tool_call_id: fields.string("toolCallId")?,
        tool_name: fields.string("toolName")?,
        schema_digest: fields.optional_string("schemaDigest")?,
        caller_id: fields.optional_string("callerId")?,
        search_ref_digest: fields.optional_string("searchRefDigest")?,
        facts: fields
            .optional_object("facts", facts::request)?
            .map(Box::new),
    })
}

fn result(fields: &mut BlockFields<'_>) -> Result<ResultRow, EvidenceError> {
    Ok(ResultRow {
        tool_call_id: fields.string("toolCallId")?,
        status: fields.optional_word("status")?,
        result_digest: fields.optional_string("resultDigest")?,
        payload: fields.payload("payload"),
        error_code: fields.optional_string("errorCode")?,
        retryable: fields.optional_flag("retryable")?,
        error_message: fields.optional_string("errorMessage")?,
        raw_error: fields.payload("rawError"),
        facts: fields
            .optional_object("facts", facts::result)?
            .map(Box::new),
    })
}

fn tool_use(fields: &mut BlockFields<'_>) -> Result<UseRow, EvidenceError> {
    Ok(UseRow {
        tool_call_id: fields.string("toolCallId")?,
        disposition: fields.word("disposition")?,
        result_digest: fields.optional_string("resultDigest")?,
        use_reason: fields.optional_string("useReason")?,
        provenance_ref: fields.optional_string("provenanceRef")?,
    })
}

fn protocol_state(fields: &mut BlockFields<'_>) -> Result<ProtocolState, EvidenceError> {
    Ok(ProtocolState {
        stop_reason: fields.string("stopReason")?,
        continuation_allowed: fields.flag("continuationAllowed")?,
    })
}

fn handoff(fields: &mut BlockFields<'_>) -> Result<HandoffPacket, EvidenceError> {
    Ok(HandoffPacket {
        target: fields.string("target")?,
        required_artifact_refs: fields.refs("requiredArtifactRefs")?,
        return_path_ref: fields.optional_string("returnPathRef")?,
    })
}

fn render(fields: &mut BlockFields<'_>) -> Result<RenderRow, EvidenceError> {
    Ok(RenderRow {
        tool_call_id: fields.string("toolCallId")?,
        operator_payload_digest: fields.string("operatorPayloadDigest")?,
        reminder_render_digest: fields.string("reminderRenderDigest")?,
        injection_point: fields.string("injectionPoint")?,
        policy_digest: fields.string("policyDigest")?,
    })
}

fn queue(fields: &mut BlockFields<'_>) -> Result<QueueRow, EvidenceError> {
    Ok(QueueRow {
        queue_id: fields.string("queueId")?,
        reduced_digest: fields.string("reducedDigest")?,
        policy_digest: fields.string("policyDigest")?,
    })
}

fn state_view(fields: &mut BlockFields<'_>) -> Result<StateViewRow, EvidenceError> {
    Ok(StateViewRow {
        view_id: fields.string("viewId")?,
        view_digest: fields.string("viewDigest")?,
        policy_digest: fields.string("policyDigest")?,
        source_refs: fields.refs("sourceRefs")?,
    })
}
