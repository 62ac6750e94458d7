//! OpenCode's stream as a person reads it.

use super::{PartKind, Parts, add, add_call, add_result};
use serde_json::Value;

pub(in crate::adapter) fn read(line: &Value, parts: &mut Parts) {
    let part = &line["part"];
    let word = |name: &str| part[name].as_str().unwrap_or("");
    match line["type"].as_str().unwrap_or("") {
        "text" => add(parts, PartKind::Said, word("text")),
        "reasoning" => add(parts, PartKind::Thought, word("text")),
        "tool_use" => {
            let state = &part["state"];
            add_call(parts, word("tool"), &state["input"]);
            let failed = state["status"] == "error";
            let text = state[if failed { "error" } else { "output" }].as_str();
            add_result(parts, text.unwrap_or(""), failed);
        }
        // A step ends with each answer of the model; most are followed by calls.
        "step_finish" if word("reason") != "tool-calls" => {
            add(parts, PartKind::End, word("reason"));
        }
        "error" => {
            let message = line["error"]["data"]["message"].as_str();
            let name = || line["error"]["name"].as_str();
            add(
                parts,
                PartKind::Note,
                message.or_else(name).unwrap_or("error"),
            );
        }
        _ => {}
    }
}
