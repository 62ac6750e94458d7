//! Requests, results and uses, and which tools may be called
//! (`HARNESS-TYPESTATE 5`, `7`; `TOOL-CALLING-HARNESS-TYPESTATE 4.1`–`4.5`).

use super::breach::{Breach, Breaches, each, none, quoted, when};
use super::{Case, Rule, rule};
use crate::turn::constraints::ToolConstraints;
use crate::turn::evidence::{ParallelPolicy, Policy, RequestRow, ToolPolicy};
use crate::turn::word::ActionMode;
use std::collections::BTreeMap;

pub(super) const RULES: &[Rule] = &[
    rule!(
        ToolResultMissing,
        Join: Results,
        [2],
        result_missing,
        "every requested call has exactly one row in toolResults"
    ),
    rule!(
        ToolResultOrphan,
        Join: Results,
        [2],
        result_orphan,
        "every row of toolResults belongs to a row of toolRequests"
    ),
    rule!(
        ToolUseMissing,
        Join: Use,
        [2],
        use_missing,
        "every row of toolResults has a row in toolUse"
    ),
    rule!(
        ToolUseWithoutResult,
        Join: Use,
        [2],
        use_without_result,
        "every row of toolUse belongs to a row of toolResults"
    ),
    rule!(ToolJoinIncomplete, Join, [2], derived join_incomplete,
        "requests, results and uses match; fix the other classes first"),
    rule!(
        ToolJoinIncomplete,
        Join,
        [4],
        branch_open,
        "every branch of facts.branches has closed its own join before anything is built on it"
    ),
    rule!(
        ToolSchemaInvalid,
        Join: Results,
        [2],
        error_untyped,
        "every error row has errorCode, retryable and errorMessage, by itself or in rawError"
    ),
    rule!(
        ToolSchemaInvalid,
        Join: Requests,
        [4],
        text_calls_unadapted,
        "in text mode callSpec.textAdapterProfile names the adapter that made calls of the text"
    ),
    rule!(
        ToolSchemaInvalid,
        Join: Requests,
        [4],
        action_holds_many,
        "outside of code mode every action object holds one call"
    ),
    rule!(
        ToolSchemaInvalid,
        Join: Requests,
        [4],
        schema_is_another,
        "every call was checked against the schema that toolPolicy pins for its tool"
    ),
    rule!(
        ToolUnknownOrDisallowed,
        Join: Requests,
        [5],
        tool_disallowed,
        "only tools of callSpec.toolPolicy are called"
    ),
    rule!(
        ToolParallelPolicyViolation,
        Join: Requests,
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
            .map(|id| Breach::row("toolResults", id, "this call was not requested")),
    )
}

fn use_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    let ids = &case.turn.join_state.missing_use_call_ids;
    each(
        ids.iter()
            .map(|id| Breach::row("toolResults", id, "no use row for this result")),
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
        "requests, results and uses do not match".to_owned()
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
            let found = format!("checked against {}, pinned is `{pinned}`", quoted(checked));
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

pub(super) fn tools<'a>(case: &Case<'a>) -> Option<&'a ToolConstraints> {
    case.constraints.tool_constraints.as_ref()
}

fn tool_policy<'a>(case: &Case<'a>) -> Option<&'a ToolPolicy> {
    let policy = case.turn.call_spec.tool_policy.as_ref();
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
    let policy = case.turn.call_spec.parallel_policy.as_ref()?;
    let ParallelPolicy {
        admissible,
        max_branches,
    } = policy.content()?;
    if *admissible { *max_branches } else { Some(1) }
}

/// Rows are sorted by their id.
pub(super) fn request<'a>(requests: &'a [RequestRow], id: &str) -> Option<&'a RequestRow> {
    let place = requests.binary_search_by(|row| row.tool_call_id.as_str().cmp(id));
    requests.get(place.ok()?)
}

pub(super) fn parent(row: &RequestRow) -> Option<&str> {
    row.facts.as_ref()?.parent_call_id.as_deref()
}

/// Reports where the content that is shown is not the one that is bound.
pub(super) fn unbound(at: &str, shown: String, bound: &Option<String>) -> Option<Breach> {
    let bound = bound.as_deref();
    (bound != Some(shown.as_str())).then(|| {
        Breach::new(
            at,
            format!("its digest is `{shown}`, bound is {}", quoted(bound)),
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
