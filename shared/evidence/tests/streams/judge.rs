//! A stream, folded and judged as a step's turn.

pub(crate) use crate::case::{own, step};

use crate::case::{policies, verdict};
use premath_evidence::{
    Agent, AgentRound, AgentStream, AgentTurn, FoldedStream, ShellCall, agent_turn,
};
use premath_kernel::failure::FailureClass;
use premath_kernel::turn::JoinCheckInput;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// A whole stream of an agent, which ends well: `tests/streams/<agent>.jsonl`.
#[expect(clippy::disallowed_methods, reason = "samples are files")]
pub(crate) fn good(agent: Agent) -> &'static str {
    static ALL: LazyLock<BTreeMap<Agent, String>> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
        let sample = |agent: &Agent| {
            let path = folder.join(format!("{}.jsonl", agent.as_str()));
            (*agent, fs::read_to_string(path).unwrap())
        };
        Agent::ALL.iter().map(sample).collect()
    });
    &ALL[&agent]
}

pub(crate) fn fold(agent: Agent, bytes: impl AsRef<[u8]>) -> FoldedStream {
    let mut stream = AgentStream::new(agent);
    stream.feed(bytes.as_ref());
    stream.finish()
}

/// The evidence of a step whose work and verification went well.
pub(crate) fn evidence(stream: &FoldedStream) -> JoinCheckInput {
    evidence_with(stream, &[own("work"), own("verify")])
}

pub(crate) fn evidence_with(stream: &FoldedStream, calls: &[ShellCall]) -> JoinCheckInput {
    agent_turn(&AgentTurn {
        step: &step(),
        policies: &policies(),
        rounds: &[AgentRound {
            hooks: None,
            phase: "work",
            stream,
        }],
        calls,
    })
}

/// The classes by which the gate refuses to close the issue.
pub(crate) fn gate(input: &JoinCheckInput) -> BTreeSet<FailureClass> {
    verdict(input).err().unwrap_or_default()
}

/// All classes by which a stream is refused: its own and the gate's.
pub(crate) fn refusal(agent: Agent, bytes: impl AsRef<[u8]>) -> BTreeSet<FailureClass> {
    let stream = fold(agent, bytes);
    let gate = gate(&evidence(&stream));
    // The gate refuses a turn whose stream classes were not read.
    assert!(
        !gate.is_empty() || stream.classes().is_empty(),
        "the gate admits a stream that is invalid: {:?}",
        stream.faults()
    );
    gate.into_iter().chain(stream.classes()).collect()
}
