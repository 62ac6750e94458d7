//! What a command that failed said last.

use super::command::TimeLimit;
use crate::supervisor::{Exit, ExitCause};
use crate::witness;
use premath_evidence::{AgentEnd, FoldedStream};
use premath_kernel::policy::silence::AgentTimeout;
use premath_memory::artifact;
use std::path::Path;

/// How many characters of a line are reported.
const LINE_CHARS: usize = 500;

/// A command that failed.
#[derive(Debug)]
pub(crate) struct Saying<'a> {
    /// What it is, as in `the verification`.
    pub(crate) subject: &'static str,
    pub(crate) exit: &'a Exit,
    /// How long it might run.
    pub(crate) limit: TimeLimit,
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
        let exceeded = self.exceeded();
        let is_ended = exceeded.is_some() || end.killed_by().is_some();
        let how = exceeded.or_else(|| end.message());
        let Some(stream) = self.stream else {
            // What a command reports about an exit of its own is enough.
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

    /// Names the limit that the command exceeded, with its setting; `None` if it was
    /// not ended for one.
    fn exceeded(&self) -> Option<String> {
        let subject = self.subject;
        match &self.exit.cause {
            ExitCause::Limit => {
                let TimeLimit { time, setting } = self.limit;
                let time = humantime::format_duration(time);
                Some(format!("{subject} timed out after {time} ({setting})"))
            }
            ExitCause::Exceeded(resource) => {
                let name = resource.name();
                Some(format!(
                    "{subject} was killed: it exceeded its limit of {name} (`{name}` under [limits])"
                ))
            }
            ExitCause::Exited | ExitCause::Stopped | ExitCause::SpawnFailed { .. } => None,
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::{Resource, StreamReport};
    use std::time::Duration;

    /// Returns the line about a verification that ended so and printed a text.
    fn line(cause: ExitCause, printed: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let [stdout, stderr] = ["stdout", "stderr"].map(|name| folder.path().join(name));
        std::fs::write(&stdout, printed).unwrap();
        let report = StreamReport {
            bytes: 0,
            sha256: String::new(),
            cut_bytes: 0,
            write_error: None,
        };
        let exit = Exit {
            code: None,
            signal: Some(9),
            cause,
            duration_ms: 3000,
            stdout: report.clone(),
            stderr: report,
            leaked: 0,
            survivors: 0,
        };
        let saying = Saying {
            subject: "the verification",
            exit: &exit,
            limit: TimeLimit {
                time: Duration::from_secs(3),
                setting: "`verify_limit`",
            },
            stream: None,
            timeout: None,
            stdout: &stdout,
            stderr: &stderr,
        };
        saying.line()
    }

    #[test]
    fn a_command_that_timed_out_names_what_it_is_and_the_setting() {
        let timed_out = "the verification timed out after 3s (`verify_limit`)";
        assert_eq!(
            line(ExitCause::Limit, ""),
            format!("{timed_out}, no output")
        );
        assert_eq!(
            line(ExitCause::Limit, "one\ntwo\n"),
            format!("{timed_out}: two")
        );
    }

    #[test]
    fn a_command_over_a_limit_names_the_resource_whatever_it_printed() {
        for (resource, name) in [
            (Resource::Memory, "memory"),
            (Resource::Disk, "disk"),
            (Resource::Processes, "processes"),
        ] {
            let killed = format!(
                "the verification was killed: it exceeded its limit of {name} (`{name}` under [limits])"
            );
            let cause = ExitCause::Exceeded(resource);
            assert_eq!(line(cause.clone(), ""), format!("{killed}, no output"));
            assert_eq!(line(cause, "two\n"), format!("{killed}: two"));
        }
    }
}
