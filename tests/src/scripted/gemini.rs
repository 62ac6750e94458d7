//! As Gemini CLI says it.

use super::beat::{Beat, Call, Deed, End, Format};
use serde_json::{Value, json};

const TIME: &str = "2026-01-01T00:00:00Z";

pub(super) struct Gemini;

impl Format for Gemini {
    fn lines(&mut self, beat: &Beat<'_>) -> Vec<String> {
        let mut line = match beat {
            Beat::Begin => {
                json!({"type": "init", "session_id": "scripted-gemini", "model": "scripted"})
            }
            Beat::Say(text) => {
                json!({"type": "message", "role": "assistant", "content": text, "delta": true})
            }
            Beat::Call(call) => request(call),
            Beat::Done(call, end) => {
                let mut line = json!({"type": "tool_result", "tool_id": call.id});
                match end {
                    End::Ok(output) => {
                        line["status"] = "success".into();
                        line["output"] = (*output).into();
                    }
                    End::Error(error) => {
                        line["status"] = "error".into();
                        line["error"] = json!({"type": "tool_failed", "message": error});
                    }
                    End::NoCode => line["status"] = "success".into(),
                }
                line
            }
            // What was used is reported at the end only.
            Beat::Lost | Beat::Used(_) => return Vec::new(),
            Beat::Finished(tokens) => json!({
                "type": "result", "status": "success",
                "stats": {"input_tokens": tokens, "output_tokens": 10, "cached": 0},
            }),
            Beat::Failed(why) => failed(why),
            Beat::Refused(_) => failed("RESOURCE_EXHAUSTED: you have exhausted your daily quota"),
        };
        line["timestamp"] = TIME.into();
        vec![line.to_string()]
    }
}

fn failed(why: &str) -> Value {
    json!({
        "type": "result", "status": "error",
        "error": {"type": "Error", "message": why},
        "stats": {"input_tokens": 10, "output_tokens": 10, "cached": 0},
    })
}

fn request(call: &Call) -> Value {
    let (name, parameters) = match &call.deed {
        Deed::Command(command) => ("run_shell_command", json!({"command": command})),
        Deed::Write { path, content } => {
            ("write_file", json!({"file_path": path, "content": content}))
        }
    };
    json!({
        "type": "tool_use", "tool_name": name, "tool_id": call.id, "parameters": parameters,
    })
}
