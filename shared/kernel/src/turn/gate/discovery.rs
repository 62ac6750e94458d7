//! Tools that are searched for, and how they are used
//! (`TOOL-CALLING-HARNESS-TYPESTATE 4.1`, `4.2`).

use super::breach::{Breach, Breaches, each, none, quoted};
use super::tool::{tools, unbound};
use super::{Case, Rule, rule};
use crate::json::canonical;
use crate::turn::evidence::{RequestRow, SearchRef};

pub(super) const RULES: &[Rule] = &[
    rule!(
        ToolDiscoveryUnresolved,
        Join,
        [5],
        discovery_unresolved,
        "a deferred tool is called after a search that found it"
    ),
    rule!(
        ToolDiscoveryMismatch,
        Join,
        [5],
        discovery_unbound,
        "the catalog and the deferred tools that are shown are those that the call spec binds"
    ),
    rule!(
        ToolDiscoveryMismatch,
        Join,
        [5],
        search_mismatch,
        "a search is of the bound catalog, and its digests are those of what it shows"
    ),
    rule!(
        ToolExampleDigestMismatch,
        Join,
        [5],
        examples_mismatch,
        "the tool examples that are shown are those that callSpec.toolExampleDigest binds"
    ),
];

fn discovery_unresolved<'a>(case: &Case<'a>) -> Breaches<'a> {
    let deferred = tools(case).and_then(|tools| tools.deferred_tools.as_ref());
    let bound = case.turn.call_spec.tool_catalog_digest.is_some();
    each(case.turn.tool_requests.iter().filter_map(move |row| {
        let tool = &row.tool_name;
        let found = match search(row) {
            Some(_) if !bound => "a search, and the call spec binds no tool catalog".to_owned(),
            Some(search) if shows(search) && !search.result_tool_names.contains(tool) => {
                format!("the search `{}` did not find `{tool}`", search.query)
            }
            Some(_) => return None,
            None if row.search_ref_digest.is_some() => return None,
            None if deferred.is_some_and(|deferred| deferred.contains(tool)) => {
                format!("`{tool}` is deferred, and the call has no searchRef")
            }
            None => return None,
        };
        Some(Breach::row("toolRequests", &row.tool_call_id, found))
    }))
}

fn discovery_unbound<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(tools) = tools(case) else {
        return none();
    };
    let spec = &case.turn.call_spec;
    let catalog = tools.tool_catalog.as_ref().and_then(|shown| {
        unbound(
            "toolConstraints.toolCatalog",
            canonical::digest(shown),
            &spec.tool_catalog_digest,
        )
    });
    let deferred = tools.deferred_tools.as_ref().and_then(|shown| {
        unbound(
            "toolConstraints.deferredTools",
            canonical::digest(shown),
            &spec.defer_policy_digest,
        )
    });
    each(catalog.into_iter().chain(deferred))
}

fn search_mismatch<'a>(case: &Case<'a>) -> Breaches<'a> {
    let bound = case.turn.call_spec.tool_catalog_digest.as_deref();
    let catalog = tools(case).and_then(|tools| tools.tool_catalog.as_ref());
    each(case.turn.tool_requests.iter().filter_map(move |row| {
        let search = search(row)?;
        let found = if search.catalog_digest.is_some() && search.catalog_digest.as_deref() != bound
        {
            let searched = quoted(search.catalog_digest.as_deref());
            format!(
                "searched {searched}, the bound catalog is {}",
                quoted(bound)
            )
        } else if shows(search)
            && canonical::digest(&search.result_tool_names) != search.result_set_digest
        {
            "resultSetDigest is not the digest of the tools that were found".to_owned()
        } else if row
            .search_ref_digest
            .as_ref()
            .is_some_and(|d| *d != canonical::digest(search))
        {
            "searchRefDigest is not the digest of the search".to_owned()
        } else if catalog.is_some_and(|catalog| !catalog.contains(&row.tool_name)) {
            format!("`{}` is not in the catalog", row.tool_name)
        } else {
            return None;
        };
        Some(Breach::row("toolRequests", &row.tool_call_id, found))
    }))
}

fn examples_mismatch<'a>(case: &Case<'a>) -> Breaches<'a> {
    let shown = tools(case).and_then(|tools| tools.tool_examples.as_ref());
    let bound = &case.turn.call_spec.tool_example_digest;
    each(shown.into_iter().filter_map(|shown| {
        unbound(
            "toolConstraints.toolExamples",
            canonical::digest(shown),
            bound,
        )
    }))
}

fn search(row: &RequestRow) -> Option<&SearchRef> {
    row.facts.as_ref()?.search_ref.as_ref()
}

/// Returns whether a search shows what it found: also nothing, where its digest
/// is that of nothing.
fn shows(search: &SearchRef) -> bool {
    let names = &search.result_tool_names;
    !names.is_empty() || search.result_set_digest == canonical::digest(names)
}
