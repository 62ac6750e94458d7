//! An agent's end: its classes, what it said, and its witness.

use super::listener::Overdue;
use premath_evidence::{FoldedStream, Terminal};
use premath_kernel::failure::FailureClass;
use premath_kernel::retry::classes_of;
use premath_kernel::silence::AgentPhase;
use premath_kernel::trajectory::TokenCounts;
use premath_kernel::witness::{AgentFacts, CommandEnd, EndCause};
use std::path::Path;

/// Names the classes of an agent's end; none where it finished and its stream
/// is whole.
///
/// What made us end it comes first, for what the stream lacks then follows from
/// that; so does a signal that was not ours. A limit of its provider comes before
/// anything that followed from it; an agent that ended badly without a word was
/// not up at all.
pub(super) fn agent_classes(
    end: &CommandEnd,
    words: Vec<String>,
    stream: &FoldedStream,
    overdue: Option<Overdue>,
) -> Vec<String> {
    let mut classes: Vec<String> = Vec::new();
    let mut add = |class: &str| {
        if !classes.iter().any(|known| known == class) {
            classes.push(class.to_owned());
        }
    };
    let of_stream = stream.classes();
    if of_stream.contains(&FailureClass::UsageLimit) {
        add(FailureClass::UsageLimit.as_str());
    }
    let ended_by_us = matches!(overdue, Some(Overdue::Silent(..) | Overdue::OverBudget));
    let cut_short = end.cause == EndCause::Limit || ended_by_us;
    if !cut_short && !is_up(stream) && end.code != Some(0) {
        // Also where the shell could not find it.
        let own = classes_of(end, words, FailureClass::ExecutorUnavailable);
        own.iter().for_each(|class| add(class));
        return classes;
    }
    if end.cause == EndCause::Exited && end.signal.is_some() {
        add(FailureClass::FlakyExecution.as_str());
    }
    if !cut_short {
        of_stream.iter().for_each(|class| add(class.as_str()));
    }
    let failed = matches!(stream.terminal(), Some(Terminal::Failed { .. }));
    match overdue {
        Some(Overdue::Silent(..)) => add(FailureClass::FlakyExecution.as_str()),
        Some(Overdue::OverBudget) => add(FailureClass::BudgetExceeded.as_str()),
        Some(Overdue::TooLong) => add(FailureClass::AgentStreamInvalid.as_str()),
        // It had said that it was done: its evidence counts.
        Some(Overdue::Lingering) => {}
        None => {
            let own = classes_of(end, words, FailureClass::WorkFailed);
            own.iter().for_each(|class| add(class));
        }
    }
    if failed && classes.is_empty() {
        classes.push(FailureClass::WorkFailed.as_str().to_owned());
    }
    classes
}

fn is_up(stream: &FoldedStream) -> bool {
    stream.log().lines > 0
}

/// Says what went wrong with an agent, on one line.
pub(super) fn said_by_agent(
    stream: &FoldedStream,
    overdue: Option<Overdue>,
    stderr: &Path,
) -> String {
    match overdue {
        Some(Overdue::Silent(phase, limit)) => {
            let limit = humantime::format_duration(limit);
            return match phase {
                AgentPhase::Starting => format!("the agent said nothing for {limit}"),
                AgentPhase::Calling => format!("a tool call of the agent was silent for {limit}"),
                AgentPhase::Thinking | AgentPhase::Over => {
                    format!("the agent was silent for {limit}")
                }
            };
        }
        Some(Overdue::OverBudget) => return "the issue used up what it may".to_owned(),
        Some(Overdue::TooLong) => return "the agent's event stream is too long".to_owned(),
        Some(Overdue::Lingering) | None => {}
    }
    let failed = match stream.terminal() {
        Some(Terminal::Failed { reason, message }) if message.is_empty() => Some(reason.clone()),
        Some(Terminal::Failed { reason, message }) => Some(format!("{reason}: {message}")),
        _ => None,
    };
    let fault = stream.faults().first();
    let fault = || fault.map(|fault| format!("the agent's event stream: {fault}"));
    let notice = || stream.last_notice().map(str::to_owned);
    match failed
        .or_else(notice)
        .filter(|said| !said.trim().is_empty())
    {
        Some(said) => said,
        None if is_up(stream) => fault().unwrap_or_else(|| "the agent failed".to_owned()),
        None => super::command::last_line(stderr, stderr),
    }
}

/// Returns what an agent's stream was, as its witness says it.
pub(super) fn agent_facts(stream: &FoldedStream) -> AgentFacts {
    let spent = stream.spent();
    AgentFacts {
        adapter: stream.agent().as_str().to_owned(),
        model: stream.model().map(str::to_owned),
        session_id: stream.session_id().map(str::to_owned),
        calls: stream.calls().len() as u64,
        messages: stream.messages(),
        unknown_events: stream.unknown_events(),
        retries: stream.retries(),
        faults: stream.faults().iter().map(ToString::to_string).collect(),
        fault_count: stream.fault_count(),
        ended: stream.terminal().map(|terminal| match terminal {
            Terminal::Finished { stop_reason } => stop_reason.clone(),
            Terminal::Failed { reason, .. } => format!("failed: {reason}"),
        }),
        log_digest: stream.log().digest.clone(),
        tokens: spent.tokens.map(|tokens| TokenCounts {
            input: tokens.input,
            cached: tokens.cached,
            output: tokens.output,
        }),
        cost_nano_usd: spent.cost_nano_usd,
        limit_resets_at: stream.rejected().and_then(|limit| limit.resets_at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use premath_evidence::{Agent, AgentStream};
    use std::time::Duration;

    const INIT: &str =
        r#"{"type":"system","subtype":"init","session_id":"s","model":"m","tools":[]}"#;
    const DONE: &str =
        r#"{"type":"result","subtype":"success","is_error":false,"num_turns":1,"session_id":"s"}"#;
    const LIMIT: &str = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1800000000},"session_id":"s"}"#;
    const FAILED: &str = r#"{"type":"result","subtype":"error_max_turns","is_error":true,"num_turns":9,"session_id":"s"}"#;

    fn folded(lines: &[&str]) -> FoldedStream {
        let mut stream = AgentStream::new(Agent::Claude);
        for line in lines {
            stream.feed(format!("{line}\n").as_bytes());
        }
        stream.finish()
    }

    #[test]
    fn the_cause_comes_first() {
        let exited = |code| (EndCause::Exited, Some(code), None);
        let stopped = (EndCause::Stopped, None, Some(15));
        let killed = (EndCause::Exited, None, Some(9));
        let limit = (EndCause::Limit, None, Some(15));
        let silent = Overdue::Silent(AgentPhase::Thinking, Duration::ZERO);
        for ((cause, code, signal), lines, overdue, expected) in [
            (exited(0), &[INIT, DONE][..], None, &[][..]),
            (exited(1), &[INIT, DONE], None, &["work_failed"]),
            (exited(0), &[INIT, FAILED], None, &["work_failed"]),
            (exited(0), &[INIT], None, &["agent_stream_invalid"]),
            (
                exited(1),
                &[INIT],
                None,
                &["agent_stream_invalid", "work_failed"],
            ),
            (
                exited(1),
                &[INIT, LIMIT, FAILED],
                None,
                &["usage_limit", "work_failed"],
            ),
            (exited(1), &[], None, &["executor_unavailable"]),
            (exited(127), &[], None, &["executor_unavailable"]),
            (exited(0), &[], None, &["agent_stream_invalid"]),
            (
                killed,
                &[INIT],
                None,
                &["flaky_execution", "agent_stream_invalid"],
            ),
            (killed, &[INIT, DONE], None, &["flaky_execution"]),
            (
                killed,
                &[INIT, LIMIT],
                None,
                &["usage_limit", "flaky_execution", "agent_stream_invalid"],
            ),
            (limit, &[INIT], None, &["gate_timeout"]),
            (stopped, &[INIT], Some(silent), &["flaky_execution"]),
            (stopped, &[INIT, DONE], Some(Overdue::Lingering), &[]),
            (
                stopped,
                &[INIT, FAILED],
                Some(Overdue::Lingering),
                &["work_failed"],
            ),
            (
                stopped,
                &[INIT],
                Some(Overdue::OverBudget),
                &["budget_exceeded"],
            ),
            (
                stopped,
                &[INIT],
                Some(Overdue::TooLong),
                &["agent_stream_invalid"],
            ),
        ] {
            let end = CommandEnd {
                cause,
                code,
                signal,
            };
            let found = agent_classes(&end, Vec::new(), &folded(lines), overdue);
            assert_eq!(found, expected, "{end:?} {lines:?} {overdue:?}");
        }
    }
}
