//! What holds of an agent's event stream, whatever its bytes are.

#[path = "../../../../shared/evidence/tests/case/mod.rs"]
mod case;

use case::{own, policies, step, verdict};
use premath_evidence::{Agent, AgentRound, AgentStream, AgentTurn, FoldedStream, ShellCall, agent_turn};
use premath_kernel::turn::{JoinCheckInput, normalize};
use serde_json::Value;

/// Reads a stream whole and in pieces, makes evidence of it, and has it judged.
pub fn holds(agent: Agent, bytes: &[u8]) {
    let whole = fold(agent, [bytes]);
    for size in [1, 7, 64] {
        let pieces = fold(agent, bytes.chunks(size));
        assert_eq!(summary(&pieces), summary(&whole), "in pieces of {size}");
    }
    let calls = [own("work"), own("verify")];
    let input = evidence(&whole, &calls);
    let requests = input.evidence.tool_requests.len() - calls.len();
    let results = input.evidence.tool_results.len() - calls.len();
    let asked = whole.calls().filter(|call| call.request.is_some());
    let ended = whole.calls().filter(|call| call.result.is_some());
    assert_eq!(requests, asked.count(), "each request is there once");
    assert_eq!(results, ended.count(), "each result is there once");
    normalize(input.evidence.clone()).expect("a stream is evidence, good or bad");
    if verdict(&input).is_ok() {
        assert_eq!(whole.fault_count(), 0, "{:?}", whole.faults());
        for line in bytes.split(|byte| *byte == b'\n') {
            let blank = line.trim_ascii().is_empty();
            assert!(blank || is_object(line), "admitted with a line that is not JSON");
        }
        let closed = |call: &premath_evidence::CallRecord| {
            call.request.is_some() && call.result.is_some()
        };
        assert!(whole.calls().all(closed), "admitted with an open call");
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
fn summary(stream: &FoldedStream) -> (Value, Value, String, u64, String) {
    (
        stream.state_view(),
        stream.queue_reduction(),
        format!("{:?} {:?}", stream.calls().collect::<Vec<_>>(), stream.faults()),
        stream.fault_count(),
        format!("{:?} {:?}", stream.log(), stream.rejected()),
    )
}

fn evidence(stream: &FoldedStream, calls: &[ShellCall]) -> JoinCheckInput {
    agent_turn(&AgentTurn {
        step: &step(),
        policies: &policies(),
        rounds: &[AgentRound {
            phase: "work",
            stream,
        }],
        calls,
    })
}
