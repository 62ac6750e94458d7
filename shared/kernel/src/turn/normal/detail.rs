//! The normal form of what is further known about a request or a result
//! (`TOOL-CALLING-HARNESS-TYPESTATE 4.2`, `4.3`).

use super::super::evidence::{
    ArtifactWrite, RequestFacts, ResultFacts, SearchRef, ShellEvidence, Truncation,
};
use super::super::path::{EvidenceError, Path};
use super::text::{optional, refs, required};

pub(super) fn request(
    facts: Option<Box<RequestFacts>>,
    at: &Path<'_>,
) -> Result<Option<Box<RequestFacts>>, EvidenceError> {
    let Some(facts) = facts else { return Ok(None) };
    let at = at.field("facts");
    let search_ref = match facts.search_ref {
        Some(search) => Some(search_ref(search, &at.field("searchRef"))?),
        None => None,
    };
    Ok(present(RequestFacts {
        action_id: optional(facts.action_id),
        call_group: optional(facts.call_group),
        input_digest: optional(facts.input_digest),
        parent_call_id: optional(facts.parent_call_id),
        search_ref,
        source_ref: optional(facts.source_ref),
        synthesized: facts.synthesized,
    }))
}

fn search_ref(search: SearchRef, at: &Path<'_>) -> Result<SearchRef, EvidenceError> {
    Ok(SearchRef {
        catalog_digest: optional(search.catalog_digest),
        query: required(search.query, at, "query")?,
        result_set_digest: required(search.result_set_digest, at, "resultSetDigest")?,
        result_tool_names: refs(search.result_tool_names),
    })
}

pub(super) fn result(
    facts: Option<Box<ResultFacts>>,
    at: &Path<'_>,
) -> Result<Option<Box<ResultFacts>>, EvidenceError> {
    let Some(facts) = facts else { return Ok(None) };
    let at = at.field("facts");
    let truncation = facts.truncation.map(|cut| Truncation {
        kept_bytes: cut.kept_bytes,
        // An empty marker is the gate's to refuse.
        marker: cut.marker.trim().to_owned(),
        original_bytes: cut.original_bytes,
    });
    let writes = at.field("artifactWrites");
    let artifact_writes = facts
        .artifact_writes
        .into_iter()
        .map(|write| {
            Ok(ArtifactWrite {
                digest: required(write.digest, &writes, "digest")?,
                path: required(write.path, &writes, "path")?,
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(present(ResultFacts {
        artifact_writes,
        parent_call_id: optional(facts.parent_call_id),
        payload_bytes: facts.payload_bytes,
        provenance_ref: optional(facts.provenance_ref),
        shell: facts.shell.map(|shell| ShellEvidence {
            command_digest: optional(shell.command_digest),
            sandbox_ref: optional(shell.sandbox_ref),
            workdir: optional(shell.workdir),
        }),
        token_usage: facts.token_usage,
        truncation,
    }))
}

/// Facts of which nothing is there are none.
fn present<T: Default + PartialEq>(facts: T) -> Option<Box<T>> {
    (facts != T::default()).then(|| Box::new(facts))
}
