//! Gemini CLI: how it is pointed at a model server, and how it says things.

use super::{AgentKit, StreamLines};
use crate::scripted::Misbehaviour;
use crate::scripted::beat::{Beat, Call, Deed, End, Format};
use premath_evidence::Agent;
use serde_json::{Value, json};

/// Gemini CLI, as tests know it.
pub(super) static KIT: AgentKit = AgentKit {
    agent: Agent::Gemini,
    settings: (".gemini/settings.json", settings),
    environment: |url, _| {
        vec![
            ("GOOGLE_GEMINI_BASE_URL", url.to_owned()),
            ("GEMINI_API_KEY", "none".to_owned()),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()),
        ]
    },
    arguments: &[
        "--model",
        "gemini-2.5-flash",
        "--output-format",
        "stream-json",
        "--yolo",
        "--prompt",
    ],
    format: || Box::new(Gemini),
    not_said: &[(Misbehaviour::NullExit, "its results have no exit code")],
    reports_use_as_it_goes: false,
    lines: StreamLines {
        begin: "{\"type\":\"init\",\"session_id\":\"g\"}\n",
        end: "{\"type\":\"result\",\"status\":\"success\"}\n",
        call,
    },
};

const TIME: &str = "2026-01-01T00:00:00Z";

struct Gemini;

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

fn settings(_url: &str) -> String {
    json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "general": {"disableAutoUpdate": true, "enableAutoUpdate": false, "maxAttempts": 2},
        "model": {"name": "gemini-2.5-flash", "maxSessionTurns": 12},
    })
    .to_string()
}

fn call(number: u32, output: &str) -> String {
    format!(
        r#"{{"type":"tool_use","tool_name":"shell","tool_id":"c{number}","parameters":{{"command":"cat {number}"}}}}
{{"type":"tool_result","tool_id":"c{number}","status":"success","output":"{output}"}}
"#
    )
}
