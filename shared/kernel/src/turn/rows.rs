//! The normal form of each kind of row (`contracts.md` 2).

use super::envelope;
use super::evidence::{
    CallSpecRow, FURTHER_FIELDS, FURTHER_WORDS, HandoffPacket, ProtocolState, QueueRow, RenderRow,
    RequestRow, ResultRow, StateViewRow, UseRow,
};
use super::normal::NormalResult;
use super::path::{EvidenceError, Path};
use super::reader::excerpt;
use crate::canonical;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How the rows of one list are keyed and normalised.
pub(super) struct RowKind<R, N> {
    key: &'static str,
    key_of: fn(&N) -> &str,
    normal: fn(&R, &Path<'_>) -> Result<N, EvidenceError>,
}

pub(super) const REQUESTS: RowKind<RequestRow, RequestRow> = RowKind {
    key: "toolCallId",
    key_of: |row| &row.tool_call_id,
    normal: |row, at| {
        Ok(RequestRow {
            tool_call_id: required(&row.tool_call_id, at, "toolCallId")?,
            tool_name: required(&row.tool_name, at, "toolName")?,
            schema_digest: optional(&row.schema_digest),
            caller_id: optional(&row.caller_id),
            search_ref_digest: optional(&row.search_ref_digest),
        })
    },
};

pub(super) const RESULTS: RowKind<ResultRow, NormalResult> = RowKind {
    key: "toolCallId",
    key_of: |row| &row.tool_call_id,
    normal: |row, at| {
        let (status, error) = envelope::normal(row);
        Ok(NormalResult {
            tool_call_id: required(&row.tool_call_id, at, "toolCallId")?,
            status,
            result_digest: optional(&row.result_digest).or_else(|| payload_digest(row)),
            error,
        })
    },
};

pub(super) const USES: RowKind<UseRow, UseRow> = RowKind {
    key: "toolCallId",
    key_of: |row| &row.tool_call_id,
    normal: |row, at| {
        Ok(UseRow {
            tool_call_id: required(&row.tool_call_id, at, "toolCallId")?,
            disposition: row.disposition,
            result_digest: optional(&row.result_digest),
            use_reason: optional(&row.use_reason),
            provenance_ref: optional(&row.provenance_ref),
        })
    },
};

pub(super) const RENDERS: RowKind<RenderRow, RenderRow> = RowKind {
    key: "toolCallId",
    key_of: |row| &row.tool_call_id,
    normal: |row, at| {
        Ok(RenderRow {
            tool_call_id: required(&row.tool_call_id, at, "toolCallId")?,
            operator_payload_digest: required(
                &row.operator_payload_digest,
                at,
                "operatorPayloadDigest",
            )?,
            reminder_render_digest: required(
                &row.reminder_render_digest,
                at,
                "reminderRenderDigest",
            )?,
            injection_point: required(&row.injection_point, at, "injectionPoint")?
                .to_ascii_lowercase(),
            policy_digest: required(&row.policy_digest, at, "policyDigest")?,
        })
    },
};

pub(super) const QUEUES: RowKind<QueueRow, QueueRow> = RowKind {
    key: "queueId",
    key_of: |row| &row.queue_id,
    normal: |row, at| {
        Ok(QueueRow {
            queue_id: required(&row.queue_id, at, "queueId")?,
            reduced_digest: required(&row.reduced_digest, at, "reducedDigest")?,
            policy_digest: required(&row.policy_digest, at, "policyDigest")?,
        })
    },
};

pub(super) const VIEWS: RowKind<StateViewRow, StateViewRow> = RowKind {
    key: "viewId",
    key_of: |row| &row.view_id,
    normal: |row, at| {
        Ok(StateViewRow {
            view_id: required(&row.view_id, at, "viewId")?,
            view_digest: required(&row.view_digest, at, "viewDigest")?,
            policy_digest: required(&row.policy_digest, at, "policyDigest")?,
            source_refs: refs(&row.source_refs),
        })
    },
};

/// Normalises rows, sorts them by key and collapses those that agree.
pub(super) fn set<R, N: PartialEq>(
    rows: &[R],
    at: &Path<'_>,
    kind: RowKind<R, N>,
) -> Result<Vec<N>, EvidenceError> {
    let mut by_key = BTreeMap::<String, N>::new();
    for (index, row) in rows.iter().enumerate() {
        let at = at.row(index);
        let row = (kind.normal)(row, &at)?;
        let key = (kind.key_of)(&row).to_owned();
        match by_key.get(&key) {
            Some(earlier) if *earlier != row => {
                let expected = format!(
                    "{} stands in an earlier row with another content; rows of one key must agree",
                    excerpt(&key)
                );
                return Err(at.field(kind.key).error(expected));
            }
            Some(_) => {}
            None => {
                by_key.insert(key, row);
            }
        }
    }
    Ok(by_key.into_values().collect())
}

pub(super) fn call_spec(row: &CallSpecRow, at: &Path<'_>) -> Result<CallSpecRow, EvidenceError> {
    let mut further = BTreeMap::new();
    for (name, value) in &row.further {
        // A row built by hand may hold any name, also one that would shadow
        // a required field in the digest.
        if !FURTHER_FIELDS.contains(&name.as_str()) {
            return Err(at.field(name).error("is no field of a call spec"));
        }
        if let Some(value) = further_value(name, value) {
            further.insert(name.clone(), value);
        }
    }
    let digest = |text: &str, name: &'static str| required(text, at, name);
    Ok(CallSpecRow {
        call_id: required(&row.call_id, at, "callId")?,
        model_ref: required(&row.model_ref, at, "modelRef")?,
        action_mode: row.action_mode,
        execution_pattern: row.execution_pattern,
        normalizer_id: required(&row.normalizer_id, at, "normalizerId")?,
        mutation_policy_digest: digest(&row.mutation_policy_digest, "mutationPolicyDigest")?,
        governance_policy_digest: digest(&row.governance_policy_digest, "governancePolicyDigest")?,
        tool_render_protocol_digest: digest(
            &row.tool_render_protocol_digest,
            "toolRenderProtocolDigest",
        )?,
        reminder_queue_policy_digest: digest(
            &row.reminder_queue_policy_digest,
            "reminderQueuePolicyDigest",
        )?,
        state_view_policy_digest: digest(&row.state_view_policy_digest, "stateViewPolicyDigest")?,
        decomposition_policy_digest: digest(
            &row.decomposition_policy_digest,
            "decompositionPolicyDigest",
        )?,
        text_adapter_profile: optional(&row.text_adapter_profile),
        further,
    })
}

fn further_value(name: &str, value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::String(text) => {
            let text = trimmed(text)?;
            Some(Value::from(if FURTHER_WORDS.contains(&name) {
                text.to_ascii_lowercase()
            } else {
                text
            }))
        }
        other => Some(other.clone()),
    }
}

pub(super) fn protocol_state(
    row: &ProtocolState,
    at: &Path<'_>,
) -> Result<ProtocolState, EvidenceError> {
    Ok(ProtocolState {
        stop_reason: required(&row.stop_reason, at, "stopReason")?.to_ascii_lowercase(),
        continuation_allowed: row.continuation_allowed,
    })
}

pub(super) fn handoff(row: &HandoffPacket, at: &Path<'_>) -> Result<HandoffPacket, EvidenceError> {
    Ok(HandoffPacket {
        target: required(&row.target, at, "target")?,
        required_artifact_refs: refs(&row.required_artifact_refs),
        return_path_ref: optional(&row.return_path_ref),
    })
}

fn payload_digest(row: &ResultRow) -> Option<String> {
    let payload = row.payload.as_ref().filter(|value| !value.is_null())?;
    // A `Value` prints canonically by itself; going through one again would copy it.
    let text = payload.to_string();
    Some(format!("sha256:{}", canonical::sha256_hex(text.as_bytes())))
}

/// Looks at every row, also at those that collapse with another one.
pub(super) fn untyped_errors(rows: &[ResultRow]) -> BTreeSet<String> {
    rows.iter()
        .filter(|row| envelope::is_incomplete(row))
        .map(|row| row.tool_call_id.trim().to_owned())
        .collect()
}

fn required(text: &str, at: &Path<'_>, name: &str) -> Result<String, EvidenceError> {
    trimmed(text).ok_or_else(|| at.field(name).error("must be a non-empty string"))
}

fn optional(text: &Option<String>) -> Option<String> {
    trimmed(text.as_deref()?)
}

fn trimmed(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

pub(super) fn refs(refs: &BTreeSet<String>) -> BTreeSet<String> {
    refs.iter().filter_map(|text| trimmed(text)).collect()
}
