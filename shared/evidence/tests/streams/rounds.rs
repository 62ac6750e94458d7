//! The rounds of an agent that is run again in its session.

use crate::case::{own, policies, step};
use crate::judge::{fold, gate, good};
use premath_evidence::{
    Agent, AgentRound, AgentStream, AgentTurn, CallEnd, FoldedStream, ShellCall, Tokens, agent_turn,
};
use premath_kernel::failure::FailureClass;
use premath_kernel::turn::word::TransportEvent;
use premath_kernel::turn::{ExecutionPattern, JoinCheckInput};
use std::collections::BTreeSet;

/// A verification that failed before the one that passed.
fn red() -> ShellCall {
    let end = CallEnd::Error {
        class: "check_failed".into(),
        retryable: false,
        message: "no".into(),
    };
    ShellCall {
        exit_code: Some(1),
        end: Some(end),
        ..own("verify-red")
    }
}

fn repaired(first: &FoldedStream, second: &FoldedStream) -> JoinCheckInput {
    let calls = [own("work"), red(), own("work-2"), own("verify")];
    let round = |phase, stream| AgentRound {
        phase,
        stream,
        hooks: None,
    };
    agent_turn(&AgentTurn {
        step: &step(),
        policies: &policies(),
        rounds: &[round("work", first), round("work-2", second)],
        calls: &calls,
    })
}

#[test]
fn a_turn_that_was_repaired_closes_with_every_call_of_every_round() {
    for agent in Agent::ALL.iter().copied() {
        let stream = || fold(agent, good(agent));
        let input = repaired(&stream(), &stream());
        assert_eq!(gate(&input), BTreeSet::new(), "{agent:?}");
        let evidence = &input.evidence;
        // A run with a sub-agent is one of an orchestrator, however often it ran.
        let pattern = &evidence.call_spec.execution_pattern;
        let expected = match evidence.facts.branches.is_empty() {
            true => ExecutionPattern::EvaluatorOptimizer,
            false => ExecutionPattern::OrchestratorWorkers,
        };
        assert_eq!(*pattern, expected);
        let calls = stream().calls().count();
        let rows = &evidence.tool_requests;
        let of = |round: &str| {
            let start = format!("{}/{round}/", step().step_id());
            rows.iter()
                .filter(|row| row.tool_call_id.starts_with(&start))
                .count()
        };
        assert_eq!([of("work"), of("work-2")], [calls, calls]);
        assert_eq!(rows.len(), 2 * calls + 4);
        let failed = evidence
            .tool_results
            .iter()
            .find(|row| row.tool_call_id.ends_with("/verify-red"));
        let code = failed.and_then(|row| row.error_code.as_deref());
        assert_eq!(code, Some("check_failed"));
        let views = evidence.state_views.iter().map(|row| &*row.view_id);
        let views: Vec<_> = views.collect();
        assert_eq!(views, ["state/agent", "state/agent-2", "state/step"]);
    }
}

#[test]
fn what_a_round_did_lies_within_its_work_call() {
    let stream = fold(Agent::Codex, good(Agent::Codex));
    let input = repaired(&stream, &stream);
    let rows = &input.evidence.facts.transport;
    let work = format!("{}/work-2", step().step_id());
    let place = |event| {
        let is = |row: &premath_kernel::turn::evidence::TransportRow| {
            row.event == event && row.tool_call_id == work
        };
        rows.iter().position(is).unwrap()
    };
    let within = place(TransportEvent::Call)..place(TransportEvent::Output);
    for (at, row) in rows.iter().enumerate() {
        let is_below = row.tool_call_id.starts_with(&format!("{work}/"));
        assert!(!is_below || within.contains(&at), "{row:?}");
    }
    assert!(within.len() > 1);
}

#[test]
fn one_round_that_is_not_evidence_refuses_the_turn() {
    let stream = fold(Agent::Codex, good(Agent::Codex));
    let text = good(Agent::Codex);
    let cut = fold(Agent::Codex, &text[..text.len() / 2]);
    for (first, second) in [(&cut, &stream), (&stream, &cut)] {
        let classes = gate(&repaired(first, second));
        assert!(
            classes.contains(&FailureClass::ProtocolStopReasonUnhandled),
            "{classes:?}"
        );
    }
}

#[test]
fn what_a_session_used_before_is_not_counted_again() {
    let lines = concat!(
        r#"{"type":"thread.started","thread_id":"t"}"#,
        "\n",
        r#"{"type":"turn.started"}"#,
        "\n",
        r#"{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":20}}"#,
        "\n",
    );
    let first = fold(
        Agent::Codex,
        lines.replace("100", "60").replace("20}", "5}"),
    );
    let mut second = AgentStream::resumed(Agent::Codex, first.spent());
    second.feed(lines.as_bytes());
    let second = second.finish();
    let tokens = |input, cached, output| Tokens {
        input,
        cached,
        output,
    };
    assert_eq!(second.spent().tokens, Some(tokens(40, 0, 15)));
    let both = first.spent().plus(second.spent());
    assert_eq!(both.tokens, Some(tokens(100, 40, 20)));
    // The others count what they used themselves.
    let alone = fold(Agent::Gemini, good(Agent::Gemini));
    let mut again = AgentStream::resumed(Agent::Gemini, alone.spent());
    again.feed(good(Agent::Gemini).as_bytes());
    assert_eq!(again.finish().spent(), alone.spent());
}
