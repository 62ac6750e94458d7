//! One run of an agent, on a prompt of a line.

use super::probe;
use crate::error::CliError;
use premath_evidence::{Agent, AgentStream, Terminal};
use premath_memory::artifact;
use schemars::JsonSchema;
use serde::Serialize;
use std::env;
use std::fs;
use std::time::Duration;

/// What the agent is asked.
const PROMPT: &str = "Answer with the one word: ready. Call no tool and change no file.\n";

/// How a run of an agent went.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Trial {
    /// Its exit code; null where it was ended.
    exit_code: Option<i32>,
    /// The lines of its event stream.
    lines: u64,
    /// The number of tool calls.
    calls: u64,
    /// The model that it uses, if it reports one.
    model: Option<String>,
    /// Events of unknown types.
    unknown_events: u64,
    /// What makes its stream no evidence.
    stream_faults: Vec<String>,
    /// What went wrong beside that.
    failed: Option<String>,
}

impl Trial {
    /// Runs an agent by its ready command line, in a folder of its own.
    pub(super) fn of(agent: Agent, limit: Duration) -> Result<Self, CliError> {
        let name = format!("premath-agents-{}-{}", agent.as_str(), std::process::id());
        let folder = env::temp_dir().join(name);
        fs::create_dir_all(&folder).map_err(CliError::file("make", &folder))?;
        let prompt = folder.join("prompt.md");
        artifact::write(&prompt, PROMPT.as_bytes())?;
        let mut command = probe::command("/bin/sh");
        command
            .args(["-c", agent.spec().command_line])
            .env("PREMATH_PROMPT_FILE", &prompt)
            .current_dir(&folder);
        let ended = probe::run(command, limit).map_err(CliError::file("start", "/bin/sh".as_ref()));
        fs::remove_dir_all(&folder).map_err(CliError::file("remove", &folder))?;
        let ended = ended?;
        let mut stream = AgentStream::new(agent);
        stream.feed(&ended.stdout);
        let stream = stream.finish();
        let failed = match (stream.terminal(), ended.code) {
            _ if ended.timed_out => Some(format!(
                "it did not end within {}",
                humantime::format_duration(limit)
            )),
            (Some(Terminal::Failed { reason, message }), _) => Some(format!("{reason}: {message}")),
            (_, Some(0)) => None,
            (_, Some(code)) => Some(format!("it ended with {code}")),
            (_, None) => Some("it was killed".to_owned()),
        };
        let is_silent = stream.log().lines == 0;
        let failed = match (failed, last_words(&ended.stderr)) {
            (Some(failed), Some(words)) => Some(format!("{failed}: {words}")),
            (None, Some(words)) if is_silent => Some(format!("it printed no event: {words}")),
            (None, None) if is_silent => Some("it printed no event".to_owned()),
            (failed, _) => failed,
        };
        Ok(Self {
            exit_code: ended.code.filter(|_| !ended.timed_out),
            lines: stream.log().lines,
            calls: stream.calls().len() as u64,
            model: stream.model().map(str::to_owned),
            unknown_events: stream.unknown_events(),
            stream_faults: stream.faults().iter().map(ToString::to_string).collect(),
            failed,
        })
    }

    /// Returns why the agent cannot be used.
    pub(super) fn faults(&self) -> impl Iterator<Item = String> + use<'_> {
        // What is not there cannot be read, and why is reported.
        let stream = self.stream_faults.first().filter(|_| self.lines > 0);
        let stream = stream.map(|fault| format!("its event stream does not parse: {fault}"));
        self.failed.clone().into_iter().chain(stream)
    }

    /// Says how it went, on a line.
    pub(super) fn describe(&self) -> String {
        if self.lines == 0 {
            return "it printed no event".to_owned();
        }
        let parses = if self.stream_faults.is_empty() {
            "parses"
        } else {
            "does not parse"
        };
        let model = self.model.as_deref().unwrap_or("unknown");
        format!(
            "its event stream {parses}: {} lines, model {model}",
            self.lines
        )
    }
}

/// Returns the last non-empty line, truncated.
fn last_words(stderr: &[u8]) -> Option<String> {
    const MOST: usize = 300;
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.trim().chars().take(MOST).collect())
}
