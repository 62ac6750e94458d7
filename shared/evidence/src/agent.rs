//! An agent's turn: the calls of its streams and the harness's own, as one
//! piece of evidence.

use crate::adapter::AGENT_NORMALIZER;
use crate::binding;
use crate::context;
use crate::demand;
use crate::event::LineSource;
use crate::fold::{CallRecord, FoldedStream};
use crate::hook::HookJournal;
use crate::policy::{Seen, TurnHead};
use crate::round::{AgentCallIn, AgentTurn, Within};
use crate::shell::{self, ShellRow};
use premath_kernel::record::turn_context::TurnContext;
use premath_kernel::turn::evidence::{RequestFacts, ResultFacts, TransportRow};
use premath_kernel::turn::word::TransportEvent;
use premath_kernel::turn::{Evidence, JoinCheckInput, RequestRow, UseRow};

/// Makes the evidence of a step in which an agent worked.
///
/// Every call of a stream is in it exactly once, below the work call of its
/// round: a result that a later message of the model could have read as
/// `consumed`, with that message's line as provenance, any other one as
/// `observed`. What was not reported is not made up: a request without a result,
/// and a result without a request, stand as they are, and the gate refuses them.
/// The size grows with the number of calls, not with what they gave.
///
/// A stream's own classes ([`FoldedStream::classes`]) are next to the gate's;
/// a stream with a fault is refused by the gate too, by its stop reason.
pub fn agent_turn(turn: &AgentTurn<'_>) -> JoinCheckInput {
    let own = shell::rows(turn.step, turn.calls);
    let rounds: Vec<Within<'_>> = turn.rounds().collect();
    let calls = calls_of(&rounds);
    let seen: Vec<Seen<'_>> = seen(&calls).chain(shell::seen(&own)).collect();
    let context = context_with(&rounds, &calls, &seen);
    let head = TurnHead {
        step: turn.step,
        call_id: &turn.step.step_id(),
        model_ref: &model_ref(turn),
        normalizer_id: AGENT_NORMALIZER,
        policies: turn.policies,
    };
    let mut evidence = head.evidence(&seen, &context);
    evidence.protocol_state.stop_reason = turn.stop_reason();
    for AgentCallIn { round, call, id } in &calls {
        add(&mut evidence, round, call, id);
    }
    shell::add(&mut evidence, &own);
    evidence.facts.transport = transport(&rounds, &own);
    let mut input = JoinCheckInput::new(evidence);
    input.constraints = shell::constraints(turn.policies, turn.calls);
    binding::bind(&mut input, turn, &rounds, &calls);
    demand::bind(&mut input, turn.policies);
    input
}

/// Returns what the context rows of the turn are digests of.
pub fn agent_context(turn: &AgentTurn<'_>) -> TurnContext {
    let own = shell::rows(turn.step, turn.calls);
    let rounds: Vec<Within<'_>> = turn.rounds().collect();
    let calls = calls_of(&rounds);
    let seen: Vec<Seen<'_>> = seen(&calls).chain(shell::seen(&own)).collect();
    context_with(&rounds, &calls, &seen)
}

fn calls_of<'a>(rounds: &[Within<'a>]) -> Vec<AgentCallIn<'a>> {
    let calls = rounds.iter().flat_map(|round| {
        let round = *round;
        round.stream.calls().map(move |call| AgentCallIn {
            round,
            call,
            id: round.call_id(&call.id),
        })
    });
    calls.collect()
}

/// Returns the calls of the agent whose end was seen.
fn seen<'a>(calls: &'a [AgentCallIn<'_>]) -> impl Iterator<Item = Seen<'a>> {
    calls.iter().filter_map(|AgentCallIn { call, id, .. }| {
        Some(Seen {
            call_id: id,
            result_digest: call.result.as_ref()?.digest.digest().into(),
            failure: call.failure(),
        })
    })
}

/// Makes the context of a turn: of each round what its stream folds to, and
/// what the model received about calls that were denied.
fn context_with(
    rounds: &[Within<'_>],
    calls: &[AgentCallIn<'_>],
    seen: &[Seen<'_>],
) -> TurnContext {
    let mut context = context::of_calls(seen);
    for (number, round) in (1..).zip(rounds) {
        let name = match number {
            1 => "agent".to_owned(),
            later => format!("agent-{later}"),
        };
        let (queue, view) = (round.stream.queue_reduction(), round.stream.state_view());
        context.queues.insert(format!("queue/{name}"), queue);
        context.views.insert(format!("state/{name}"), view);
        if let Some(compaction) = round.stream.compaction_view() {
            context
                .views
                .insert(format!("compaction/{name}"), compaction);
        }
    }
    let hooks = || rounds.iter().filter_map(|round| round.hooks);
    if hooks().next().is_some() {
        let verdicts = hooks().flat_map(HookJournal::verdicts);
        let denials = verdicts.filter(|verdict| verdict.is_denial());
        let reasons = denials.map(|verdict| (&*verdict.rule_id, &*verdict.reason));
        context::add_denials(&mut context, &reasons.collect());
        let told: Vec<&String> = hooks().flat_map(HookJournal::told).collect();
        context::add_operator_texts(&mut context, &told);
    }
    for AgentCallIn { round, call, id } in calls.iter().filter(|call| call.call.result.is_some()) {
        let verdict = round.hooks.and_then(|hooks| hooks.verdict_on(&call.id));
        if let Some(verdict) = verdict.filter(|verdict| verdict.is_denial()) {
            context.add_denial(id, verdict);
        }
        if let Some(digest) = round.hooks.and_then(|hooks| hooks.told_on(&call.id)) {
            context.add_operator_text(id, digest);
        }
    }
    context
}

/// Names the agent and the model that it worked with.
fn model_ref(turn: &AgentTurn<'_>) -> String {
    let streams = || turn.rounds.iter().map(|round| round.stream);
    let agent = streams().next().map(|stream| stream.agent().as_str());
    let agent = agent.unwrap_or_default();
    match streams().find_map(FoldedStream::model) {
        Some(model) => format!("{agent}:{model}"),
        None => agent.to_owned(),
    }
}

fn add(evidence: &mut Evidence, round: &Within<'_>, call: &CallRecord, id: &str) {
    if let Some(request) = &call.request {
        let parent = round.parent(request.speaker.caller.as_deref());
        evidence.tool_requests.push(RequestRow {
            caller_id: parent.clone(),
            facts: Some(Box::new(RequestFacts {
                call_group: request.speaker.round.as_deref().map(str::to_owned),
                input_digest: Some(request.input_digest.digest()),
                parent_call_id: parent,
                source_ref: Some(request.source.reference()),
                synthesized: request.synthesized,
                ..RequestFacts::default()
            })),
            ..RequestRow::new(id, &*request.tool)
        });
    }
    let Some(result) = &call.result else { return };
    let digest = result.digest.digest();
    let mut row = result.end.row(id, &digest);
    row.facts = Some(Box::new(ResultFacts {
        parent_call_id: round.parent(result.caller.as_deref()),
        payload_bytes: Some(result.bytes),
        provenance_ref: Some(result.source.reference()),
        ..ResultFacts::default()
    }));
    evidence.tool_results.push(row);
    let used = match result.read_at.as_ref().map(LineSource::reference) {
        Some(reader) => UseRow::consumed(id, reader),
        None => UseRow::observed(id),
    };
    evidence.tool_use.push(UseRow {
        result_digest: Some(digest),
        ..used
    });
}

/// Returns calls and outputs in their order: what the agent did in a round lies
/// within its work call.
fn transport(rounds: &[Within<'_>], own: &[ShellRow<'_>]) -> Vec<TransportRow> {
    let of = |round: &Within<'_>| {
        let round = *round;
        let sent = round.stream.transport();
        sent.map(move |(event, call)| (event, round.call_id(&call.id)))
            .collect::<Vec<_>>()
    };
    let is_of = |round: &&Within<'_>, row: &ShellRow<'_>| round.phase == row.call.phase;
    let mut sent: Vec<(TransportEvent, String)> = Vec::new();
    for row in own {
        sent.push((TransportEvent::Call, row.id.clone()));
        let round = rounds.iter().find(|round| is_of(round, row));
        sent.extend(round.map(of).into_iter().flatten());
        if row.call.end.is_some() {
            sent.push((TransportEvent::Output, row.id.clone()));
        }
    }
    let is_alone = |round: &&Within<'_>| !own.iter().any(|row| is_of(round, row));
    sent.extend(rounds.iter().filter(is_alone).flat_map(of));
    let rows = sent.into_iter().zip(0..);
    rows.map(|((event, tool_call_id), sequence)| TransportRow {
        sequence,
        event,
        tool_call_id,
    })
    .collect()
}
