//! What an attempt prints, line by line.

use premath_kernel::json::id::{IssueId, StepId, WorkerName};
use premath_kernel::json::plain::{cut_at, plain};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;

/// The most bytes of a line for a person.
const LINE_MAX: usize = 2_000;

/// How wide the column is that says what a line is.
const KIND_WIDTH: usize = 8;

/// What an attempt printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogView {
    /// The issue.
    pub issue_id: IssueId,
    /// The attempt's step.
    pub step_id: StepId,
    /// The lane; null where it is not known.
    pub worker_id: Option<WorkerName>,
    /// Whether the attempt runs.
    pub running: bool,
    /// How many bytes before the lines were left out, for they were too many.
    pub skipped_bytes: u64,
    /// How many lines before these were left out, as `--lines` says.
    pub skipped_lines: u64,
    /// The lines.
    pub lines: Vec<LogLine>,
}

/// Something that was printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogLine {
    /// The command, as in `work` or `verify-2`.
    pub phase: String,
    /// The stream: `stdout` or `stderr`.
    pub stream: String,
    /// What it is.
    pub kind: LogKind,
    /// The text. Parts of an agent's stream may have several lines.
    pub text: String,
}

/// What a line of a log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogKind {
    /// A line as it was printed.
    Output,
    /// Text of an agent.
    Said,
    /// Text of an agent that is not its answer.
    Thought,
    /// A tool call.
    Call,
    /// What a tool call gave, shortened.
    Result,
    /// What a tool call failed with, shortened.
    Failed,
    /// Something about the agent's run.
    Note,
    /// How the agent's run ended.
    End,
}

impl LogKind {
    const fn word(self) -> Option<&'static str> {
        match self {
            Self::Output => None,
            Self::Said => Some("agent"),
            Self::Thought => Some("thought"),
            Self::Call => Some("call"),
            Self::Result => Some("result"),
            Self::Failed => Some("failed"),
            Self::Note => Some("note"),
            Self::End => Some("end"),
        }
    }
}

/// Writes lines of a log one after the other, with a head where another command
/// or stream begins.
#[derive(Debug, Default)]
pub struct LogText {
    of: Option<(String, String)>,
}

impl LogText {
    /// Returns lines as text for a person.
    pub fn text(&mut self, lines: &[LogLine]) -> String {
        let mut text = String::new();
        for line in lines {
            let of = (line.phase.clone(), line.stream.clone());
            if self.of.as_ref() != Some(&of) {
                let _ = writeln!(text, "--- {} {}", plain(&line.phase), plain(&line.stream));
                self.of = Some(of);
            }
            put(&mut text, line);
        }
        text
    }
}

fn put(text: &mut String, line: &LogLine) {
    let Some(word) = line.kind.word() else {
        let _ = writeln!(text, "{}", shown(&line.text));
        return;
    };
    for (number, part) in line.text.lines().enumerate() {
        let word = if number == 0 { word } else { "" };
        let written = format!("{word:<KIND_WIDTH$}{}", shown(part));
        let _ = writeln!(text, "{}", written.trim_end());
    }
}

fn shown(line: &str) -> String {
    let line = line.trim_end_matches('\r').replace('\t', "    ");
    plain(&cut_at(&line, LINE_MAX)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(phase: &str, stream: &str, kind: LogKind, text: &str) -> LogLine {
        LogLine {
            phase: phase.to_owned(),
            stream: stream.to_owned(),
            kind,
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_head_is_written_where_another_stream_begins_and_all_is_escaped() {
        let mut log = LogText::default();
        let lines = [
            line("setup", "stdout", LogKind::Output, "a\u{1b}[2J\tb\r"),
            line("work", "stdout", LogKind::Call, "Bash  ls"),
            line("work", "stdout", LogKind::Result, "one\n\u{202e}two"),
        ];
        assert_eq!(
            log.text(&lines),
            "--- setup stdout\na\\u{1b}[2J    b\n--- work stdout\ncall    Bash  ls\n\
             result  one\n        \\u{202e}two\n"
        );
        // It continues where it was.
        let more = [line("work", "stdout", LogKind::End, "success")];
        assert_eq!(log.text(&more), "end     success\n");
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let long = line("work", "stdout", LogKind::Output, &"x".repeat(1 << 20));
        let text = LogText::default().text(&[long]);
        assert!(text.len() < LINE_MAX + 100 && text.ends_with("…\n"));
    }
}
