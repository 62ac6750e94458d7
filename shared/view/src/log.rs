//! What an attempt prints, line by line.

use premath_kernel::json::id::{IssueId, StepId, WorkerName};
use premath_kernel::json::plain::{cut_at, plain};
use premath_kernel::record::log::LogKind;
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

/// Returns the word before a part of an agent's stream.
const fn word(kind: LogKind) -> Option<&'static str> {
    match kind {
        LogKind::Output => None,
        LogKind::Said => Some("agent"),
        LogKind::Thought => Some("thought"),
        LogKind::Call => Some("call"),
        LogKind::Result => Some("result"),
        LogKind::Failed => Some("failed"),
        LogKind::Note => Some("note"),
        LogKind::End => Some("end"),
    }
}

/// Writes lines of a log one after the other, with a head where another command
/// or stream begins.
#[derive(Debug, Default)]
pub struct LogText {
    of: Option<(String, String)>,
    is_raw: bool,
}

impl LogText {
    /// Returns the text of lines that are shown as they were printed.
    pub fn raw() -> Self {
        Self {
            is_raw: true,
            ..Self::default()
        }
    }

    /// Returns lines as text for a person.
    pub fn text(&mut self, lines: &[LogLine]) -> String {
        let mut text = String::new();
        for line in lines {
            let of = (line.phase.clone(), line.stream.clone());
            if self.of.as_ref() != Some(&of) {
                let _ = writeln!(text, "--- {} {}", plain(&line.phase), plain(&line.stream));
                self.of = Some(of);
            }
            put(&mut text, line, self.is_raw);
        }
        text
    }
}

fn put(text: &mut String, line: &LogLine, is_raw: bool) {
    let Some(word) = word(line.kind) else {
        // No output reads as a head or as a part of an agent's stream.
        let mark = if is_raw { "" } else { "| " };
        let written = format!("{mark}{}", shown(&line.text));
        let _ = writeln!(text, "{}", written.trim_end());
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
            "--- setup stdout\n| a\\u{1b}[2J    b\n--- work stdout\ncall    Bash  ls\n\
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
