//! OpenAI's responses.

use super::{Asked, Says, half, number_after, text_of};
use crate::model::MadeCall;
use serde_json::{Value, json};

pub(super) fn asked(body: &Value) -> Asked {
    let none = Vec::new();
    let items = body["input"].as_array().unwrap_or(&none);
    // A sub-agent is given its task by a message of the agent that called it.
    let of_user = items.iter().filter(|item| {
        item["role"] == "user" || item["type"] == "agent_message" && item["author"] == "/root"
    });
    let prompt: Vec<String> = of_user.map(|item| text_of(&item["content"])).collect();
    let calls = items.iter().filter(|item| {
        let kind = item["type"].as_str().unwrap_or_default();
        matches!(kind, "function_call" | "custom_tool_call")
    });
    let outputs = items
        .iter()
        .rev()
        .filter_map(|item| item["output"].as_str());
    let ids = calls.filter_map(|call| call["call_id"].as_str());
    Asked {
        prompt: prompt.join("\n"),
        call_ids: ids.map(str::to_owned).collect(),
        rounds: 0,
        running: outputs
            .filter_map(|output| number_after(output, "running with session ID "))
            .next(),
        aside: body["tools"].as_array().is_none_or(Vec::is_empty),
        streams: body["stream"] == true,
    }
}

pub(super) fn events(says: &Says) -> Vec<String> {
    let mut events = opening(says);
    if !says.text.is_empty() {
        events.push(event(&json!({
            "type": "response.output_item.done",
            "output_index": 0,
            "item": message(says),
        })));
    }
    for (at, call) in says.calls.iter().enumerate() {
        events.push(event(&json!({
            "type": "response.output_item.added",
            "output_index": at + 1,
            "item": item(call, ""),
        })));
        events.push(event(&json!({
            "type": "response.output_item.done",
            "output_index": at + 1,
            "item": item(call, &arguments(call)),
        })));
    }
    let spent = says.spent;
    events.push(event(&json!({
        "type": "response.completed",
        "response": {
            "id": response_id(says),
            "object": "response",
            "status": "completed",
            "output": [],
            "usage": {
                "input_tokens": spent.input,
                "input_tokens_details": {"cached_tokens": spent.cached},
                "output_tokens": spent.output,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": spent.input + spent.output,
            },
        },
    })));
    events
}

pub(super) fn begun(says: &Says) -> Vec<String> {
    let mut events = opening(says);
    for (at, call) in says.calls.iter().enumerate() {
        let arguments = arguments(call);
        events.push(event(&json!({
            "type": "response.output_item.added",
            "output_index": at + 1,
            "item": item(call, ""),
        })));
        events.push(event(&json!({
            "type": "response.function_call_arguments.delta",
            "output_index": at + 1,
            "item_id": format!("fc_{}", call.id),
            "delta": half(&arguments),
        })));
    }
    events
}

fn opening(says: &Says) -> Vec<String> {
    let mut events = vec![event(&json!({
        "type": "response.created",
        "response": {"id": response_id(says), "object": "response", "status": "in_progress", "output": []},
    }))];
    if !says.text.is_empty() {
        events.push(event(&json!({
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "message", "role": "assistant", "id": message_id(says), "content": []},
        })));
        events.push(event(&json!({
            "type": "response.output_text.delta",
            "output_index": 0,
            "content_index": 0,
            "item_id": message_id(says),
            "delta": says.text,
        })));
    }
    events
}

fn message(says: &Says) -> Value {
    json!({
        "type": "message",
        "role": "assistant",
        "id": message_id(says),
        "content": [{"type": "output_text", "text": says.text, "annotations": []}],
    })
}

/// A tool with text in place of arguments is one of Codex's own kind.
fn item(call: &MadeCall, arguments: &str) -> Value {
    let (id, name) = (&call.id, &call.name);
    match call.arguments.is_string() {
        true => json!({
            "type": "custom_tool_call", "id": format!("ctc_{id}"), "call_id": id,
            "name": name, "input": arguments, "status": "completed",
        }),
        false => {
            let mut item = json!({
                "type": "function_call", "id": format!("fc_{id}"), "call_id": id,
                "name": name, "arguments": arguments, "status": "completed",
            });
            if let Some((space, name)) = name.split_once('.') {
                item["namespace"] = space.into();
                item["name"] = name.into();
            }
            item
        }
    }
}

fn arguments(call: &MadeCall) -> String {
    match &call.arguments {
        Value::String(text) => text.clone(),
        arguments => arguments.to_string(),
    }
}

fn response_id(says: &Says) -> String {
    format!("resp_{}", says.turn)
}

fn message_id(says: &Says) -> String {
    format!("msg_{}", says.turn)
}

fn event(data: &Value) -> String {
    let kind = data["type"].as_str().unwrap_or_default();
    format!("event: {kind}\ndata: {data}\n\n")
}
