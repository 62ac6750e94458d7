//! Who calls which tool, and calls that are made from code
//! (`TOOL-CALLING-HARNESS-TYPESTATE 4.1`, `4.3`).

use super::breach::{Breach, Breaches, each, none, quoted};
use super::tool::{parent, request, tools, unbound};
use super::{Case, Rule, rule};
use crate::json::canonical;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const RULES: &[Rule] = &[
    rule!(
        ToolCallerNotAllowed,
        Join: Requests,
        [6],
        callers_unbound,
        "the callers that are shown are those that callSpec.allowedCallersDigest binds"
    ),
    rule!(
        ToolCallerNotAllowed,
        Join: Requests,
        [6],
        caller_not_allowed,
        "a tool is called by one of its allowed callers"
    ),
    rule!(
        ToolProgrammaticCallerEdgeInvalid,
        Join: Requests,
        [6],
        parent_unknown,
        "a call made from code names a requested call as its parent, and no cycle is formed"
    ),
    rule!(
        ToolProgrammaticCallerEdgeInvalid,
        Join: Requests,
        [6],
        parent_runs_no_code,
        "the parent of a call made from code is a call of a code execution tool"
    ),
    rule!(
        ToolProgrammaticCallerEdgeInvalid,
        Join: Requests,
        [6],
        parent_missing,
        "a call whose caller is code names its parent call"
    ),
    rule!(
        ToolProgrammaticCallerEdgeInvalid,
        Join: Results,
        [6],
        parents_disagree,
        "request and result of a call name the same parent call"
    ),
];

fn callers_unbound<'a>(case: &Case<'a>) -> Breaches<'a> {
    let shown = tools(case).and_then(|tools| tools.allowed_callers.as_ref());
    let bound = &case.turn.call_spec.allowed_callers_digest;
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
            let found = format!("`{}` was called by {}", row.tool_name, quoted(caller));
            Breach::row("toolRequests", &row.tool_call_id, found)
        })
    }))
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
            format!("the parent `{parent}` was not requested")
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
            quoted(row.caller_id.as_deref())
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
                "the result's parent call is `{seen}`, but the request's is {}",
                quoted(asked)
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
