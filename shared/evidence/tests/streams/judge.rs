//! A stream, folded and judged as a step's turn.

use premath_evidence::{
    Agent, AgentStream, AgentTurn, CallEnd, FoldedStream, ShellCall, TurnPolicies, agent_turn,
};
use premath_kernel::authority::{MutationMode, StepIdentity};
use premath_kernel::failure::FailureClass;
use premath_kernel::turn::{CallSpec, Close, JoinCheckInput, MutationBinding};
use std::collections::BTreeSet;

/// A whole stream of an agent, which ends well.
pub(crate) fn good(agent: Agent) -> &'static str {
    match agent {
        Agent::Claude => include_str!("claude.jsonl"),
        Agent::Codex => include_str!("codex.jsonl"),
        Agent::Gemini => include_str!("gemini.jsonl"),
        Agent::OpenCode => include_str!("opencode.jsonl"),
    }
}

pub(crate) fn fold(agent: Agent, bytes: impl AsRef<[u8]>) -> FoldedStream {
    let mut stream = AgentStream::new(agent);
    stream.feed(bytes.as_ref());
    stream.finish()
}

pub(crate) fn step() -> StepIdentity {
    StepIdentity {
        issue_id: "x".into(),
        worker_id: "worker.1".into(),
        owner: "worker.1".into(),
        lease_id: "l".into(),
        generation: 1,
        session_id: "hs1_20260101T000000Z_x".into(),
    }
}

pub(crate) fn mode() -> MutationMode {
    MutationMode::human_override("test", None, jiff::Timestamp::UNIX_EPOCH).unwrap()
}

pub(crate) fn own(phase: &'static str) -> ShellCall {
    ShellCall {
        phase,
        command_digest: "sha256:c".into(),
        prompt_digest: None,
        workdir: "/w".into(),
        sandbox_ref: None,
        exit_code: Some(0),
        signal: None,
        stdout_sha256: "o".into(),
        stderr_sha256: "e".into(),
        truncated: false,
        end: Some(CallEnd::Ok),
        witness_ref: format!("ciwitness://{phase}"),
    }
}

/// The evidence of a step whose work and verification went well.
pub(crate) fn evidence(stream: &FoldedStream) -> JoinCheckInput {
    evidence_with(stream, &[own("work"), own("verify")])
}

pub(crate) fn evidence_with(stream: &FoldedStream, calls: &[ShellCall]) -> JoinCheckInput {
    let policies = TurnPolicies {
        profile: None,
        mutation: mode().policy_digest(),
        governance: "pol1_x".into(),
    };
    agent_turn(&AgentTurn {
        step: &step(),
        policies: &policies,
        stream,
        calls,
    })
}

/// The classes by which the gate refuses to close the issue.
pub(crate) fn gate(input: &JoinCheckInput) -> BTreeSet<FailureClass> {
    let verification = Some(format!("{}/verify", step().step_id()));
    let turn = CallSpec::bind(input).unwrap();
    let joined = match turn.requests().results().tool_use().join() {
        Ok(joined) => joined,
        Err(refused) => return refused.into_parts().1,
    };
    let binding = MutationBinding::of_mode(step(), &mode(), verification);
    match joined.admit::<Close>(&binding) {
        Ok(_) => BTreeSet::new(),
        Err(refused) => refused.into_parts().1,
    }
}

/// All classes by which a stream is refused: its own and the gate's.
pub(crate) fn refusal(agent: Agent, bytes: impl AsRef<[u8]>) -> BTreeSet<FailureClass> {
    let stream = fold(agent, bytes);
    let gate = gate(&evidence(&stream));
    // Whoever forgets to ask the stream is told by the gate.
    assert!(
        !gate.is_empty() || stream.classes().is_empty(),
        "the gate admits a stream that is invalid: {:?}",
        stream.faults()
    );
    gate.into_iter().chain(stream.classes()).collect()
}
