//! An agent's end: its classes, its message, and its witness.

use crate::adapter::reports_no_network;
use crate::event::Terminal;
use crate::fold::FoldedStream;
use premath_kernel::failure::FailureClass;
use premath_kernel::policy::retry::classes_of;
use premath_kernel::policy::retry::{CommandEnd, EndCause};
use premath_kernel::policy::silence::{AgentPhase, AgentTimeout};
use premath_kernel::record::trajectory::TokenCounts;
use premath_kernel::record::witness::AgentFacts;

/// How an agent came to its end.
#[derive(Clone, Copy, Debug)]
pub struct AgentEnd<'a> {
    /// The end of the agent's command.
    pub command: &'a CommandEnd,
    /// The stream of the agent, folded.
    pub stream: &'a FoldedStream,
    /// Why it was ended before its own end, where it was.
    pub timeout: Option<AgentTimeout>,
}

impl AgentEnd<'_> {
    /// Names the classes of the end, with those that its errors named; none
    /// where it finished and its stream is whole.
    ///
    /// What made us end it comes first, for what the stream lacks then follows
    /// from that; so does a signal that was not ours. A limit of its provider
    /// comes before anything that followed from it; an agent that ended badly
    /// without a word was not up at all.
    pub fn classes(&self, words: Vec<String>) -> Vec<String> {
        let Self {
            command,
            stream,
            timeout,
        } = *self;
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
        let ended_by_us = matches!(
            timeout,
            Some(AgentTimeout::Silent(..) | AgentTimeout::OverBudget)
        );
        let cut_short = command.cause == EndCause::Limit || ended_by_us;
        if !cut_short && !stream.is_up() && command.code != Some(0) {
            // Also where the shell could not find it.
            let own = classes_of(command, words, FailureClass::ExecutorUnavailable);
            own.iter().for_each(|class| add(class));
            return classes;
        }
        if command.killed_by().is_some() {
            add(FailureClass::FlakyExecution.as_str());
        }
        if self.had_no_network() {
            add(FailureClass::NetworkTimeout.as_str());
        }
        if !cut_short {
            of_stream.iter().for_each(|class| add(class.as_str()));
        }
        let failed = matches!(stream.terminal(), Some(Terminal::Failed { .. }));
        match timeout {
            Some(AgentTimeout::Silent(..)) if stream.waits().is_some() => {}
            Some(AgentTimeout::Silent(..)) => add(FailureClass::FlakyExecution.as_str()),
            Some(AgentTimeout::OverBudget) => add(FailureClass::BudgetExceeded.as_str()),
            Some(AgentTimeout::TooLong) => add(FailureClass::AgentStreamInvalid.as_str()),
            // It had reported that it was done: its evidence counts.
            Some(AgentTimeout::Lingering) => {}
            None => {
                let own = classes_of(command, words, FailureClass::WorkFailed);
                own.iter().for_each(|class| add(class));
            }
        }
        if failed && classes.is_empty() {
            classes.push(FailureClass::WorkFailed.as_str().to_owned());
        }
        classes
    }

    /// Returns whether the agent says that it did not reach its provider, or
    /// was ended while it asked it again and again.
    fn had_no_network(&self) -> bool {
        match (self.stream.terminal(), self.timeout) {
            (Some(Terminal::Failed { message, .. }), _) => reports_no_network(message),
            (_, Some(AgentTimeout::Silent(..))) => self.stream.waits().is_some(),
            _ => false,
        }
    }

    /// Returns what went wrong; `None` if the agent reported nothing.
    pub fn message(&self) -> Option<String> {
        if let Some(message) = self.timeout.and_then(message_of) {
            return Some(match self.stream.waits() {
                None => message,
                Some(waits) => format!("{message}; its provider did not answer: {waits}"),
            });
        }
        let failed = match self.stream.terminal() {
            Some(Terminal::Failed { reason, message }) if message.is_empty() => {
                Some(reason.clone())
            }
            Some(Terminal::Failed { reason, message }) => Some(format!("{reason}: {message}")),
            _ => None,
        };
        let notice = || self.stream.last_notice().map(str::to_owned);
        let message = failed.or_else(notice);
        message
            .filter(|message| !message.trim().is_empty())
            .or_else(|| {
                let fault = self.stream.faults().first();
                let fault = fault.map(|fault| format!("the agent's event stream: {fault}"));
                let fault = fault.unwrap_or_else(|| "the agent failed".to_owned());
                self.stream.is_up().then_some(fault)
            })
    }
}

/// Says why an agent was ended, where that is what went wrong with it.
fn message_of(timeout: AgentTimeout) -> Option<String> {
    let silent = |who: &str, limit| format!("{who} for {}", humantime::format_duration(limit));
    Some(match timeout {
        AgentTimeout::Silent(AgentPhase::Starting, limit) => {
            silent("the agent printed no event", limit)
        }
        AgentTimeout::Silent(AgentPhase::Calling, limit) => {
            silent("a tool call of the agent was silent", limit)
        }
        AgentTimeout::Silent(AgentPhase::Thinking | AgentPhase::Over, limit) => {
            silent("the agent was silent", limit)
        }
        AgentTimeout::OverBudget => "the issue's budget is used up".to_owned(),
        AgentTimeout::TooLong => "the agent's event stream is too long".to_owned(),
        AgentTimeout::Lingering => return None,
    })
}

impl FoldedStream {
    /// Returns whether the agent printed any event.
    fn is_up(&self) -> bool {
        self.log().lines > 0
    }

    /// Returns what the stream was, as a witness says it.
    pub fn facts(&self) -> AgentFacts {
        let spent = self.spent();
        AgentFacts {
            adapter: self.agent().as_str().to_owned(),
            model: self.model().map(str::to_owned),
            session_id: self.session_id().map(str::to_owned),
            calls: self.calls().len() as u64,
            messages: self.messages(),
            unknown_events: self.unknown_events(),
            retries: self.retries(),
            faults: self.faults().iter().map(ToString::to_string).collect(),
            fault_count: self.fault_count(),
            ended: self.terminal().map(|terminal| match terminal {
                Terminal::Finished { stop_reason } => stop_reason.clone(),
                Terminal::Failed { reason, .. } => format!("failed: {reason}"),
            }),
            log_digest: self.log().digest.clone(),
            tokens: spent.tokens.map(|tokens| TokenCounts {
                input: tokens.input,
                cached: tokens.cached,
                output: tokens.output,
            }),
            cost_nano_usd: spent.cost_nano_usd,
            limit_resets_at: self.rejected().and_then(|limit| limit.resets_at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Agent, AgentStream};
    use std::time::Duration;

    const INIT: &str =
        r#"{"type":"system","subtype":"init","session_id":"s","model":"m","tools":[]}"#;
    const DONE: &str =
        r#"{"type":"result","subtype":"success","is_error":false,"num_turns":1,"session_id":"s"}"#;
    const LIMIT: &str = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1800000000},"session_id":"s"}"#;
    const FAILED: &str = r#"{"type":"result","subtype":"error_max_turns","is_error":true,"num_turns":9,"session_id":"s"}"#;

    const RETRY: &str = r#"{"type":"system","subtype":"api_retry","attempt":1,"retry_delay_ms":9,"session_id":"s"}"#;
    const SAID: &str =
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"So."}]}}"#;
    const OFFLINE: &str = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"result":"API Error: Unable to connect","session_id":"s"}"#;

    fn folded(lines: &[&str]) -> FoldedStream {
        let mut stream = AgentStream::new(Agent::Claude);
        for line in lines {
            stream.feed(format!("{line}\n").as_bytes());
        }
        stream.finish()
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "tests: a table is read as a whole")]
    fn the_cause_comes_first() {
        let exited = |code| (EndCause::Exited, Some(code), None);
        let stopped = (EndCause::Stopped, None, Some(15));
        let killed = (EndCause::Exited, None, Some(9));
        let limit = (EndCause::Limit, None, Some(15));
        let silent = AgentTimeout::Silent(AgentPhase::Thinking, Duration::ZERO);
        for ((cause, code, signal), lines, timeout, expected) in [
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
            (
                exited(137),
                &[INIT],
                None,
                &["flaky_execution", "agent_stream_invalid"],
            ),
            (stopped, &[INIT, RETRY], Some(silent), &["network_timeout"]),
            (
                stopped,
                &[INIT, RETRY, SAID],
                Some(silent),
                &["flaky_execution"],
            ),
            (
                exited(1),
                &[INIT, OFFLINE],
                None,
                &["network_timeout", "work_failed"],
            ),
            (stopped, &[INIT], Some(silent), &["flaky_execution"]),
            (stopped, &[INIT, DONE], Some(AgentTimeout::Lingering), &[]),
            (
                stopped,
                &[INIT, FAILED],
                Some(AgentTimeout::Lingering),
                &["work_failed"],
            ),
            (
                stopped,
                &[INIT],
                Some(AgentTimeout::OverBudget),
                &["budget_exceeded"],
            ),
            (
                stopped,
                &[INIT],
                Some(AgentTimeout::TooLong),
                &["agent_stream_invalid"],
            ),
        ] {
            let end = CommandEnd {
                cause,
                code,
                signal,
            };
            let stream = folded(lines);
            let found = AgentEnd {
                command: &end,
                stream: &stream,
                timeout,
            };
            let found = found.classes(Vec::new());
            assert_eq!(found, expected, "{end:?} {lines:?} {timeout:?}");
        }
    }
}
