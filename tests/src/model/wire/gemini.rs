//! Gemini's `streamGenerateContent`.

use super::{Asked, Says, number_after, text_of};
use crate::model::Refusal;
use serde_json::{Value, json};

pub(super) fn asked(path: &str, body: &Value) -> Asked {
    let none = Vec::new();
    let contents = body["contents"].as_array().unwrap_or(&none);
    let of_user = contents.iter().filter(|content| content["role"] == "user");
    let prompt: Vec<String> = of_user.map(|content| text_of(&content["parts"])).collect();
    let calls = |content: &Value| {
        let parts = content["parts"].as_array();
        parts.is_some_and(|parts| parts.iter().any(|part| part.get("functionCall").is_some()))
    };
    let of_model = contents.iter().filter(|content| content["role"] == "model");
    Asked {
        prompt: prompt.join("\n"),
        call_ids: Vec::new(),
        rounds: of_model.filter(|content| calls(content)).count(),
        running: number_after(&body["contents"].to_string(), "(PID: "),
        aside: body["tools"].as_array().is_none_or(Vec::is_empty),
        streams: path.contains(":streamGenerateContent"),
    }
}

pub(super) fn events(says: &Says) -> Vec<String> {
    let text = (!says.text.is_empty()).then(|| json!({"text": says.text}));
    let calls = says.calls.iter().map(
        |call| json!({"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}}),
    );
    let parts: Vec<Value> = text.into_iter().chain(calls).collect();
    let spent = says.spent;
    vec![event(&json!({
        "responseId": format!("resp-{}", says.turn),
        "modelVersion": "scripted",
        "candidates": [{
            "index": 0,
            "content": {"role": "model", "parts": parts},
            "finishReason": "STOP",
        }],
        "usageMetadata": {
            "promptTokenCount": spent.input,
            "cachedContentTokenCount": spent.cached,
            "candidatesTokenCount": spent.output,
            "totalTokenCount": spent.input + spent.output,
        },
    }))]
}

/// Calls come whole here, so that half of one is none.
pub(super) fn begun(says: &Says) -> Vec<String> {
    let text = json!([{"text": says.text}]);
    vec![event(&json!({
        "responseId": format!("resp-{}", says.turn),
        "modelVersion": "scripted",
        "candidates": [{"index": 0, "content": {"role": "model", "parts": text}}],
    }))]
}

pub(super) fn refusal(refusal: &Refusal) -> Value {
    let word = match refusal.status {
        429 => "RESOURCE_EXHAUSTED",
        400 => "INVALID_ARGUMENT",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    };
    let details: Vec<Value> = refusal
        .retry_after
        .map(|seconds| {
            json!({
                "@type": "type.googleapis.com/google.rpc.RetryInfo",
                "retryDelay": format!("{seconds}s"),
            })
        })
        .into_iter()
        .collect();
    json!({
        "code": refusal.status,
        "message": refusal.message,
        "status": word,
        "details": details,
    })
}

fn event(data: &Value) -> String {
    format!("data: {data}\r\n\r\n")
}
