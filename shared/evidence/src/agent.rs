//! An agent's turn: the calls of its stream and the harness's own, as one
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
use premath_kernel::turn::{Evidence, JoinCheckInput, RequestRow, UseRow};

/// The phase of the harness's call that the agent runs in.
const WORK: &str = "work";

/// The stop reason of a stream that is not evidence. No gate handles it, so the
/// turn is refused even if the stream's classes are not read.
const INVALID: &str = "agent_stream_invalid";

/// A step's turn by the adapter of an agent.
#[derive(Clone, Debug)]
pub struct AgentTurn<'a> {
    /// The step.
    pub step: &'a StepIdentity,
    /// The policies in force.
    pub policies: &'a TurnPolicies,
    /// The stream of the agent, folded.
    pub stream: &'a FoldedStream,
    /// The commands that the harness ran itself, in their order: the agent is
    /// `work`, and the verification comes after it.
    pub calls: &'a [ShellCall],
}

impl AgentTurn<'_> {
    /// Returns the tool call id of a phase of the harness's own.
    pub(crate) fn call_id(&self, phase: &str) -> String {
        shell::call_id(self.step, phase)
    }

    /// Returns the tool call id of one of the agent's calls.
    ///
    /// It is below the work call's: whatever id an agent makes up, none is that
    /// of a verification.
    pub(crate) fn agent_call_id(&self, id: &str) -> String {
        format!("{}/{}", self.call_id(WORK), token::encode(id))
    }

    /// Returns the call that a call was made from: a sub-agent's, or the work
    /// call that the agent runs in.
    fn parent(&self, caller: Option<&str>) -> Option<String> {
        match caller {
            Some(caller) => Some(self.agent_call_id(caller)),
            None => {
                let work = self.calls.iter().any(|call| call.phase == WORK);
                work.then(|| self.call_id(WORK))
            }
        }
    }

    fn stop_reason(&self) -> String {
        let work = self.calls.iter().find(|call| call.phase == WORK);
        let exit = work.and_then(|call| call.exit_code);
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
/// Every call of the stream is in it exactly once, below the work call: a
/// result that a later message of the model could have read as `consumed`, with
/// that message's line as provenance, any other one as `observed`. What was not
/// reported is not made up: a request without a result, and a result without a
/// request, stand as they are, and the gate refuses them. The size grows with
/// the number of calls, not with what they gave.
///
/// The stream's own classes ([`FoldedStream::classes`]) are next to the gate's;
/// a stream with a fault is refused by the gate too, by its stop reason.
pub fn agent_turn(turn: &AgentTurn<'_>) -> JoinCheckInput {
    let stream = turn.stream;
    let own = shell::rows(turn.step, turn.calls);
    let ids = stream.calls().map(|call| turn.agent_call_id(&call.id));
    let ids: Vec<String> = ids.collect();
    let of_agent = stream.calls().zip(&ids).filter_map(|(call, call_id)| {
        Some(Seen {
            call_id,
            result_digest: call.result.as_ref()?.digest.digest().into(),
            failure: call.failure(),
        })
    });
    let seen: Vec<Seen<'_>> = of_agent.chain(shell::seen(&own)).collect();
    let agent = stream.agent();
    let model = stream
        .model()
        .map(|model| format!("{}:{model}", agent.as_str()));
    let mut evidence = evidence_of(
        turn.step,
        &turn.step.step_id(),
        model.as_deref().unwrap_or(agent.as_str()),
        AGENT_NORMALIZER,
        turn.policies,
        &seen,
    );
    evidence.protocol_state.stop_reason = turn.stop_reason();
    for (call, id) in stream.calls().zip(&ids) {
        add(&mut evidence, turn, call, id);
    }
    shell::add(&mut evidence, &own);
    evidence.facts.transport = transport(turn, &own);
    bind_agent_folds(
        &mut evidence,
        &stream.state_view_digest(),
        &stream.queue_digest(),
    );
    let mut input = JoinCheckInput::new(evidence);
    input.constraints = shell::constraints(turn.policies, turn.calls);
    input
}

fn add(evidence: &mut Evidence, turn: &AgentTurn<'_>, call: &CallRecord, id: &str) {
    if let Some(request) = &call.request {
        let parent = turn.parent(request.speaker.caller.as_deref());
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
        parent_call_id: turn.parent(result.caller.as_deref()),
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

/// Returns calls and outputs in their order: what the agent did lies within
/// the work call.
fn transport(turn: &AgentTurn<'_>, own: &[ShellRow<'_>]) -> Vec<TransportRow> {
    let mut sent: Vec<(TransportEvent, String)> = Vec::new();
    let mut agent = Some(turn.stream.transport().map(|(event, call)| {
        let id = turn.agent_call_id(&call.id);
        (event, id)
    }));
    for row in own {
        sent.push((TransportEvent::Call, row.id.clone()));
        if row.call.phase == WORK {
            sent.extend(agent.take().into_iter().flatten());
        }
        if row.call.end.is_some() {
            sent.push((TransportEvent::Output, row.id.clone()));
        }
    }
    sent.extend(agent.into_iter().flatten());
    let rows = sent.into_iter().zip(0..);
    rows.map(|((event, tool_call_id), sequence)| TransportRow {
        sequence,
        event,
        tool_call_id,
    })
    .collect()
}
