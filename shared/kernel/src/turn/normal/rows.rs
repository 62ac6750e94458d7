//! The normal form of each kind of row (`contracts.md` 2).

use super::super::evidence::{
    HandoffPacket, ProtocolState, QueueRow, RenderRow, RequestRow, ResultRow, StateViewRow, UseRow,
};
use super::super::path::{EvidenceError, Path};
use super::super::reader::disagreement;
use super::NormalResult;
use super::text::{optional, refs, required};
use super::{detail, envelope};
use crate::json::canonical;
use crate::json::strict::excerpt;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// How the rows of one list are keyed and normalised.
pub(super) struct RowKind<R, N> {
    pub(super) key: &'static str,
    pub(super) order: fn(&N, &N) -> Ordering,
    pub(super) named: fn(&N) -> String,
    pub(super) normal: fn(R, &Path<'_>) -> Result<N, EvidenceError>,
}

pub(super) const REQUESTS: RowKind<RequestRow, RequestRow> = RowKind {
    key: "toolCallId",
    order: |a, b| a.tool_call_id.cmp(&b.tool_call_id),
    named: |row| excerpt(&row.tool_call_id),
    normal: |row, at| {
        Ok(RequestRow {
            tool_call_id: required(row.tool_call_id, at, "toolCallId")?,
            tool_name: required(row.tool_name, at, "toolName")?,
            schema_digest: optional(row.schema_digest),
            caller_id: optional(row.caller_id),
            search_ref_digest: optional(row.search_ref_digest),
            facts: detail::request(row.facts, at)?,
        })
    },
};

pub(super) const RESULTS: RowKind<ResultRow, NormalResult> = RowKind {
    key: "toolCallId",
    order: |a, b| a.tool_call_id.cmp(&b.tool_call_id),
    named: |row| excerpt(&row.tool_call_id),
    normal: |row, at| {
        let (status, error) = envelope::normal(&row);
        let payload_digest = payload_digest(&row);
        Ok(NormalResult {
            tool_call_id: required(row.tool_call_id, at, "toolCallId")?,
            status,
            result_digest: optional(row.result_digest).or(payload_digest),
            error,
            facts: detail::result(row.facts, at)?,
        })
    },
};

pub(super) const USES: RowKind<UseRow, UseRow> = RowKind {
    key: "toolCallId",
    order: |a, b| a.tool_call_id.cmp(&b.tool_call_id),
    named: |row| excerpt(&row.tool_call_id),
    normal: |row, at| {
        Ok(UseRow {
            tool_call_id: required(row.tool_call_id, at, "toolCallId")?,
            disposition: row.disposition,
            result_digest: optional(row.result_digest),
            use_reason: optional(row.use_reason),
            provenance_ref: optional(row.provenance_ref),
        })
    },
};

pub(super) const RENDERS: RowKind<RenderRow, RenderRow> = RowKind {
    key: "toolCallId",
    order: |a, b| a.tool_call_id.cmp(&b.tool_call_id),
    named: |row| excerpt(&row.tool_call_id),
    normal: |row, at| {
        Ok(RenderRow {
            tool_call_id: required(row.tool_call_id, at, "toolCallId")?,
            operator_payload_digest: required(
                row.operator_payload_digest,
                at,
                "operatorPayloadDigest",
            )?,
            reminder_render_digest: required(
                row.reminder_render_digest,
                at,
                "reminderRenderDigest",
            )?,
            injection_point: required(row.injection_point, at, "injectionPoint")?
                .to_ascii_lowercase(),
            policy_digest: required(row.policy_digest, at, "policyDigest")?,
        })
    },
};

pub(super) const QUEUES: RowKind<QueueRow, QueueRow> = RowKind {
    key: "queueId",
    order: |a, b| a.queue_id.cmp(&b.queue_id),
    named: |row| excerpt(&row.queue_id),
    normal: |row, at| {
        Ok(QueueRow {
            queue_id: required(row.queue_id, at, "queueId")?,
            reduced_digest: required(row.reduced_digest, at, "reducedDigest")?,
            policy_digest: required(row.policy_digest, at, "policyDigest")?,
        })
    },
};

pub(super) const VIEWS: RowKind<StateViewRow, StateViewRow> = RowKind {
    key: "viewId",
    order: |a, b| a.view_id.cmp(&b.view_id),
    named: |row| excerpt(&row.view_id),
    normal: |row, at| {
        Ok(StateViewRow {
            view_id: required(row.view_id, at, "viewId")?,
            view_digest: required(row.view_digest, at, "viewDigest")?,
            policy_digest: required(row.policy_digest, at, "policyDigest")?,
            source_refs: refs(row.source_refs),
        })
    },
};

/// Normalises rows, sorts them by key and collapses those that agree.
pub(super) fn set<R, N: PartialEq>(
    rows: Vec<R>,
    at: &Path<'_>,
    kind: RowKind<R, N>,
) -> Result<Vec<N>, EvidenceError> {
    let mut normal = Vec::with_capacity(rows.len());
    for (index, row) in rows.into_iter().enumerate() {
        normal.push((kind.normal)(row, &at.row(index))?);
    }
    if normal.is_sorted_by(|a, b| (kind.order)(a, b).is_lt()) {
        return Ok(normal);
    }
    let mut sorted: Vec<(usize, N)> = normal.into_iter().enumerate().collect();
    sorted.sort_by(|(_, a), (_, b)| (kind.order)(a, b));
    let same = |a: &N, b: &N| (kind.order)(a, b).is_eq();
    let conflict = sorted
        .chunk_by(|(_, a), (_, b)| same(a, b))
        .filter_map(|rows| rows.iter().find(|(_, row)| *row != rows[0].1))
        .min_by_key(|(index, _)| *index);
    if let Some((index, row)) = conflict {
        let expected = disagreement(&(kind.named)(row));
        return Err(at.row(*index).field(kind.key).error(expected));
    }
    sorted.dedup_by(|(_, a), (_, b)| same(a, b));
    Ok(sorted.into_iter().map(|(_, row)| row).collect())
}

pub(super) fn protocol_state(
    row: ProtocolState,
    at: &Path<'_>,
) -> Result<ProtocolState, EvidenceError> {
    Ok(ProtocolState {
        stop_reason: required(row.stop_reason, at, "stopReason")?.to_ascii_lowercase(),
        continuation_allowed: row.continuation_allowed,
    })
}

pub(super) fn handoff(row: HandoffPacket, at: &Path<'_>) -> Result<HandoffPacket, EvidenceError> {
    Ok(HandoffPacket {
        target: required(row.target, at, "target")?,
        required_artifact_refs: refs(row.required_artifact_refs),
        return_path_ref: optional(row.return_path_ref),
    })
}

fn payload_digest(row: &ResultRow) -> Option<String> {
    let given = row.result_digest.as_deref().unwrap_or_default().trim();
    if !given.is_empty() {
        return None;
    }
    let payload = row.payload.as_ref().filter(|value| !value.is_null())?;
    Some(canonical::digest_ordered(payload))
}

/// Looks at every row, also at those that collapse with another one.
pub(super) fn untyped_errors(rows: &[ResultRow]) -> BTreeSet<String> {
    rows.iter()
        .filter(|row| envelope::is_incomplete(row))
        .map(|row| row.tool_call_id.trim().to_owned())
        .collect()
}
