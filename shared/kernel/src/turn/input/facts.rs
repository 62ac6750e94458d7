//! Reads what may further be known about a turn and of its rows
//! (`TOOL-CALLING-HARNESS-TYPESTATE 4.2`–`4.5`).

use super::super::evidence::{
    ArtifactWrite, BranchRow, Compaction, Facts, GuardrailRow, RequestFacts, ResultFacts,
    ScopeAccess, SearchRef, ShellEvidence, TokenUsage, Trace, TransportRow, Truncation,
};
use super::super::path::EvidenceError;
use super::super::reader::BlockFields;

pub(super) fn request(facts: &mut BlockFields<'_>) -> Result<RequestFacts, EvidenceError> {
    Ok(RequestFacts {
        action_id: facts.optional_string("actionId")?,
        call_group: facts.optional_string("callGroup")?,
        input_digest: facts.optional_string("inputDigest")?,
        parent_call_id: facts.optional_string("parentCallId")?,
        search_ref: facts.optional_object("searchRef", |search| {
            Ok(SearchRef {
                catalog_digest: search.optional_string("catalogDigest")?,
                query: search.string("query")?,
                result_set_digest: search.string("resultSetDigest")?,
                result_tool_names: search.refs("resultToolNames")?,
            })
        })?,
        source_ref: facts.optional_string("sourceRef")?,
        synthesized: facts.flag("synthesized")?,
    })
}

pub(super) fn result(facts: &mut BlockFields<'_>) -> Result<ResultFacts, EvidenceError> {
    Ok(ResultFacts {
        artifact_writes: facts
            .rows("artifactWrites", |write| {
                Ok(ArtifactWrite {
                    digest: write.name("digest")?,
                    path: write.name("path")?,
                })
            })?
            .into_iter()
            .collect(),
        parent_call_id: facts.optional_string("parentCallId")?,
        payload_bytes: facts.optional_count("payloadBytes")?,
        provenance_ref: facts.optional_string("provenanceRef")?,
        shell: facts.optional_object("shell", |shell| {
            Ok(ShellEvidence {
                command_digest: shell.optional_string("commandDigest")?,
                sandbox_ref: shell.optional_string("sandboxRef")?,
                workdir: shell.optional_string("workdir")?,
            })
        })?,
        token_usage: facts.optional_object("tokenUsage", |usage| {
            Ok(TokenUsage {
                filtered: usage.count("filtered")?,
                unfiltered: usage.count("unfiltered")?,
            })
        })?,
        truncation: facts.optional_object("truncation", |cut| {
            Ok(Truncation {
                kept_bytes: cut.count("keptBytes")?,
                marker: cut.string("marker")?,
                original_bytes: cut.count("originalBytes")?,
            })
        })?,
    })
}

pub(super) fn facts(facts: &mut BlockFields<'_>) -> Result<Facts, EvidenceError> {
    Ok(Facts {
        turn: facts.optional_ordinal("turn")?,
        checkpoint_ref: facts.optional_string("checkpointRef")?,
        guardrails: facts.rows("guardrails", guardrail)?,
        transport: facts.rows("transport", |row| {
            Ok(TransportRow {
                sequence: row.count("sequence")?,
                event: row.word("event")?,
                tool_call_id: row.string("toolCallId")?,
            })
        })?,
        branches: facts.rows("branches", |row| {
            Ok(BranchRow {
                branch_id: row.string("branchId")?,
                join_closed: row.required_flag("joinClosed")?,
                join_set_digest: row.optional_string("joinSetDigest")?,
            })
        })?,
        scope_accesses: facts
            .rows("scopeAccesses", |row| {
                Ok(ScopeAccess {
                    reference: row.name("ref")?,
                    access: row.word("access")?,
                    tool_call_id: row.optional_string("toolCallId")?,
                })
            })?
            .into_iter()
            .collect(),
        compaction: facts.optional_object("compaction", |row| {
            Ok(Compaction {
                policy_digest: row.string("policyDigest")?,
                carried_forward_refs: row.refs("carriedForwardRefs")?,
                view_digest: row.string("viewDigest")?,
            })
        })?,
        trace: facts.optional_object("trace", |row| {
            Ok(Trace {
                mode: row.word("mode")?,
                processor_ref: row.optional_string("processorRef")?,
                trace_refs: row.refs("traceRefs")?,
            })
        })?,
    })
}

fn guardrail(row: &mut BlockFields<'_>) -> Result<GuardrailRow, EvidenceError> {
    Ok(GuardrailRow {
        sequence: row.count("sequence")?,
        stage: row.word("stage")?,
        guardrail_id: row.string("guardrailId")?,
        triggered: row.required_flag("triggered")?,
        threshold: row.optional_number("threshold")?,
        model_ref: row.optional_string("modelRef")?,
        policy_digest: row.optional_string("policyDigest")?,
    })
}
