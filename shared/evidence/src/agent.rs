//! An agent's turn: the calls of its streams and the harness's own, as one
//! piece of evidence.

use crate::adapter::AGENT_NORMALIZER;
use crate::call::ShellCall;
use crate::event::{LineSource, Terminal};
use crate::fold::{CallRecord, FoldedStream};
use crate::policy::{Seen, TurnPolicies, bind_agent_folds, evidence_of};
use crate::shell::{self, ShellRow};
use premath_kernel::authority::StepIdentity;
use premath_kernel::json::token;
use premath_kernel::turn::evidence::{RequestFacts, ResultFacts, TransportRow};
use premath_kernel::turn::word::TransportEvent;
use premath_kernel::turn::{Evidence, ExecutionPattern, JoinCheckInput, RequestRow, UseRow};

/// The stop reason of a stream that is not evidence. No gate handles it, so the
/// turn is refused even if the stream's classes are not read.
const INVALID: &str = "agent_stream_invalid";

/// The stop reason of a round whose work is done.
const ENDED: &str = "end_turn";

/// A step's turn by the adapter of an agent.
#[derive(Clone, Debug)]
pub struct AgentTurn<'a> {
    /// The step.
    pub step: &'a StepIdentity,
    /// The policies in force.
    pub policies: &'a TurnPolicies,
    /// The rounds of the agent, in their order; the first is the work itself,
    /// and each later one works on in its session after a verification that
    /// failed.
    pub rounds: &'a [AgentRound<'a>],
    /// The commands that the harness ran itself, in their order: each round of
    /// the agent, and the verification after it.
    pub calls: &'a [ShellCall],
}

/// One run of an agent within a turn.
#[derive(Clone, Copy, Debug)]
pub struct AgentRound<'a> {
    /// The phase of the harness's call that the agent runs in.
    pub phase: &'static str,
    /// The stream of the agent, folded.
    pub stream: &'a FoldedStream,
}

/// A round of a turn.
#[derive(Clone, Copy)]
struct Within<'a> {
    turn: &'a AgentTurn<'a>,
    phase: &'static str,
    stream: &'a FoldedStream,
}

impl AgentTurn<'_> {
    fn rounds(&self) -> impl Iterator<Item = Within<'_>> {
        self.rounds.iter().map(|round| Within {
            turn: self,
            phase: round.phase,
            stream: round.stream,
        })
    }

    /// Returns why the turn stopped: the first reason by which a round did not
    /// end its work, else that of the last one.
    fn stop_reason(&self) -> String {
        let mut last = INVALID.to_owned();
        for round in self.rounds() {
            last = round.stop_reason();
            if last != ENDED {
                break;
            }
        }
        last
    }
}

impl Within<'_> {
    /// Returns the tool call id of the harness's call that the agent runs in.
    fn work_id(&self) -> String {
        shell::call_id(self.turn.step, self.phase)
    }

    /// Returns the tool call id of one of the agent's calls.
    ///
    /// It is below the work call's: whatever id an agent makes up, none is that
    /// of a verification or of another round.
    fn call_id(&self, id: &str) -> String {
        format!("{}/{}", self.work_id(), token::encode(id))
    }

    fn work(&self) -> Option<&ShellCall> {
        let mut calls = self.turn.calls.iter();
        calls.find(|call| call.phase == self.phase)
    }

    /// Returns the call that a call was made from: a sub-agent's, or the work
    /// call that the agent runs in.
    fn parent(&self, caller: Option<&str>) -> Option<String> {
        match caller {
            Some(caller) => Some(self.call_id(caller)),
            None => self.work().map(|_| self.work_id()),
        }
    }

    fn stop_reason(&self) -> String {
        let exit = self.work().and_then(|call| call.exit_code);
        let by_exit = exit.and_then(|code| self.stream.agent().stop_reason_of_exit(code));
        if let Some(reason) = by_exit {
            return reason.to_owned();
        }
        match self.stream.terminal() {
            _ if self.stream.fault_count() > 0 => INVALID.to_owned(),
            None => INVALID.to_owned(),
            Some(Terminal::Finished { stop_reason }) => stop_reason.clone(),
            // The agent's own word never reads as one that the gate handles.
            Some(Terminal::Failed { reason, .. }) => format!("agent_failed.{reason}"),
        }
    }
}

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
    let of_agent = rounds
        .iter()
        .flat_map(|round| round.stream.calls().map(|call| (*round, call)));
    let calls: Vec<(Within<'_>, &CallRecord, String)> = of_agent
        .map(|(round, call)| (round, call, round.call_id(&call.id)))
        .collect();
    let of_agent = calls.iter().filter_map(|(_, call, call_id)| {
        Some(Seen {
            call_id,
            result_digest: call.result.as_ref()?.digest.digest().into(),
            failure: call.failure(),
        })
    });
    let seen: Vec<Seen<'_>> = of_agent.chain(shell::seen(&own)).collect();
    let mut evidence = evidence_of(
        turn.step,
        &turn.step.step_id(),
        &model_ref(turn),
        AGENT_NORMALIZER,
        turn.policies,
        &seen,
    );
    evidence.protocol_state.stop_reason = turn.stop_reason();
    if rounds.len() > 1 {
        evidence.call_spec.execution_pattern = ExecutionPattern::EvaluatorOptimizer;
    }
    for (round, call, id) in &calls {
        add(&mut evidence, round, call, id);
    }
    shell::add(&mut evidence, &own);
    evidence.facts.transport = transport(&rounds, &own);
    let folds: Vec<(String, String)> = rounds
        .iter()
        .map(|round| {
            let stream = round.stream;
            (stream.state_view_digest(), stream.queue_digest())
        })
        .collect();
    bind_agent_folds(&mut evidence, &folds);
    let mut input = JoinCheckInput::new(evidence);
    input.constraints = shell::constraints(turn.policies, turn.calls);
    input
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
