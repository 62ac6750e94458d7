//! The normal form of the facts beside a turn's calls
//! (`TOOL-CALLING-HARNESS-TYPESTATE 4.2`–`4.5`).

use super::super::evidence::{
    BranchRow, Compaction, Facts, GuardrailRow, ScopeAccess, Trace, TransportRow,
};
use super::super::path::{EvidenceError, Path};
use super::rows::{RowKind, set};
use super::text::{optional, refs, required};
use crate::json::strict::excerpt;

pub(super) fn facts(facts: Facts, at: &Path<'_>) -> Result<Facts, EvidenceError> {
    let accesses = at.field("scopeAccesses");
    let scope_accesses = facts
        .scope_accesses
        .into_iter()
        .map(|access| {
            Ok(ScopeAccess {
                reference: required(access.reference, &accesses, "ref")?,
                access: access.access,
                tool_call_id: optional(access.tool_call_id),
            })
        })
        .collect::<Result<_, _>>()?;
    let compaction = match facts.compaction {
        Some(row) => Some(compaction(row, &at.field("compaction"))?),
        None => None,
    };
    Ok(Facts {
        turn: facts.turn,
        checkpoint_ref: optional(facts.checkpoint_ref),
        guardrails: set(facts.guardrails, &at.field("guardrails"), GUARDRAILS)?,
        transport: set(facts.transport, &at.field("transport"), TRANSPORT)?,
        branches: set(facts.branches, &at.field("branches"), BRANCHES)?,
        scope_accesses,
        compaction,
        trace: facts.trace.map(|trace| Trace {
            mode: trace.mode,
            processor_ref: optional(trace.processor_ref),
            trace_refs: refs(trace.trace_refs),
        }),
    })
}

fn compaction(row: Compaction, at: &Path<'_>) -> Result<Compaction, EvidenceError> {
    Ok(Compaction {
        policy_digest: required(row.policy_digest, at, "policyDigest")?,
        carried_forward_refs: refs(row.carried_forward_refs),
        view_digest: required(row.view_digest, at, "viewDigest")?,
    })
}

const GUARDRAILS: RowKind<GuardrailRow, GuardrailRow> = RowKind {
    key: "sequence",
    order: |a, b| a.sequence.cmp(&b.sequence),
    named: |row| row.sequence.to_string(),
    normal: |row, at| {
        Ok(GuardrailRow {
            sequence: row.sequence,
            stage: row.stage,
            guardrail_id: required(row.guardrail_id, at, "guardrailId")?,
            triggered: row.triggered,
            threshold: row.threshold,
            model_ref: optional(row.model_ref),
            policy_digest: optional(row.policy_digest),
        })
    },
};

const TRANSPORT: RowKind<TransportRow, TransportRow> = RowKind {
    key: "sequence",
    order: |a, b| a.sequence.cmp(&b.sequence),
    named: |row| row.sequence.to_string(),
    normal: |row, at| {
        Ok(TransportRow {
            sequence: row.sequence,
            event: row.event,
            tool_call_id: required(row.tool_call_id, at, "toolCallId")?,
        })
    },
};

const BRANCHES: RowKind<BranchRow, BranchRow> = RowKind {
    key: "branchId",
    order: |a, b| a.branch_id.cmp(&b.branch_id),
    named: |row| excerpt(&row.branch_id),
    normal: |row, at| {
        Ok(BranchRow {
            branch_id: required(row.branch_id, at, "branchId")?,
            join_closed: row.join_closed,
            join_set_digest: optional(row.join_set_digest),
        })
    },
};
