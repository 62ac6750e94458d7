//! Codex: how it is pointed at a model server, and how it says things.

use super::{AgentKit, StreamLines};
use crate::scripted::beat::{Beat, Call, Deed, End, Format};
use premath_evidence::Agent;
use serde_json::{Value, json};

/// Codex, as tests know it.
pub(super) static KIT: AgentKit = AgentKit {
    agent: Agent::Codex,
    settings: (".codex/config.toml", settings),
    environment: |_, home| {
        let folder = home.join(".codex").to_string_lossy().into_owned();
        vec![("CODEX_HOME", folder)]
    },
    arguments: &[
        "exec",
        "--json",
        "--skip-git-repo-check",
        "-s",
        "danger-full-access",
    ],
    format: || Box::new(Codex),
    not_said: &[],
    reports_use_as_it_goes: false,
    lines: StreamLines {
        begin: "{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n{\"type\":\"turn.started\"}\n",
        end: "{\"type\":\"turn.completed\",\"usage\":{}}\n",
        call,
    },
};

struct Codex;

impl Format for Codex {
    fn lines(&mut self, beat: &Beat<'_>) -> Vec<String> {
        let lines = match beat {
            Beat::Begin => vec![
                json!({"type": "thread.started", "thread_id": "scripted-codex"}),
                json!({"type": "turn.started"}),
            ],
            Beat::Say(text) => {
                let item = json!({"id": "said", "type": "agent_message", "text": text});
                vec![json!({"type": "item.completed", "item": item})]
            }
            Beat::Call(call) => vec![json!({"type": "item.started", "item": item(call, None)})],
            Beat::Done(call, end) => {
                vec![json!({"type": "item.completed", "item": item(call, Some(end))})]
            }
            // What was used is reported at the end of the turn only.
            Beat::Lost | Beat::Used(_) => Vec::new(),
            Beat::Finished(tokens) => {
                let usage =
                    json!({"input_tokens": tokens, "cached_input_tokens": 0, "output_tokens": 10});
                vec![json!({"type": "turn.completed", "usage": usage})]
            }
            Beat::Failed(why) => vec![
                json!({"type": "error", "message": why}),
                json!({"type": "turn.failed", "error": {"message": why}}),
            ],
            Beat::Refused(_) => {
                let said = "You've hit your usage limit. Try again later.";
                vec![
                    json!({"type": "error", "message": said}),
                    json!({"type": "turn.failed", "error": {"message": said}}),
                ]
            }
        };
        lines.iter().map(Value::to_string).collect()
    }
}

fn item(call: &Call, end: Option<&End<'_>>) -> Value {
    let status = match end {
        None => "in_progress",
        Some(End::Ok(_) | End::NoCode) => "completed",
        Some(End::Error(_)) => "failed",
    };
    match &call.deed {
        Deed::Command(command) => {
            let (output, code) = match end {
                None | Some(End::NoCode) => ("", json!(null)),
                Some(End::Ok(output)) => (*output, json!(0)),
                Some(End::Error(output)) => (*output, json!(1)),
            };
            json!({
                "id": call.id, "type": "command_execution", "command": command,
                "aggregated_output": output, "exit_code": code, "status": status,
            })
        }
        Deed::Write { path, .. } => json!({
            "id": call.id, "type": "file_change", "status": status,
            "changes": [{"path": path, "kind": "add"}],
        }),
    }
}

fn settings(url: &str) -> String {
    format!(
        r#"model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
request_max_retries = 2
stream_max_retries = 2

[analytics]
enabled = false
"#
    )
}

fn call(number: u32, output: &str) -> String {
    format!(
        r#"{{"type":"item.started","item":{{"id":"item_{number}","type":"command_execution","command":"cat {number}","aggregated_output":"","exit_code":null,"status":"in_progress"}}}}
{{"type":"item.completed","item":{{"id":"item_{number}","type":"command_execution","command":"cat {number}","aggregated_output":"{output}","exit_code":0,"status":"completed"}}}}
"#
    )
}
