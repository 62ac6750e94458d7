//! Why the turn stopped, and whether the loop may continue (`HARNESS-TYPESTATE
//! 5`, `TOOL-CALLING-HARNESS-TYPESTATE 4.1`, `4.5`).

use super::breach::{Breach, Breaches, each, quoted, when};
use super::{Case, Rule, rule};
use crate::turn::evidence::{Policy, ProtocolStatePolicy, StopPolicy};
use crate::turn::word::{Checkpoint, StopReason, Word};

pub(super) const RULES: &[Rule] = &[
    rule!(
        ProtocolStopReasonUnhandled,
        Join,
        [2],
        stop_reason_unhandled,
        "the turn stops by tool_use, pause_turn, max_tokens or end_turn"
    ),
    rule!(
        ProtocolStopReasonUnhandled,
        Join,
        [2],
        stop_reason_refused,
        "the turn stops by a reason that callSpec.protocolStatePolicy handles"
    ),
    rule!(
        ProtocolStopReasonUnhandled,
        Join,
        [7],
        continuation_refused,
        "the loop continues only after a reason of protocolStatePolicy.continueOn"
    ),
    rule!(
        ProtocolStopReasonUnhandled,
        Join,
        [7],
        turns_used_up,
        "the loop ends with the last turn of callSpec.stopPolicy.maxTurns"
    ),
    rule!(
        ProtocolStopReasonUnhandled,
        Join,
        [7],
        checkpoint_missing,
        "facts.checkpointRef names where a person looked, where stopPolicy asks for it at every turn"
    ),
    rule!(
        ProtocolStopReasonUnhandled,
        Mutation,
        [7],
        checkpoint_before_mutation_missing,
        "facts.checkpointRef names where a person looked, where stopPolicy asks for it before a change"
    ),
    rule!(
        ProtocolStopReasonUnhandled,
        Mutation,
        [7],
        turn_unshown,
        "a turn that binds stopPolicy.maxTurns says in facts.turn which one it is"
    ),
];

fn stop_reason(case: &Case<'_>) -> Option<StopReason> {
    StopReason::read(&case.turn.protocol_state.stop_reason)
}

fn stop_reason_unhandled<'a>(case: &Case<'a>) -> Breaches<'a> {
    let reason = &case.turn.protocol_state.stop_reason;
    when(
        stop_reason(case).is_none(),
        "protocolState.stopReason",
        move || format!("stop reason `{reason}` is not handled"),
    )
}

fn stop_reason_refused<'a>(case: &Case<'a>) -> Breaches<'a> {
    let policy = policy(case);
    let refused = stop_reason(case)
        .filter(|reason| policy.is_some_and(|p| !p.handled_stop_reasons.contains(reason)));
    each(refused.into_iter().map(|reason| {
        let found = format!("the policy does not handle `{}`", reason.as_str());
        Breach::new("protocolState.stopReason", found)
    }))
}

fn continuation_refused<'a>(case: &Case<'a>) -> Breaches<'a> {
    let state = &case.turn.protocol_state;
    let on = policy(case).and_then(|policy| policy.continue_on.as_ref());
    let refused = on.is_some_and(|on| !stop_reason(case).is_some_and(|r| on.contains(&r)));
    when(
        state.continuation_allowed && refused,
        "protocolState.continuationAllowed",
        move || format!("the loop continues after `{}`", state.stop_reason),
    )
}

fn turns_used_up<'a>(case: &Case<'a>) -> Breaches<'a> {
    let may_continue = case.turn.protocol_state.continuation_allowed;
    let most = stop_policy(case).and_then(|policy| policy.max_turns);
    let over = most.zip(case.turn.facts.turn).filter(|(most, turn)| {
        // The last turn may run, and nothing may follow it.
        turn > most || turn == most && may_continue
    });
    each(over.into_iter().map(move |(most, turn)| {
        let more = if may_continue {
            ", and the loop continues"
        } else {
            ""
        };
        Breach::new("facts.turn", format!("turn {turn} of at most {most}{more}"))
    }))
}

fn turn_unshown<'a>(case: &Case<'a>) -> Breaches<'a> {
    let most = stop_policy(case).and_then(|policy| policy.max_turns);
    let unshown = most.filter(|_| case.turn.facts.turn.is_none());
    each(unshown.into_iter().map(|most| {
        let found = format!("nothing, and at most {most} turns may run");
        Breach::new("facts.turn", found)
    }))
}

fn checkpoint_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    checkpoint(case, Checkpoint::EveryTurn)
}

fn checkpoint_before_mutation_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    checkpoint(case, Checkpoint::BeforeMutation)
}

fn checkpoint<'a>(case: &Case<'a>, asked: Checkpoint) -> Breaches<'a> {
    let asks = stop_policy(case).is_some_and(|policy| policy.checkpoint == asked);
    let looked = case.turn.facts.checkpoint_ref.as_deref();
    when(asks && looked.is_none(), "facts.checkpointRef", move || {
        quoted(looked)
    })
}

fn policy<'a>(case: &Case<'a>) -> Option<&'a ProtocolStatePolicy> {
    let policy = case.turn.call_spec.protocol_state_policy.as_ref();
    policy.and_then(Policy::content)
}

fn stop_policy<'a>(case: &Case<'a>) -> Option<&'a StopPolicy> {
    let policy = case.turn.call_spec.stop_policy.as_ref();
    policy.and_then(Policy::content)
}
