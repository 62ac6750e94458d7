//! How calls and outputs were transported, and how results were cut
//! (`TOOL-CALLING-HARNESS-TYPESTATE 4.3`, `4.5`).

use super::breach::{Breach, Breaches, each, none, when};
use super::{Case, Rule, rule};
use crate::turn::evidence::{Policy, TransportPolicy, TruncationPolicy};
use crate::turn::normal::Normalized;
use crate::turn::word::{PreContextFilter, TransportEvent, TransportOrdering};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub(super) const RULES: &[Rule] = &[
    rule!(
        ProtocolParallelTransportOrderInvalid,
        Join,
        [10],
        order_judged_invalid,
        "protocolConstraints.parallelTransportOrderValid is not false"
    ),
    rule!(
        ProtocolParallelTransportOrderInvalid,
        Join,
        [10],
        output_without_call,
        "in facts.transport every call is sent once, and its output comes once and later"
    ),
    rule!(
        ProtocolParallelTransportOrderInvalid,
        Join,
        [10],
        transport_incomplete,
        "facts.transport shows every call that was requested and every output that came"
    ),
    rule!(
        ProtocolParallelTransportOrderInvalid,
        Join,
        [10],
        calls_overlap,
        "without parallelToolCalls an output comes before the next call of the same parent is sent"
    ),
    rule!(
        ProtocolParallelTransportOrderInvalid,
        Join,
        [10],
        outputs_out_of_order,
        "under strict ordering outputs come in the order of their calls, those of one parent together"
    ),
    rule!(
        ToolResponseTruncationPolicyViolation,
        Join,
        [10],
        truncation_judged_invalid,
        "truncationConstraints.valid is true where required is"
    ),
    rule!(
        ToolResponseTruncationPolicyViolation,
        Join,
        [10],
        cut_unlike_policy,
        "a cut result keeps no more than maxBytes, less than there was, and bears the policy's marker"
    ),
    rule!(
        ToolResponseTruncationPolicyViolation,
        Join,
        [10],
        shown_whole_and_too_large,
        "a result of more than maxBytes is truncated, and facts.truncation records it"
    ),
    rule!(
        ToolResponseTruncationPolicyViolation,
        Join,
        [10],
        cut_unlike_shown,
        "as many bytes are shown as facts.truncation says are kept"
    ),
    rule!(
        ToolResponseTruncationPolicyViolation,
        Join,
        [9],
        filtered_against_policy,
        "nothing is filtered where preContextFilterPolicy is forbidden"
    ),
];

fn order_judged_invalid<'a>(case: &Case<'a>) -> Breaches<'a> {
    let block = case.constraints.protocol_constraints.as_ref();
    let verdict = block.and_then(|block| block.parallel_transport_order_valid);
    when(
        verdict == Some(false),
        "protocolConstraints.parallelTransportOrderValid",
        || "false".to_owned(),
    )
}

fn output_without_call<'a>(case: &Case<'a>) -> Breaches<'a> {
    let (mut called, mut ended) = (BTreeSet::new(), BTreeSet::new());
    each(case.turn.facts.transport.iter().filter_map(move |row| {
        let id = row.tool_call_id.as_str();
        let found = match row.event {
            TransportEvent::Call if called.insert(id) => return None,
            TransportEvent::Call => format!("the call `{id}` is sent again"),
            TransportEvent::Output if !called.contains(id) => {
                format!("the output of `{id}` comes before its call")
            }
            TransportEvent::Output if ended.insert(id) => return None,
            TransportEvent::Output => format!("the output of `{id}` comes again"),
        };
        Some(Breach::row(
            "facts.transport",
            &row.sequence.to_string(),
            found,
        ))
    }))
}

fn transport_incomplete<'a>(case: &Case<'a>) -> Breaches<'a> {
    let rows = &case.turn.facts.transport;
    if rows.is_empty() {
        return none();
    }
    let sent = |event| -> BTreeSet<&str> {
        let rows = rows.iter().filter(|row| row.event == event);
        rows.map(|row| row.tool_call_id.as_str()).collect()
    };
    let join = &case.turn.join_state;
    let lists = [
        (TransportEvent::Call, &join.requested_call_ids, "requested"),
        (TransportEvent::Output, &join.result_call_ids, "answered"),
    ];
    each(lists.into_iter().flat_map(move |(event, ids, what)| {
        let sent = sent(event);
        let known: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
        let differing: Vec<&str> = sent.symmetric_difference(&known).copied().collect();
        differing.into_iter().map(move |id| {
            let found = if known.contains(id) {
                format!("`{id}` was {what}, and its {} was not sent", event.as_str())
            } else {
                format!(
                    "the {} of `{id}` was sent, and it was not {what}",
                    event.as_str()
                )
            };
            Breach::new("facts.transport", found)
        })
    }))
}

fn calls_overlap<'a>(case: &Case<'a>) -> Breaches<'a> {
    if policy(case).is_none_or(|policy| policy.parallel_tool_calls) {
        return none();
    }
    let turn = case.turn;
    let mut awaited: BTreeMap<Option<&str>, &str> = BTreeMap::new();
    each(turn.facts.transport.iter().filter_map(move |row| {
        let id = row.tool_call_id.as_str();
        let within = parent(turn, id);
        match row.event {
            TransportEvent::Output => {
                if awaited.get(&within) == Some(&id) {
                    awaited.remove(&within);
                }
                None
            }
            TransportEvent::Call => {
                let earlier = awaited.insert(within, id)?;
                let found = format!("`{id}` is called while `{earlier}` is awaited");
                Some(Breach::row(
                    "facts.transport",
                    &row.sequence.to_string(),
                    found,
                ))
            }
        }
    }))
}

fn outputs_out_of_order<'a>(case: &Case<'a>) -> Breaches<'a> {
    if policy(case).is_none_or(|policy| policy.ordering != TransportOrdering::Strict) {
        return none();
    }
    let turn = case.turn;
    let mut awaited: BTreeMap<Option<&str>, VecDeque<&str>> = BTreeMap::new();
    each(turn.facts.transport.iter().filter_map(move |row| {
        let id = row.tool_call_id.as_str();
        let awaited = awaited.entry(parent(turn, id)).or_default();
        if row.event == TransportEvent::Call {
            awaited.push_back(id);
            return None;
        }
        let place = awaited.iter().position(|call| *call == id)?;
        awaited.remove(place);
        let first = *awaited.front().filter(|_| place > 0)?;
        let found = format!("the output of `{id}` comes before that of `{first}`");
        Some(Breach::row(
            "facts.transport",
            &row.sequence.to_string(),
            found,
        ))
    }))
}

/// Returns the call that made a call: what code calls lies within its own call,
/// and has an order of its own.
fn parent<'a>(turn: &'a Normalized, id: &str) -> Option<&'a str> {
    let requests = &turn.tool_requests;
    let place = requests.binary_search_by(|row| row.tool_call_id.as_str().cmp(id));
    let facts = requests.get(place.ok()?)?.facts.as_ref()?;
    facts.parent_call_id.as_deref()
}

fn truncation_judged_invalid<'a>(case: &Case<'a>) -> Breaches<'a> {
    let block = case.constraints.truncation_constraints.as_ref();
    when(
        block.is_some_and(|block| block.required && !block.valid),
        "truncationConstraints.valid",
        || "false, and the policy is required".to_owned(),
    )
}

fn cut_unlike_policy<'a>(case: &Case<'a>) -> Breaches<'a> {
    let policy = cuts(case);
    each(case.turn.tool_results.iter().filter_map(move |row| {
        let cut = row.facts.as_ref()?.truncation.as_ref()?;
        let found = if cut.kept_bytes >= cut.original_bytes {
            format!(
                "{} of {} bytes kept is not a cut",
                cut.kept_bytes, cut.original_bytes
            )
        } else if cut.marker.is_empty() {
            "the cut bears no marker".to_owned()
        } else if policy.is_some_and(|policy| cut.kept_bytes > policy.max_bytes) {
            let most = policy.map_or(0, |policy| policy.max_bytes);
            format!("{} bytes kept; at most {most}", cut.kept_bytes)
        } else if policy.is_some_and(|policy| cut.marker != policy.marker) {
            format!("the cut is marked `{}`", cut.marker)
        } else {
            return None;
        };
        Some(Breach::row("toolResults", &row.tool_call_id, found))
    }))
}

fn shown_whole_and_too_large<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(policy) = cuts(case) else {
        return none();
    };
    each(case.turn.tool_results.iter().filter_map(move |row| {
        let facts = row.facts.as_ref()?;
        let bytes = facts
            .payload_bytes
            .filter(|bytes| *bytes > policy.max_bytes)?;
        facts.truncation.is_none().then(|| {
            let found = format!("{bytes} bytes shown whole; at most {}", policy.max_bytes);
            Breach::row("toolResults", &row.tool_call_id, found)
        })
    }))
}

fn cut_unlike_shown<'a>(case: &Case<'a>) -> Breaches<'a> {
    each(case.turn.tool_results.iter().filter_map(|row| {
        let facts = row.facts.as_ref()?;
        let (bytes, cut) = (facts.payload_bytes?, facts.truncation.as_ref()?);
        (bytes != cut.kept_bytes).then(|| {
            let found = format!("{bytes} bytes shown, {} kept", cut.kept_bytes);
            Breach::row("toolResults", &row.tool_call_id, found)
        })
    }))
}

fn filtered_against_policy<'a>(case: &Case<'a>) -> Breaches<'a> {
    let filter = case.turn.call_spec.pre_context_filter_policy;
    if filter != Some(PreContextFilter::Forbidden) {
        return none();
    }
    each(case.turn.tool_results.iter().filter_map(|row| {
        let usage = row.facts.as_ref()?.token_usage.as_ref()?;
        (usage.filtered < usage.unfiltered).then(|| {
            let found = format!("{} of {} tokens shown", usage.filtered, usage.unfiltered);
            Breach::row("toolResults", &row.tool_call_id, found)
        })
    }))
}

fn policy<'a>(case: &Case<'a>) -> Option<&'a TransportPolicy> {
    let policy = case.turn.call_spec.tool_transport_policy.as_ref();
    policy.and_then(Policy::content)
}

fn cuts<'a>(case: &Case<'a>) -> Option<&'a TruncationPolicy> {
    let spec = &case.turn.call_spec;
    let policy = spec.tool_response_truncation_policy.as_ref();
    policy.and_then(Policy::content)
}
