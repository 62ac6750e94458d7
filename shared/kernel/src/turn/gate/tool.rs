//! Requests, results and uses, and which tools may be called
//! (`HARNESS-TYPESTATE 5`, `7`; `TOOL-CALLING-HARNESS-TYPESTATE 4.1`–`4.5`).

use super::breach::{Breach, Breaches, each, none, told, when};
use super::{Case, Rule, rule};
use crate::canonical;
use crate::turn::constraints::ToolConstraints;
use crate::turn::evidence::{ParallelPolicy, Policy, RequestRow, SearchRef, ToolPolicy};
use crate::turn::word::ActionMode;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const RULES: &[Rule] = &[
    rule!(
        ToolResultMissing,
        Join,
        [2],
        result_missing,
        "every requested call has exactly one row in toolResults"
    ),
    rule!(
        ToolResultOrphan,
        Join,
        [2],
        result_orphan,
        "every row of toolResults belongs to a row of toolRequests"
    ),
    rule!(
        ToolUseMissing,
        Join,
        [2],
        use_missing,
        "every row of toolResults has a row in toolUse that says what became of it"
    ),
    rule!(
        ToolUseWithoutResult,
        Join,
        [2],
        use_without_result,
        "every row of toolUse belongs to a row of toolResults"
    ),
    rule!(ToolJoinIncomplete, Join, [2], derived join_incomplete,
        "requests, results and uses close over each other; mend the classes beside this one"),
    rule!(
        ToolJoinIncomplete,
        Join,
        [4],
        branch_open,
        "every branch of facts.branches has closed its own join before anything is built on it"
    ),
    rule!(
        ToolSchemaInvalid,
        Join,
        [2],
        error_untyped,
        "every error row has errorCode, retryable and errorMessage, by itself or in rawError"
    ),
    rule!(
        ToolSchemaInvalid,
        Join,
        [4],
        text_calls_unadapted,
        "in text mode callSpec.textAdapterProfile names the adapter that made calls of the text"
    ),
    rule!(
        ToolSchemaInvalid,
        Join,
        [4],
        action_holds_many,
        "outside of code mode every action object holds one call"
    ),
    rule!(
        ToolSchemaInvalid,
        Join,
        [4],
        schema_is_another,
        "every call was checked against the schema that toolPolicy pins for its tool"
    ),
    rule!(
        ToolUnknownOrDisallowed,
        Join,
        [5],
        tool_disallowed,
        "only tools of callSpec.toolPolicy are called"
    ),
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
    rule!(
        ToolCallerNotAllowed,
        Join,
        [6],
        callers_unbound,
        "the callers that are shown are those that callSpec.allowedCallersDigest binds"
    ),
    rule!(
        ToolCallerNotAllowed,
        Join,
        [6],
        caller_not_allowed,
        "a tool is called by one of its allowed callers"
    ),
    rule!(
        ToolParallelPolicyViolation,
        Join,
        [4],
        group_too_large,
        "the calls of one callGroup are no more than callSpec.parallelPolicy admits"
    ),
    rule!(
        ToolParallelPolicyViolation,
        Join,
        [4],
        branches_too_many,
        "the branches are no more than callSpec.parallelPolicy admits"
    ),
    rule!(
        ToolProgrammaticCallerEdgeInvalid,
        Join,
        [6],
        parent_unknown,
        "a call made from code names a requested call as its parent, and no circle is formed"
    ),
    rule!(
        ToolProgrammaticCallerEdgeInvalid,
        Join,
        [6],
        parent_runs_no_code,
        "the parent of a call made from code is a call of a code execution tool"
    ),
    rule!(
        ToolProgrammaticCallerEdgeInvalid,
        Join,
        [6],
        parent_missing,
        "a call whose caller is code names its parent call"
    ),
    rule!(
        ToolProgrammaticCallerEdgeInvalid,
        Join,
        [6],
        parents_disagree,
        "request and result of a call name the same parent call"
    ),
];

fn result_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    let ids = &case.turn.join_state.missing_result_call_ids;
    each(ids.iter().map(|id| {
        Breach::row(
            "toolRequests",
            id,
            "the call was requested and has no result",
        )
    }))
}

fn result_orphan<'a>(case: &Case<'a>) -> Breaches<'a> {
    let ids = &case.turn.join_state.orphan_result_call_ids;
    each(
        ids.iter()
            .map(|id| Breach::row("toolResults", id, "nobody requested this call")),
    )
}

fn use_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    let ids = &case.turn.join_state.missing_use_call_ids;
    each(
        ids.iter()
            .map(|id| Breach::row("toolResults", id, "nothing says what became of this result")),
    )
}

fn use_without_result<'a>(case: &Case<'a>) -> Breaches<'a> {
    let ids = &case.turn.join_state.unknown_use_call_ids;
    each(
        ids.iter()
            .map(|id| Breach::row("toolUse", id, "there is no result of this call")),
    )
}

/// Derived from the four before.
fn join_incomplete<'a>(case: &Case<'a>) -> Breaches<'a> {
    when(!case.turn.join_state.join_closed, "evidence", || {
        "requests, results and uses do not close over each other".to_owned()
    })
}

fn branch_open<'a>(case: &Case<'a>) -> Breaches<'a> {
    let open = case
        .turn
        .facts
        .branches
        .iter()
        .filter(|row| !row.join_closed);
    each(open.map(|row| {
        Breach::row(
            "facts.branches",
            &row.branch_id,
            "the branch has not closed its join",
        )
    }))
}

fn error_untyped<'a>(case: &Case<'a>) -> Breaches<'a> {
    each(case.turn.untyped_errors.iter().map(|id| {
        Breach::row(
            "toolResults",
            id,
            "the error lacks a code, a retryable flag or a message",
        )
    }))
}

fn text_calls_unadapted<'a>(case: &Case<'a>) -> Breaches<'a> {
    let spec = &case.turn.call_spec;
    let unadapted = spec.action_mode == ActionMode::Text && spec.text_adapter_profile.is_none();
    let calls = case.turn.tool_requests.len();
    when(
        unadapted && calls > 0,
        "callSpec.textAdapterProfile",
        move || format!("{calls} calls in text mode and no adapter profile"),
    )
}

fn action_holds_many<'a>(case: &Case<'a>) -> Breaches<'a> {
    if case.turn.call_spec.action_mode == ActionMode::Code {
        return none();
    }
    let actions = grouped(&case.turn.tool_requests, |row| {
        row.facts.as_ref()?.action_id.as_deref()
    });
    each(
        actions
            .into_iter()
            .filter(|(_, calls)| calls.len() > 1)
            .map(|(action, calls)| {
                Breach::new(
                    "toolRequests[].facts.actionId",
                    format!("action `{action}` holds {}", listed(&calls)),
                )
            }),
    )
}

fn schema_is_another<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(policy) = tool_policy(case) else {
        return none();
    };
    each(case.turn.tool_requests.iter().filter_map(|row| {
        let tool = tool_of(policy, &row.tool_name)?;
        let pinned = tool.schema_digest.as_deref()?;
        let checked = row.schema_digest.as_deref();
        (checked != Some(pinned)).then(|| {
            let found = format!("checked against {}, pinned is `{pinned}`", told(checked));
            Breach::row("toolRequests", &row.tool_call_id, found)
        })
    }))
}

fn tool_disallowed<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(policy) = tool_policy(case) else {
        return none();
    };
    let calls = case.turn.tool_requests.iter();
    let others = calls.filter(|row| tool_of(policy, &row.tool_name).is_none());
    each(others.map(|row| {
        let found = format!("`{}` is not among the tools of the policy", row.tool_name);
        Breach::row("toolRequests", &row.tool_call_id, found)
    }))
}

fn discovery_unresolved<'a>(case: &Case<'a>) -> Breaches<'a> {
    let deferred = tools(case).and_then(|tools| tools.deferred_tools.as_ref());
    let bound = case.turn.call_spec.further.tool_catalog_digest.is_some();
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
    let spec = &case.turn.call_spec.further;
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
    let bound = case.turn.call_spec.further.tool_catalog_digest.as_deref();
    let catalog = tools(case).and_then(|tools| tools.tool_catalog.as_ref());
    each(case.turn.tool_requests.iter().filter_map(move |row| {
        let search = search(row)?;
        let found = if search.catalog_digest.is_some() && search.catalog_digest.as_deref() != bound
        {
            let searched = told(search.catalog_digest.as_deref());
            format!("searched {searched}, the bound catalog is {}", told(bound))
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
    let bound = &case.turn.call_spec.further.tool_example_digest;
    each(shown.into_iter().filter_map(|shown| {
        unbound(
            "toolConstraints.toolExamples",
            canonical::digest(shown),
            bound,
        )
    }))
}

fn callers_unbound<'a>(case: &Case<'a>) -> Breaches<'a> {
    let shown = tools(case).and_then(|tools| tools.allowed_callers.as_ref());
    let bound = &case.turn.call_spec.further.allowed_callers_digest;
    each(shown.into_iter().filter_map(|shown| {
        unbound(
            "toolConstraints.allowedCallers",
            canonical::digest(shown),
            bound,
        )
    }))
}

fn caller_not_allowed<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(callers) = tools(case).and_then(|tools| tools.allowed_callers.as_ref()) else {
        return none();
    };
    each(case.turn.tool_requests.iter().filter_map(|row| {
        let allowed = callers.get(&row.tool_name)?;
        let caller = row.caller_id.as_deref();
        (!caller.is_some_and(|caller| allowed.contains(caller))).then(|| {
            let found = format!("`{}` was called by {}", row.tool_name, told(caller));
            Breach::row("toolRequests", &row.tool_call_id, found)
        })
    }))
}

fn group_too_large<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(most) = most_side_by_side(case) else {
        return none();
    };
    let groups = grouped(&case.turn.tool_requests, |row| {
        row.facts.as_ref()?.call_group.as_deref()
    });
    let large = groups
        .into_iter()
        .filter(move |(_, calls)| calls.len() as u64 > most);
    each(large.map(move |(group, calls)| {
        Breach::new(
            "toolRequests[].facts.callGroup",
            format!("group `{group}` holds {}; at most {most}", listed(&calls)),
        )
    }))
}

fn branches_too_many<'a>(case: &Case<'a>) -> Breaches<'a> {
    let branches = case.turn.facts.branches.len() as u64;
    let most = most_side_by_side(case).unwrap_or(u64::MAX);
    when(branches > most, "facts.branches", move || {
        format!("{branches} branches; at most {most}")
    })
}

fn parent_unknown<'a>(case: &Case<'a>) -> Breaches<'a> {
    let parents: BTreeMap<&str, &str> = case
        .turn
        .tool_requests
        .iter()
        .filter_map(|row| Some((row.tool_call_id.as_str(), parent(row)?)))
        .collect();
    let circular = circular(&parents);
    let turn = case.turn;
    each(parents.into_iter().filter_map(move |(id, parent)| {
        let found = if circular.contains(id) {
            format!("the parents of the call lead back to it, by `{parent}`")
        } else if request(&turn.tool_requests, parent).is_none() {
            format!("nobody requested the parent `{parent}`")
        } else {
            return None;
        };
        Some(Breach::row("toolRequests", id, found))
    }))
}

fn parent_runs_no_code<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(tools) = tools(case).filter(|tools| !tools.code_execution_tools.is_empty()) else {
        return none();
    };
    let requests = &case.turn.tool_requests;
    each(requests.iter().filter_map(|row| {
        let parent = request(requests, parent(row)?)?;
        (!tools.code_execution_tools.contains(&parent.tool_name)).then(|| {
            let found = format!(
                "the parent `{}` is a call of `{}`, which runs no code",
                parent.tool_call_id, parent.tool_name
            );
            Breach::row("toolRequests", &row.tool_call_id, found)
        })
    }))
}

fn parent_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(tools) = tools(case) else {
        return none();
    };
    let orphans = case.turn.tool_requests.iter().filter(|row| {
        let code = row
            .caller_id
            .as_ref()
            .is_some_and(|id| tools.programmatic_callers.contains(id));
        code && parent(row).is_none()
    });
    each(orphans.map(|row| {
        let found = format!(
            "{} is code, and names no parent call",
            told(row.caller_id.as_deref())
        );
        Breach::row("toolRequests", &row.tool_call_id, found)
    }))
}

fn parents_disagree<'a>(case: &Case<'a>) -> Breaches<'a> {
    let requests = &case.turn.tool_requests;
    each(case.turn.tool_results.iter().filter_map(|row| {
        let seen = row.facts.as_ref()?.parent_call_id.as_deref()?;
        // A result without a request is `tool.result_orphan`.
        let asked = parent(request(requests, &row.tool_call_id)?);
        (asked != Some(seen)).then(|| {
            let found = format!(
                "the result's parent is `{seen}`, the request's {}",
                told(asked)
            );
            Breach::row("toolResults", &row.tool_call_id, found)
        })
    }))
}

/// Returns the calls whose parents lead back to themselves.
fn circular<'a>(parents: &BTreeMap<&'a str, &'a str>) -> BTreeSet<&'a str> {
    let mut settled = BTreeSet::new();
    let mut circular = BTreeSet::new();
    for &start in parents.keys() {
        let (mut way, mut on_way) = (Vec::new(), BTreeSet::new());
        let mut next = Some(start);
        while let Some(call) = next.filter(|call| !settled.contains(call)) {
            if !on_way.insert(call) {
                let from = way.iter().position(|passed| *passed == call);
                circular.extend(way.drain(from.unwrap_or_default()..));
                break;
            }
            way.push(call);
            next = parents.get(call).copied();
        }
        settled.extend(on_way);
    }
    circular
}

fn tools<'a>(case: &Case<'a>) -> Option<&'a ToolConstraints> {
    case.constraints.tool_constraints.as_ref()
}

fn tool_policy<'a>(case: &Case<'a>) -> Option<&'a ToolPolicy> {
    let policy = case.turn.call_spec.further.tool_policy.as_ref();
    policy.and_then(Policy::content)
}

fn tool_of<'a>(policy: &'a ToolPolicy, name: &str) -> Option<&'a crate::turn::evidence::ToolRule> {
    let place = policy
        .tools
        .binary_search_by(|tool| tool.tool_name.as_str().cmp(name));
    policy.tools.get(place.ok()?)
}

/// Returns how many calls or branches may run side by side, where that is bound.
fn most_side_by_side(case: &Case<'_>) -> Option<u64> {
    let policy = case.turn.call_spec.further.parallel_policy.as_ref()?;
    let ParallelPolicy {
        admissible,
        max_branches,
    } = policy.content()?;
    if *admissible { *max_branches } else { Some(1) }
}

/// Rows are sorted by their id.
fn request<'a>(requests: &'a [RequestRow], id: &str) -> Option<&'a RequestRow> {
    let place = requests.binary_search_by(|row| row.tool_call_id.as_str().cmp(id));
    requests.get(place.ok()?)
}

fn parent(row: &RequestRow) -> Option<&str> {
    row.facts.as_ref()?.parent_call_id.as_deref()
}

fn search(row: &RequestRow) -> Option<&SearchRef> {
    row.facts.as_ref()?.search_ref.as_ref()
}

/// Tells whether a search shows what it found: also nothing, where its digest
/// is that of nothing.
fn shows(search: &SearchRef) -> bool {
    let names = &search.result_tool_names;
    !names.is_empty() || search.result_set_digest == canonical::digest(names)
}

/// Tells where the content that is shown is not the one that is bound.
fn unbound(at: &str, shown: String, bound: &Option<String>) -> Option<Breach> {
    let bound = bound.as_deref();
    (bound != Some(shown.as_str())).then(|| {
        Breach::new(
            at,
            format!("its digest is `{shown}`, bound is {}", told(bound)),
        )
    })
}

fn grouped<'a>(
    rows: &'a [RequestRow],
    key: impl Fn(&'a RequestRow) -> Option<&'a str>,
) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in rows {
        if let Some(group) = key(row) {
            groups.entry(group).or_default().push(&row.tool_call_id);
        }
    }
    groups
}

/// Returns how many calls there are, and the first of them.
fn listed(calls: &[&str]) -> String {
    const SHOWN: usize = 5;
    let shown = calls.iter().take(SHOWN).map(|id| format!("`{id}`"));
    let more = if calls.len() > SHOWN { ", …" } else { "" };
    let shown: Vec<String> = shown.collect();
    format!("{} calls: {}{more}", calls.len(), shown.join(", "))
}
