//! OpenCode's stream as a person reads it.

use super::{Parts, add, add_call, add_result};
use premath_kernel::record::log::LogKind;
use serde_json::Value;

pub(in crate::adapter) fn read(line: &Value, parts: &mut Parts) {
    let part = &line["part"];
    let word = |name: &str| part[name].as_str().unwrap_or("");
    match line["type"].as_str().unwrap_or("") {
        "text" => add(parts, LogKind::Said, word("text")),
        "reasoning" => add(parts, LogKind::Thought, word("text")),
        "tool_use" => {
            let state = &part["state"];
            add_call(parts, word("tool"), &state["input"]);
            let failed = state["status"] == "error";
            let text = state[if failed { "error" } else { "output" }].as_str();
            add_result(parts, text.unwrap_or(""), failed);
        }
        // A step ends with each answer of the model; most are followed by calls.
        "step_finish" if word("reason") != "tool-calls" => {
            add(parts, LogKind::End, word("reason"));
        }
        "error" => {
            let message = line["error"]["data"]["message"].as_str();
            let name = || line["error"]["name"].as_str();
            add(
                parts,
                LogKind::Note,
                message.or_else(name).unwrap_or("error"),
            );
        }
        _ => {}
    }
}
