//! Claude Code's stream as a person reads it.

use super::{Parts, add, add_call, add_result, text_of};
use premath_kernel::record::log::LogKind;
use serde_json::Value;

pub(in crate::adapter) fn read(line: &Value, parts: &mut Parts) {
    let word = |name: &str| line[name].as_str().unwrap_or("");
    match word("type") {
        "system" => match word("subtype") {
            "init" => add(parts, LogKind::Note, format!("model {}", word("model"))),
            "api_retry" => {
                let again = format!("the provider is asked again: {}", word("error"));
                add(parts, LogKind::Note, again);
            }
            "informational" => add(parts, LogKind::Note, word("content")),
            "notification" => add(parts, LogKind::Note, word("text")),
            "permission_denied" => add(parts, LogKind::Note, word("message")),
            "task_notification" => add(parts, LogKind::Note, word("summary")),
            _ => {}
        },
        "assistant" | "user" => message(line, word("type") == "assistant", parts),
        "result" => {
            let mut end = word("subtype").to_owned();
            if let Some(turns) = line["num_turns"].as_u64() {
                end.push_str(&format!(", {turns} turns"));
            }
            if line["is_error"] == true {
                end.push_str(&format!(", failed: {}", word("result")));
            }
            add(parts, LogKind::End, end);
        }
        _ => {}
    }
}

fn message(line: &Value, is_assistant: bool, parts: &mut Parts) {
    let content = &line["message"]["content"];
    let speaks = match is_assistant {
        true => LogKind::Said,
        false => LogKind::Note,
    };
    let Some(blocks) = content.as_array() else {
        return add(parts, speaks, text_of(content));
    };
    for block in blocks {
        let word = |name: &str| block[name].as_str().unwrap_or("");
        match word("type") {
            "text" => add(parts, speaks, word("text")),
            "thinking" => add(parts, LogKind::Thought, word("thinking")),
            "tool_use" | "server_tool_use" => add_call(parts, word("name"), &block["input"]),
            "tool_result" => {
                let text = text_of(&block["content"]);
                add_result(parts, &text, block["is_error"] == true);
            }
            _ => {}
        }
    }
}
