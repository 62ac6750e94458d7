//! What a command that failed said last.

use crate::supervisor::{Exit, ExitCause};
use crate::witness;
use premath_evidence::{AgentEnd, FoldedStream};
use premath_kernel::policy::silence::AgentTimeout;
use premath_memory::artifact;
use std::path::Path;
use std::time::Duration;

/// How many characters of a line are reported.
const LINE_CHARS: usize = 500;

/// A command that failed.
#[derive(Debug)]
pub(crate) struct Saying<'a> {
    pub(crate) exit: &'a Exit,
    /// How long it might run.
    pub(crate) limit: Duration,
    /// What it printed, where it was an agent.
    pub(crate) stream: Option<&'a FoldedStream>,
    pub(crate) timeout: Option<AgentTimeout>,
    pub(crate) stdout: &'a Path,
    pub(crate) stderr: &'a Path,
}

impl Saying<'_> {
    /// Says what went wrong, on one line, for the error envelope.
    pub(crate) fn line(&self) -> String {
        if let ExitCause::SpawnFailed { message, .. } = &self.exit.cause {
            return message.replace(['\n', '\r'], " ");
        }
        let end = witness::end(self.exit);
        let is_over = self.exit.cause == ExitCause::Limit;
        let limit = humantime::format_duration(self.limit);
        let how = if is_over {
            Some(format!("timed out after {limit}"))
        } else {
            end.message()
        };
        let Some(stream) = self.stream else {
            // What a command reports about an exit of its own is enough.
            let is_ended = is_over || end.killed_by().is_some();
            return match (how, last_line(&[self.stderr, self.stdout])) {
                (Some(how), Some(line)) if is_ended => format!("{how}: {line}"),
                (_, Some(line)) => line,
                (Some(how), None) => format!("{how}, no output"),
                (None, None) => "no output".to_owned(),
            };
        };
        let agent = AgentEnd {
            command: &end,
            stream,
            timeout: self.timeout,
        };
        let message = agent.message();
        // What an agent prints is its stream, and no sentence.
        let line = last_line(&[self.stderr]);
        let how = match (how, line) {
            (Some(how), Some(line)) => Some(format!("{how}: {line}")),
            (how, line) => how.or(line.filter(|_| message.is_none())),
        };
        let parts: Vec<String> = message.into_iter().chain(how).collect();
        if parts.is_empty() {
            return "no output".to_owned();
        }
        parts.join("; ").replace(['\n', '\r'], " ")
    }
}

/// The last line that was reported.
fn last_line(files: &[&Path]) -> Option<String> {
    files.iter().find_map(|path| {
        let bytes = artifact::read(path).ok().flatten()?;
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines().map(str::trim);
        let line = lines.rfind(|line| !line.is_empty())?;
        Some(line.chars().take(LINE_CHARS).collect())
    })
}
