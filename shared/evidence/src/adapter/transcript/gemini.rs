//! Gemini CLI's stream as a person reads it.

use super::{Parts, add, add_call, add_result, text_of};
use premath_kernel::record::log::LogKind;
use serde_json::Value;

pub(in crate::adapter) fn read(line: &Value, parts: &mut Parts) {
    let word = |name: &str| line[name].as_str().unwrap_or("");
    let message = || line["error"]["message"].as_str().unwrap_or("");
    match word("type") {
        "init" => add(parts, LogKind::Note, format!("model {}", word("model"))),
        // The other role is the prompt.
        "message" if word("role") == "assistant" => {
            add(parts, LogKind::Said, text_of(&line["content"]));
        }
        "tool_use" => add_call(parts, word("tool_name"), &line["parameters"]),
        "tool_result" => {
            let failed = word("status") != "success";
            let output = match text_of(&line["output"]) {
                text if text.is_empty() => message().to_owned(),
                text => text,
            };
            add_result(parts, &output, failed);
        }
        "error" => add(parts, LogKind::Note, word("message")),
        "result" => {
            let end = match message() {
                "" => word("status").to_owned(),
                message => format!("{}: {message}", word("status")),
            };
            add(parts, LogKind::End, end);
        }
        _ => {}
    }
}
