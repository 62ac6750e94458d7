//! A line of an agent's stream as a person reads it: what the agent said, the
//! calls that it made, and what they gave.
//!
//! This is for people alone. Evidence is made from the events of the adapters.

pub(super) mod claude;
pub(super) mod codex;
pub(super) mod gemini;
pub(super) mod opencode;

use super::Agent;
use premath_kernel::record::log::LogKind;
use serde_json::{Map, Value};

/// A part of a transcript. The text is the agent's: it may hold anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptPart {
    /// What it is.
    pub kind: LogKind,
    /// Its text.
    pub text: String,
}

/// Takes the parts of a line.
pub(crate) type Parts = Vec<TranscriptPart>;

/// Reads a line of a stream; `None` where it is not a JSON object.
pub fn transcript(agent: Agent, line: &[u8]) -> Option<Vec<TranscriptPart>> {
    let line: Map<String, Value> = serde_json::from_slice(line).ok()?;
    let mut parts = Vec::new();
    (agent.spec().transcript)(&line.into(), &mut parts);
    Some(parts)
}

/// How many characters of a call's input are shown.
const SUMMARY: usize = 160;
/// How many characters of a result are shown.
const EXCERPT: usize = 800;
/// How many lines of a result are shown.
const EXCERPT_LINES: usize = 6;

/// Adds a part, unless there is nothing in it.
fn add(parts: &mut Parts, kind: LogKind, text: impl Into<String>) {
    let text = text.into();
    if !text.trim().is_empty() {
        parts.push(TranscriptPart { kind, text });
    }
}

/// Adds a call with a summary of its input.
fn add_call(parts: &mut Parts, tool: &str, input: &Value) {
    let summary = summary(input);
    let text = match summary.is_empty() {
        true => tool.to_owned(),
        false => format!("{tool}  {summary}"),
    };
    add(parts, LogKind::Call, text);
}

/// Adds what a call gave.
fn add_result(parts: &mut Parts, text: &str, is_failure: bool) {
    let kind = match is_failure {
        true => LogKind::Failed,
        false => LogKind::Result,
    };
    let text = excerpt(text);
    let text = match text.is_empty() {
        true => "(no output)".to_owned(),
        false => text,
    };
    parts.push(TranscriptPart { kind, text });
}

/// Members of a call's input that say most about it, the best first.
const TELLING: [&str; 11] = [
    "command",
    "cmd",
    "file_path",
    "filePath",
    "path",
    "pattern",
    "url",
    "query",
    "dir_path",
    "description",
    "prompt",
];

/// Returns a call's input in a line.
fn summary(input: &Value) -> String {
    let told = TELLING.iter().find_map(|name| input[*name].as_str());
    let text = match (told, input) {
        (Some(told), _) => told.to_owned(),
        (None, Value::Null) => String::new(),
        (None, Value::String(text)) => text.clone(),
        (None, other) => other.to_string(),
    };
    let line: Vec<&str> = text.split_whitespace().collect();
    shortened(&line.join(" "), SUMMARY)
}

/// Returns the first lines of a result.
fn excerpt(text: &str) -> String {
    let text = text.trim_end();
    let lines: Vec<&str> = text.lines().take(EXCERPT_LINES).collect();
    let mut shown = shortened(&lines.join("\n"), EXCERPT);
    match text.lines().count().saturating_sub(EXCERPT_LINES) {
        0 => {}
        1 => shown.push_str("\n… 1 more line"),
        more => shown.push_str(&format!("\n… {more} more lines")),
    }
    shown
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the text of a message's content: a text, or blocks with texts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(agent: Agent, lines: &[&str]) -> Vec<(LogKind, String)> {
        let parts = lines
            .iter()
            .flat_map(|line| transcript(agent, line.as_bytes()).unwrap());
        parts.map(|part| (part.kind, part.text)).collect()
    }

    fn owned(parts: &[(LogKind, &str)]) -> Vec<(LogKind, String)> {
        let owned = |(kind, text): &(LogKind, &str)| (*kind, (*text).to_owned());
        parts.iter().map(owned).collect()
    }

    /// What every agent says that runs `echo before` and ends.
    #[test]
    fn each_agents_calls_and_words_are_read() {
        let told = [
            (
                Agent::Claude,
                vec![
                    r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I look."},{"type":"tool_use","name":"Bash","input":{"command":"echo  before\n","description":"Runs"}}]}}"#,
                    r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"before","is_error":false}]}}"#,
                    r#"{"type":"result","subtype":"success","is_error":false,"num_turns":2}"#,
                ],
                "Bash  echo before",
                "success, 2 turns",
            ),
            (
                Agent::Codex,
                vec![
                    r#"{"type":"item.completed","item":{"type":"agent_message","text":"I look."}}"#,
                    r#"{"type":"item.started","item":{"type":"command_execution","command":"echo before","aggregated_output":"","exit_code":null}}"#,
                    r#"{"type":"item.completed","item":{"type":"command_execution","command":"echo before","aggregated_output":"before","exit_code":0}}"#,
                    r#"{"type":"turn.completed"}"#,
                ],
                "shell  echo before",
                "turn completed",
            ),
            (
                Agent::Gemini,
                vec![
                    r#"{"type":"message","role":"assistant","content":"I look.","delta":true}"#,
                    r#"{"type":"tool_use","tool_name":"run_shell_command","parameters":{"command":"echo before"}}"#,
                    r#"{"type":"tool_result","status":"success","output":"before"}"#,
                    r#"{"type":"result","status":"success"}"#,
                ],
                "run_shell_command  echo before",
                "success",
            ),
            (
                Agent::OpenCode,
                vec![
                    r#"{"type":"text","part":{"type":"text","text":"I look."}}"#,
                    r#"{"type":"tool_use","part":{"tool":"bash","state":{"status":"completed","input":{"command":"echo before"},"output":"before"}}}"#,
                    r#"{"type":"step_finish","part":{"reason":"stop"}}"#,
                ],
                "bash  echo before",
                "stop",
            ),
        ];
        for (agent, lines, call, end) in told {
            let expected = [
                (LogKind::Said, "I look."),
                (LogKind::Call, call),
                (LogKind::Result, "before"),
                (LogKind::End, end),
            ];
            assert_eq!(read(agent, &lines), owned(&expected), "{}", agent.as_str());
        }
    }

    #[test]
    fn failures_are_distinguished_and_long_results_are_cut() {
        let long = (1..=20).map(|n| n.to_string()).collect::<Vec<_>>();
        let line = serde_json::json!({"type": "user", "message": {"content": [
            {"type": "tool_result", "is_error": true, "content": [{"type": "text", "text": long.join("\n")}]},
            {"type": "tool_result", "content": ""},
        ]}});
        let expected = [
            (LogKind::Failed, "1\n2\n3\n4\n5\n6\n… 14 more lines"),
            (LogKind::Result, "(no output)"),
        ];
        let found = read(Agent::Claude, &[&line.to_string()]);
        assert_eq!(found, owned(&expected));
        let wide = serde_json::json!({"command": "x".repeat(500)});
        assert_eq!(summary(&wide).chars().count(), SUMMARY + 1);
    }

    #[test]
    fn any_line_is_read_without_a_panic() {
        for agent in Agent::ALL {
            for line in ["", "x", "[1]", "7", "{\"type\":"] {
                assert_eq!(transcript(*agent, line.as_bytes()), None);
            }
            for line in [
                "{}",
                r#"{"type":7}"#,
                r#"{"type":"assistant","message":[]}"#,
                r#"{"type":"item.completed","item":7}"#,
                r#"{"type":"tool_use","part":[]}"#,
                r#"{"type":"result","message":{"content":{}}}"#,
            ] {
                assert!(transcript(*agent, line.as_bytes()).is_some());
            }
        }
    }
}
