//! Anthropic's messages.

use super::{Asked, Says, half, text_of};
use crate::model::{MadeCall, Refusal};
use serde_json::{Value, json};

pub(super) fn asked(body: &Value) -> Asked {
    let none = Vec::new();
    let messages = body["messages"].as_array().unwrap_or(&none);
    let of_user = messages.iter().filter(|message| message["role"] == "user");
    let prompt: Vec<String> = of_user
        .map(|message| text_of(&message["content"]))
        .collect();
    let blocks = messages
        .iter()
        .filter_map(|message| message["content"].as_array())
        .flatten();
    let calls = blocks.filter(|block| block["type"] == "tool_use");
    let ids = calls.filter_map(|call| call["id"].as_str());
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
    let first = usize::from(!says.text.is_empty());
    if !says.text.is_empty() {
        events.push(event(&json!({"type": "content_block_stop", "index": 0})));
    }
    for (at, call) in says.calls.iter().enumerate() {
        let index = first + at;
        events.extend(begin_of(call, index, &call.arguments.to_string()));
        events.push(event(
            &json!({"type": "content_block_stop", "index": index}),
        ));
    }
    let usual = match says.calls.is_empty() {
        true => "end_turn",
        false => "tool_use",
    };
    let reason = says.stop.as_deref().unwrap_or(usual);
    events.push(event(&json!({
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": null},
        "usage": {"output_tokens": says.spent.output},
    })));
    events.push(event(&json!({"type": "message_stop"})));
    events
}

pub(super) fn begun(says: &Says) -> Vec<String> {
    let mut events = opening(says);
    let first = usize::from(!says.text.is_empty());
    for (at, call) in says.calls.iter().enumerate() {
        let arguments = call.arguments.to_string();
        events.extend(begin_of(call, first + at, half(&arguments)));
    }
    events
}

/// Returns a whole answer as one document.
pub(super) fn document(says: &Says) -> Value {
    let mut document = message(says);
    document["content"] = json!([{"type": "text", "text": says.text}]);
    document["stop_reason"] = json!("end_turn");
    document["usage"]["output_tokens"] = json!(says.spent.output);
    document
}

pub(super) fn refusal(refusal: &Refusal) -> Value {
    let kind = refusal.kind.as_deref().unwrap_or(match refusal.status {
        429 => "rate_limit_error",
        400 => "invalid_request_error",
        _ => "api_error",
    });
    json!({"type": kind, "message": refusal.message})
}

/// What comes before the first call: the message, and its text.
fn opening(says: &Says) -> Vec<String> {
    let mut events = vec![event(
        &json!({"type": "message_start", "message": message(says)}),
    )];
    if !says.text.is_empty() {
        let block = json!({"type": "text", "text": ""});
        let delta = json!({"type": "text_delta", "text": says.text});
        events.push(start_of(0, &block));
        events.push(delta_of(0, &delta));
    }
    events
}

/// What went in without what came out of a cache, as the provider counts it.
/// No two messages have one id.
fn message(says: &Says) -> Value {
    let spent = says.spent;
    json!({
        "id": format!("msg_{}", says.name),
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": {
            "input_tokens": spent.input - spent.cached,
            "cache_read_input_tokens": spent.cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": 0,
        },
    })
}

fn begin_of(call: &MadeCall, index: usize, arguments: &str) -> [String; 2] {
    let block = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
    let delta = json!({"type": "input_json_delta", "partial_json": arguments});
    [start_of(index, &block), delta_of(index, &delta)]
}

fn start_of(index: usize, block: &Value) -> String {
    event(&json!({"type": "content_block_start", "index": index, "content_block": block}))
}

fn delta_of(index: usize, delta: &Value) -> String {
    event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn event(data: &Value) -> String {
    let kind = data["type"].as_str().unwrap_or_default();
    format!("event: {kind}\ndata: {data}\n\n")
}
