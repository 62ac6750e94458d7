//! Listens to an agent while it works: its event stream, how long it has been
//! silent, and what it is doing (`agents.md`, "Supervision").

use crate::settings::CommandLimits;
use premath_evidence::{Agent, AgentStream, FoldedStream, RunSpending};
use premath_kernel::policy::budget::{Budget, Spent};
use premath_kernel::policy::silence::{AgentPhase, AgentTimeout, SilenceLimits};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// How much is read at a time.
const CHUNK: usize = 64 << 10;

/// How much one look reads at most, so that deadlines get their turn.
const LOOK_BYTES: u64 = 16 << 20;

/// Listens to one agent.
#[derive(Debug)]
pub(crate) struct Listener {
    agent: Agent,
    stream: AgentStream,
    /// The file that the supervisor writes the stream into. Its offset is the
    /// supervisor's, so it is read by position.
    file: File,
    read: u64,
    cap: u64,
    limits: SilenceLimits,
    /// What is left of what its issue may use.
    budget: Budget,
    begun_at: Instant,
    heard_at: Instant,
    buffer: Vec<u8>,
}

/// What an agent reported by now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard<'a> {
    pub(super) phase: AgentPhase,
    /// How many lines it printed.
    pub(super) lines: u64,
    /// How many calls it reported.
    pub(super) calls: u64,
    /// The tool that it called last.
    pub(super) last_tool: Option<&'a str>,
    /// How long it has been silent.
    pub(super) silent: Duration,
    /// How long it may be.
    pub(super) silence_limit: Duration,
    /// What it used in this run.
    pub(super) spent: RunSpending,
}

impl Listener {
    /// Begins to listen to a file that is still empty.
    pub(crate) fn new(agent: Agent, file: File, limits: &CommandLimits, budget: Budget) -> Self {
        Self {
            agent,
            stream: AgentStream::new(agent),
            file,
            read: 0,
            cap: limits.stream_cap,
            limits: limits.silence.clone(),
            budget,
            begun_at: Instant::now(),
            heard_at: Instant::now(),
            buffer: vec![0; CHUNK],
        }
    }

    /// Listens to a session that is resumed, and used so much before.
    pub(crate) fn after(mut self, before: RunSpending) -> Self {
        self.stream = AgentStream::resumed(self.agent, before);
        self
    }

    /// Reads on, and returns whether the agent is to be ended.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub(crate) fn look(&mut self) -> io::Result<Option<AgentTimeout>> {
        let was_over = self.stream.so_far().is_over();
        let (lines, of_work) = (self.stream.lines(), self.stream.lines_of_work());
        let has_read = self.read_on(LOOK_BYTES)? > 0;
        let stays_over = was_over && self.stream.so_far().is_over();
        // Who asks its provider again and again does nothing else.
        let only_asks = self.stream.lines() > lines && self.stream.lines_of_work() == of_work;
        if has_read && !stays_over && !only_asks {
            self.heard_at = Instant::now();
        }
        if self.read >= self.cap || self.stream.so_far().is_full() {
            return Ok(Some(AgentTimeout::TooLong));
        }
        let spent = spent(self.stream.so_far().spent());
        // What is done costs no more: then it counts by its evidence.
        let is_running = !self.stream.so_far().is_over();
        if is_running && self.budget.is_used_up(spent, self.begun_at.elapsed()) {
            return Ok(Some(AgentTimeout::OverBudget));
        }
        let phase = self.phase();
        let silent = self.heard_at.elapsed();
        if !self.limits.is_over(phase, silent) {
            return Ok(None);
        }
        Ok(Some(match phase {
            AgentPhase::Over => AgentTimeout::Lingering,
            phase => AgentTimeout::Silent(phase, self.limits.of(phase)),
        }))
    }

    /// Returns what was heard by now.
    pub(super) fn heard(&self) -> Heard<'_> {
        let so_far = self.stream.so_far();
        let phase = self.phase();
        Heard {
            phase,
            lines: self.stream.lines(),
            calls: so_far.calls() as u64,
            last_tool: so_far.last_tool(),
            silent: self.heard_at.elapsed(),
            silence_limit: self.limits.of(phase),
            spent: so_far.spent(),
        }
    }

    fn phase(&self) -> AgentPhase {
        let so_far = self.stream.so_far();
        if self.read == 0 {
            AgentPhase::Starting
        } else if so_far.is_over() {
            AgentPhase::Over
        } else if self.stream.is_in_call() {
            AgentPhase::Calling
        } else {
            AgentPhase::Thinking
        }
    }

    /// Reads what is there, at most about so many bytes; returns how many.
    fn read_on(&mut self, most: u64) -> io::Result<u64> {
        let begin = self.read;
        while self.read - begin < most {
            let count = self.file.read_at(&mut self.buffer, self.read)?;
            if count == 0 {
                break;
            }
            self.stream.feed(&self.buffer[..count]);
            self.read += count as u64;
        }
        Ok(self.read - begin)
    }

    /// Reads the rest, and returns what the stream amounts to.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub(crate) fn finish(mut self) -> io::Result<FoldedStream> {
        self.read_on(u64::MAX)?;
        Ok(self.stream.finish())
    }
}

/// Returns what an agent used, as a budget counts it.
pub(crate) fn spent(spent: RunSpending) -> Spent {
    Spent {
        tokens: spent
            .tokens
            .map(|tokens| tokens.input.saturating_add(tokens.output)),
        cost_nano_usd: spent.cost_nano_usd,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn listener(limit: Duration) -> (File, Listener) {
        listener_with(limit, Budget::default())
    }

    fn listener_with(limit: Duration, budget: Budget) -> (File, Listener) {
        let file = tempfile::tempfile().unwrap();
        let mut limits = CommandLimits {
            stream_cap: 1_000,
            ..CommandLimits::default()
        };
        limits.silence.first_event = limit;
        let listener = Listener::new(Agent::Codex, file.try_clone().unwrap(), &limits, budget);
        (file, listener)
    }

    const BEGIN: &[u8] =
        b"{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n{\"type\":\"turn.started\"}\n";
    const CALL: &[u8] = b"{\"type\":\"item.started\",\"item\":{\"id\":\"i\",\"type\":\"command_execution\",\"command\":\"ls\",\"status\":\"in_progress\"}}\n";

    #[test]
    fn what_an_agent_does_is_read_from_its_events() {
        let (mut file, mut listener) = listener(Duration::from_secs(600));
        assert_eq!(listener.phase(), AgentPhase::Starting);
        file.write_all(BEGIN).unwrap();
        assert_eq!(listener.look().unwrap(), None);
        assert_eq!(listener.phase(), AgentPhase::Thinking);
        file.write_all(CALL).unwrap();
        assert_eq!(listener.look().unwrap(), None);
        assert_eq!(listener.phase(), AgentPhase::Calling);
        file.write_all(b"{\"type\":\"turn.completed\",\"usage\":{}}\n")
            .unwrap();
        listener.look().unwrap();
        assert_eq!(listener.phase(), AgentPhase::Over);
    }

    /// Its calls are reported when they are over: while a step is open, one may
    /// run.
    #[test]
    fn an_open_step_of_opencode_may_be_a_call() {
        let mut file = tempfile::tempfile().unwrap();
        let limits = CommandLimits::default();
        let mut listener = Listener::new(
            Agent::OpenCode,
            file.try_clone().unwrap(),
            &limits,
            Budget::default(),
        );
        for (line, phase) in [
            (
                r#"{"type":"step_start","sessionID":"s"}"#,
                AgentPhase::Calling,
            ),
            (
                r#"{"type":"tool_use","sessionID":"s","part":{"callID":"c","tool":"bash","state":{"status":"completed","input":{},"output":""}}}"#,
                AgentPhase::Calling,
            ),
            (
                r#"{"type":"step_finish","sessionID":"s","part":{"reason":"tool-calls"}}"#,
                AgentPhase::Thinking,
            ),
            (
                r#"{"type":"step_start","sessionID":"s"}"#,
                AgentPhase::Calling,
            ),
            (
                r#"{"type":"step_finish","sessionID":"s","part":{"reason":"stop"}}"#,
                AgentPhase::Over,
            ),
        ] {
            file.write_all(format!("{line}\n").as_bytes()).unwrap();
            listener.look().unwrap();
            assert_eq!(listener.phase(), phase, "{line}");
        }
    }

    #[test]
    fn what_an_issue_may_use_is_counted_while_the_agent_works() {
        let budget = Budget {
            tokens: Some(100),
            ..Budget::default()
        };
        let (mut file, mut listener) = listener_with(Duration::from_secs(600), budget);
        let used = |tokens: u64| {
            format!(
                "{{\"type\":\"turn.completed\",\"usage\":{{\"input_tokens\":{tokens},\"output_tokens\":9}}}}\n"
            )
        };
        file.write_all(BEGIN).unwrap();
        file.write_all(used(90).as_bytes()).unwrap();
        assert_eq!(listener.look().unwrap(), None);
        file.write_all(b"{\"type\":\"turn.started\"}\n").unwrap();
        file.write_all(used(91).as_bytes()).unwrap();
        assert_eq!(listener.look().unwrap(), None, "it is done");
        file.write_all(CALL).unwrap();
        assert_eq!(listener.look().unwrap(), Some(AgentTimeout::OverBudget));
    }

    #[test]
    fn silence_and_length_are_bounded() {
        let (mut file, mut listener) = listener(Duration::ZERO);
        let silent = AgentTimeout::Silent(AgentPhase::Starting, Duration::ZERO);
        assert_eq!(listener.look().unwrap(), Some(silent));
        file.write_all(&[b' '; 1_000]).unwrap();
        assert_eq!(listener.look().unwrap(), Some(AgentTimeout::TooLong));
    }

    #[test]
    fn an_agent_that_reports_more_than_is_kept_is_ended() {
        let (_file, mut listener) = listener(Duration::from_secs(600));
        listener.stream.feed(BEGIN);
        assert_eq!(listener.look().unwrap(), None);
        listener.stream.feed(&CALL.repeat(60_000));
        assert_eq!(listener.look().unwrap(), Some(AgentTimeout::TooLong));
    }

    #[test]
    fn an_agent_that_asks_its_provider_again_and_again_is_silent() {
        const AGAIN: &[u8] = b"{\"type\":\"error\",\"message\":\"Reconnecting... 1/5\"}\n";
        let (mut file, mut listener) = listener(Duration::from_secs(600));
        file.write_all(BEGIN).unwrap();
        listener.look().unwrap();
        let begun = listener.heard_at;
        file.write_all(AGAIN).unwrap();
        listener.look().unwrap();
        assert_eq!(listener.heard_at, begun);
        file.write_all(AGAIN).unwrap();
        file.write_all(CALL).unwrap();
        listener.look().unwrap();
        assert!(listener.heard_at > begun);
    }
}
