//! Codex's stream as a person reads it.

use super::{Parts, add, add_call, add_result, text_of};
use premath_kernel::record::log::LogKind;
use serde_json::Value;

pub(in crate::adapter) fn read(line: &Value, parts: &mut Parts) {
    let item = &line["item"];
    match line["type"].as_str().unwrap_or("") {
        "item.started" => begun(item, parts),
        "item.completed" => completed(item, parts),
        "turn.completed" => add(parts, LogKind::End, "turn completed"),
        "turn.failed" => {
            let message = line["error"]["message"].as_str().unwrap_or("");
            add(parts, LogKind::End, format!("turn failed: {message}"));
        }
        "error" => add(parts, LogKind::Note, line["message"].as_str().unwrap_or("")),
        _ => {}
    }
}

fn begun(item: &Value, parts: &mut Parts) {
    let word = |name: &str| item[name].as_str().unwrap_or("");
    match word("type") {
        "command_execution" => add_call(parts, "shell", item),
        "file_change" => {
            let changes = item["changes"].as_array().into_iter().flatten();
            let paths = changes.filter_map(|change| change["path"].as_str());
            let paths: Vec<&str> = paths.collect();
            add_call(parts, "file_change", &paths.join(" ").into());
        }
        "mcp_tool_call" | "collab_tool_call" => add_call(parts, word("tool"), &item["arguments"]),
        "web_search" => add_call(parts, "web_search", item),
        _ => {}
    }
}

fn completed(item: &Value, parts: &mut Parts) {
    let word = |name: &str| item[name].as_str().unwrap_or("");
    match word("type") {
        "agent_message" => add(parts, LogKind::Said, word("text")),
        "reasoning" => add(parts, LogKind::Thought, word("text")),
        "error" => add(parts, LogKind::Note, word("message")),
        "command_execution" => {
            let failed = item["exit_code"].as_i64().is_none_or(|code| code != 0);
            add_result(parts, word("aggregated_output"), failed);
        }
        "mcp_tool_call" | "collab_tool_call" => {
            let text = text_of(&item["result"]["content"]);
            add_result(parts, &text, word("status") == "failed");
        }
        "file_change" => add_result(parts, word("status"), word("status") == "failed"),
        _ => {}
    }
}
