//! OpenAI's chat completions.

use super::{Asked, Says, half, text_of};
use serde_json::{Value, json};

pub(super) fn asked(body: &Value) -> Asked {
    let none = Vec::new();
    let messages = body["messages"].as_array().unwrap_or(&none);
    let of_user = messages.iter().filter(|message| message["role"] == "user");
    let prompt: Vec<String> = of_user
        .map(|message| text_of(&message["content"]))
        .collect();
    let calls = messages
        .iter()
        .filter_map(|message| message["tool_calls"].as_array());
    let ids = calls.flatten().filter_map(|call| call["id"].as_str());
    Asked {
        prompt: prompt.join("\n"),
        call_ids: ids.map(str::to_owned).collect(),
        rounds: 0,
        running: None,
        aside: body["tools"].as_array().is_none_or(Vec::is_empty),
        streams: body["stream"] == true,
    }
}

pub(super) fn events(says: &Says) -> Vec<String> {
    let mut events = opening(says);
    for (at, call) in says.calls.iter().enumerate() {
        let function = json!({"name": call.name, "arguments": call.arguments.to_string()});
        let call = json!({"index": at, "id": call.id, "type": "function", "function": function});
        events.push(chunk(says, json!({"tool_calls": [call]}), None, None));
    }
    let reason = if says.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    let spent = says.spent;
    let usage = json!({
        "prompt_tokens": spent.input,
        "completion_tokens": spent.output,
        "total_tokens": spent.input + spent.output,
        "prompt_tokens_details": {"cached_tokens": spent.cached},
    });
    events.push(chunk(says, json!({}), Some(reason), Some(usage)));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

pub(super) fn begun(says: &Says) -> Vec<String> {
    let mut events = opening(says);
    for (at, call) in says.calls.iter().enumerate() {
        let arguments = call.arguments.to_string();
        let function = json!({"name": call.name, "arguments": half(&arguments)});
        let call = json!({"index": at, "id": call.id, "type": "function", "function": function});
        events.push(chunk(says, json!({"tool_calls": [call]}), None, None));
    }
    events
}

fn opening(says: &Says) -> Vec<String> {
    let delta = json!({"role": "assistant", "content": says.text});
    vec![chunk(says, delta, None, None)]
}

fn chunk(says: &Says, delta: Value, reason: Option<&str>, usage: Option<Value>) -> String {
    let mut chunk = json!({
        "id": format!("chatcmpl-{}", says.turn),
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
    });
    if let Some(usage) = usage {
        chunk["usage"] = usage;
    }
    format!("data: {chunk}\n\n")
}
