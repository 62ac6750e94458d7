//! What holds of an agent's event stream, whatever its bytes are.

use premath_evidence::{
    Agent, AgentStream, AgentTurn, CallEnd, FoldedStream, ShellCall, TurnPolicies, agent_turn,
};
use premath_kernel::authority::{MutationMode, StepIdentity};
use premath_kernel::turn::{CallSpec, Close, JoinCheckInput, MutationBinding, normalize};
use serde_json::Value;

/// Reads a stream whole and in pieces, makes evidence of it, and has it judged.
pub fn holds(agent: Agent, bytes: &[u8]) {
    let whole = fold(agent, [bytes]);
    for size in [1, 7, 64] {
        let pieces = fold(agent, bytes.chunks(size));
        assert_eq!(told(&pieces), told(&whole), "in pieces of {size}");
    }
    let calls = [own("work"), own("verify")];
    let input = evidence(&whole, &calls);
    let requests = input.evidence.tool_requests.len() - calls.len();
    let results = input.evidence.tool_results.len() - calls.len();
    let asked = whole.calls().iter().filter(|call| call.request.is_some());
    let ended = whole.calls().iter().filter(|call| call.result.is_some());
    assert_eq!(requests, asked.count(), "each request is there once");
    assert_eq!(results, ended.count(), "each result is there once");
    normalize(input.evidence.clone()).expect("a stream is evidence, good or bad");
    if is_admitted(&input) {
        assert_eq!(whole.fault_count(), 0, "{:?}", whole.faults());
        for line in bytes.split(|byte| *byte == b'\n') {
            let blank = line.trim_ascii().is_empty();
            assert!(blank || is_object(line), "admitted with a line that is no JSON");
        }
        let closed = |call: &premath_evidence::CallRecord| {
            call.request.is_some() && call.result.is_some()
        };
        assert!(whole.calls().iter().all(closed), "admitted with an open call");
    }
}

fn is_object(line: &[u8]) -> bool {
    // A text cut in the middle of a character is none to a strict reader.
    match serde_json::from_slice::<Box<serde_json::value::RawValue>>(line) {
        Ok(raw) => raw.get().starts_with('{'),
        Err(_) => false,
    }
}

fn fold<'a>(agent: Agent, pieces: impl IntoIterator<Item = &'a [u8]>) -> FoldedStream {
    let mut stream = AgentStream::new(agent);
    for piece in pieces {
        stream.feed(piece);
    }
    stream.finish()
}

/// Everything that a stream amounts to.
fn told(stream: &FoldedStream) -> (Value, Value, String, u64, String) {
    (
        stream.state_view(),
        stream.queue_reduction(),
        format!("{:?} {:?}", stream.calls(), stream.faults()),
        stream.fault_count(),
        format!("{:?} {:?}", stream.log(), stream.rejected()),
    )
}

fn step() -> StepIdentity {
    StepIdentity {
        issue_id: "x".into(),
        worker_id: "worker.1".into(),
        owner: "worker.1".into(),
        lease_id: "l".into(),
        generation: 1,
        session_id: "hs1_20260101T000000Z_x".into(),
    }
}

fn mode() -> MutationMode {
    MutationMode::human_override("fuzz", None, jiff::Timestamp::UNIX_EPOCH)
        .expect("a reason is given")
}

fn own(phase: &'static str) -> ShellCall {
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

fn evidence(stream: &FoldedStream, calls: &[ShellCall]) -> JoinCheckInput {
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

fn is_admitted(input: &JoinCheckInput) -> bool {
    let verification = Some(format!("{}/verify", step().step_id()));
    let turn = CallSpec::bind(input).expect("evidence can be judged");
    let binding = MutationBinding::of_mode(step(), &mode(), verification);
    let joined = turn.requests().results().tool_use().join();
    joined.is_ok_and(|joined| joined.admit::<Close>(&binding).is_ok())
}
