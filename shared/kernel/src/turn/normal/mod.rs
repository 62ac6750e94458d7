//! The normal form of a turn and its ten digests
//! (`HARNESS-TYPESTATE 4`, `contracts.md` 2).

mod envelope;
mod state;

use super::block::{field, row, rows};
use super::error::EvidenceError;
use super::evidence::{
    CallSpecRow, Evidence, Facts, HandoffPacket, ProtocolState, QueueRow, RenderRow, RequestRow,
    ResultFacts, ResultRow, StateViewRow, UseRow,
};
use super::word::ResultStatus;
use crate::json::canonical;
use crate::json::path::Path;
pub use envelope::ErrorEnvelope;
use schemars::JsonSchema;
use serde::Serialize;
use state::JoinSet;
pub use state::{ContextState, JoinState};
use std::collections::BTreeSet;

/// The kind of the normal form.
pub(crate) const NORMALIZED_KIND: &str = "premath.harness.typestate_normalized.v1";

/// A turn in normal form: equal turns have equal bytes.
///
/// Rows are sorted by their key and appear once; strings are trimmed; empty
/// lists and absent options are left out. [`normalize`] is the only maker.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Normalized {
    /// The version of the kind: 1.
    pub schema: u64,
    /// `premath.harness.typestate_normalized.v1`.
    pub kind: &'static str,
    /// The binding.
    pub call_spec: CallSpecRow,
    /// Requested calls, by `toolCallId`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_requests: Vec<RequestRow>,
    /// The results, by `toolCallId`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_results: Vec<NormalResult>,
    /// The dispositions of the results, by `toolCallId`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_use: Vec<UseRow>,
    /// The stop reason, and whether the turn may continue.
    pub protocol_state: ProtocolState,
    /// A transfer, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffPacket>,
    /// How results were shown, by `toolCallId`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_render: Vec<RenderRow>,
    /// Reminder queues, by `queueId`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reminder_queue: Vec<QueueRow>,
    /// State views, by `viewId`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub state_views: Vec<StateViewRow>,
    /// The ten digests.
    pub digests: Digests,
    /// How requests, results and uses lie over each other.
    pub join_state: JoinState,
    /// What the next turn would be rebuilt from.
    pub context_state: ContextState,
    /// The sessions that witness the turn.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub session_refs: BTreeSet<String>,
    /// The trajectory rows that witness the turn.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub trajectory_refs: BTreeSet<String>,
    /// What else is known about the turn (ours).
    #[serde(skip_serializing_if = "Facts::is_empty")]
    pub facts: Facts,
    /// The calls with an error that lacks a part of its envelope. A fact for
    /// the gate: the normal form has filled the gap, so it cannot tell.
    #[serde(skip)]
    pub(super) untyped_errors: BTreeSet<String>,
}

/// The end of one tool call in normal form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NormalResult {
    /// The error's envelope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorEnvelope>,
    /// What else is known about the result (ours).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<Box<ResultFacts>>,
    /// The digest of what it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_digest: Option<String>,
    /// The status of the result.
    pub status: ResultStatus,
    /// The call's identity.
    pub tool_call_id: String,
}

/// The digests of a turn: nine blocks and the join over them; and the facts,
/// where there are any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "each is the digest of the block it names")]
pub struct Digests {
    pub call_spec_digest: String,
    pub request_set_digest: String,
    pub result_set_digest: String,
    pub use_set_digest: String,
    pub tool_render_set_digest: String,
    pub reminder_queue_set_digest: String,
    pub state_view_set_digest: String,
    pub protocol_state_digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff_digest: Option<String>,
    /// Of the facts beside the calls, where there are any (ours).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fact_set_digest: Option<String>,
    pub join_set_digest: String,
}

/// Brings evidence into its normal form and digests it.
///
/// # Errors
///
/// An empty required string, or two rows of one key that disagree; with the path of the field.
pub fn normalize(mut evidence: Evidence) -> Result<Normalized, EvidenceError> {
    let at = Path::Field(&Path::Root, "evidence");
    let untyped_errors = untyped_errors(&evidence.tool_results);
    evidence.protocol_state.stop_reason.make_ascii_lowercase();
    for row in &mut evidence.tool_render {
        row.injection_point.make_ascii_lowercase();
    }
    let call_spec = field(evidence.call_spec, &at.field("callSpec"))?;
    let tool_requests = field(evidence.tool_requests, &at.field("toolRequests"))?;
    let tool_results = rows(evidence.tool_results, &at.field("toolResults"), result)?;
    let tool_use = field(evidence.tool_use, &at.field("toolUse"))?;
    let protocol_state = field(evidence.protocol_state, &at.field("protocolState"))?;
    let handoff = field(evidence.handoff, &at.field("handoff"))?;
    let tool_render = field(evidence.tool_render, &at.field("toolRender"))?;
    let reminder_queue = field(evidence.reminder_queue, &at.field("reminderQueue"))?;
    let state_views = field(evidence.state_views, &at.field("stateViews"))?;
    let facts = field(evidence.facts, &at.field("facts"))?;

    let join_state = JoinState::of(&tool_requests, &tool_results, &tool_use);
    let context_state = ContextState::of(
        &call_spec,
        protocol_state.continuation_allowed,
        &join_state.result_call_ids,
        &tool_render,
        &reminder_queue,
        &state_views,
    );
    let mut digests = Digests {
        call_spec_digest: canonical::digest(&call_spec),
        request_set_digest: canonical::digest_ordered(&tool_requests),
        result_set_digest: canonical::digest_ordered(&tool_results),
        use_set_digest: canonical::digest_ordered(&tool_use),
        tool_render_set_digest: canonical::digest_ordered(&tool_render),
        reminder_queue_set_digest: canonical::digest_ordered(&reminder_queue),
        state_view_set_digest: canonical::digest_ordered(&state_views),
        protocol_state_digest: canonical::digest(&protocol_state),
        handoff_digest: handoff.as_ref().map(canonical::digest),
        fact_set_digest: (!facts.is_empty()).then(|| canonical::digest(&facts)),
        join_set_digest: String::new(),
    };
    digests.join_set_digest =
        canonical::digest_ordered(&JoinSet::of(&digests, &join_state, &context_state));
    Ok(Normalized {
        schema: 1,
        kind: NORMALIZED_KIND,
        call_spec,
        tool_requests,
        tool_results,
        tool_use,
        protocol_state,
        handoff,
        tool_render,
        reminder_queue,
        state_views,
        digests,
        join_state,
        context_state,
        session_refs: field(evidence.session_refs, &at.field("sessionRefs"))?,
        trajectory_refs: field(evidence.trajectory_refs, &at.field("trajectoryRefs"))?,
        facts,
        untyped_errors,
    })
}

row!(NormalResult by tool_call_id);

fn result(row: ResultRow, at: &Path<'_>) -> Result<NormalResult, EvidenceError> {
    let (status, error) = envelope::normal(&row);
    let result_digest = field(row.result_digest, at)?;
    let payload = row.payload.filter(|value| !value.is_null());
    Ok(NormalResult {
        tool_call_id: field(row.tool_call_id, &at.field("toolCallId"))?,
        status,
        result_digest: result_digest.or_else(|| Some(canonical::digest_ordered(&payload?))),
        error,
        facts: field(row.facts, &at.field("facts"))?,
    })
}

/// Looks at every row, also at those that collapse with another one.
fn untyped_errors(rows: &[ResultRow]) -> BTreeSet<String> {
    rows.iter()
        .filter(|row| envelope::is_incomplete(row))
        .map(|row| row.tool_call_id.trim().to_owned())
        .collect()
}
