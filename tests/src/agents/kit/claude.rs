//! Claude: how it is pointed at a model server, and how it says things.

use super::{AgentKit, StreamLines};
use crate::scripted::Misbehaviour;
use crate::scripted::beat::{Beat, Call, Deed, End, Format};
use premath_evidence::Agent;
use serde_json::{Value, json};

/// Claude, as tests know it.
pub(super) static KIT: AgentKit = AgentKit {
    agent: Agent::Claude,
    settings: (".claude/settings.json", settings),
    // No file of its names a server.
    environment: |url, _| {
        vec![
            ("ANTHROPIC_BASE_URL", url.to_owned()),
            ("ANTHROPIC_API_KEY", "none".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("CLAUDE_CODE_MAX_RETRIES", "2".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ]
    },
    arguments: &[
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--dangerously-skip-permissions",
    ],
    format: || Box::new(Claude),
    not_said: &[(Misbehaviour::NullExit, "its results have no exit code")],
    reports_use_as_it_goes: true,
    lines: StreamLines {
        begin: "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\"}\n",
        end: "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false}\n",
        call,
    },
};

const SESSION: &str = "scripted-claude";

/// What a run of it costs, in billionths of a dollar, where it ends well.
pub const CLAUDE_COST_NANO_USD: u64 = 12_500_000;

struct Claude;

impl Format for Claude {
    fn lines(&mut self, beat: &Beat<'_>) -> Vec<String> {
        let line = match beat {
            Beat::Begin => json!({
                "type": "system", "subtype": "init", "session_id": SESSION,
                "model": "scripted", "tools": ["Bash", "Write"],
            }),
            Beat::Say(text) => assistant(json!({"type": "text", "text": text}), None),
            Beat::Call(call) => assistant(request(call), None),
            Beat::Done(call, end) => {
                let (content, failed) = match end {
                    End::Ok(output) => (*output, false),
                    End::Error(error) => (*error, true),
                    End::NoCode => ("", false),
                };
                let mut block = json!({
                    "type": "tool_result", "tool_use_id": call.id, "content": content,
                });
                if failed {
                    block["is_error"] = true.into();
                }
                json!({
                    "type": "user", "session_id": SESSION, "parent_tool_use_id": null,
                    "message": {"role": "user", "content": [block]},
                })
            }
            Beat::Lost => return Vec::new(),
            Beat::Used(tokens) => {
                assistant(json!({"type": "thinking", "thinking": "…"}), Some(*tokens))
            }
            Beat::Finished(tokens) => json!({
                "type": "result", "subtype": "success", "is_error": false, "num_turns": 3,
                "session_id": SESSION, "result": "Done.", "permission_denials": [],
                "usage": {"input_tokens": tokens, "output_tokens": 10},
                "total_cost_usd": 0.0125,
            }),
            Beat::Failed(why) => json!({
                "type": "result", "subtype": "error_during_execution", "is_error": true,
                "num_turns": 3, "session_id": SESSION, "result": why,
            }),
            Beat::Refused(resets_at) => {
                return vec![
                    json!({
                        "type": "rate_limit_event", "session_id": SESSION,
                        "rate_limit_info": {"status": "rejected", "resetsAt": resets_at},
                    })
                    .to_string(),
                    json!({
                        "type": "result", "subtype": "success", "is_error": true,
                        "api_error_status": 429, "num_turns": 1, "session_id": SESSION,
                        "result": "You've hit your session limit",
                    })
                    .to_string(),
                ];
            }
        };
        vec![line.to_string()]
    }
}

fn request(call: &Call) -> Value {
    let (name, input) = match &call.deed {
        Deed::Command(command) => ("Bash", json!({"command": command})),
        Deed::Write { path, content } => ("Write", json!({"file_path": path, "content": content})),
    };
    json!({"type": "tool_use", "id": call.id, "name": name, "input": input})
}

fn assistant(block: Value, tokens: Option<u64>) -> Value {
    let mut line = json!({
        "type": "assistant", "session_id": SESSION, "parent_tool_use_id": null,
        "message": {"content": [block], "stop_reason": null},
    });
    if let Some(tokens) = tokens {
        line["message"]["id"] = format!("m-{tokens}").into();
        line["message"]["usage"] = json!({"input_tokens": tokens, "output_tokens": 1});
    }
    line
}

fn settings(_url: &str) -> String {
    json!({
        "env": {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
        "autoUpdates": false,
    })
    .to_string()
}

fn call(number: u32, output: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"m{number}","content":[{{"type":"tool_use","id":"toolu_{number}","name":"Bash","input":{{"command":"cat {number}"}}}}]}},"parent_tool_use_id":null,"session_id":"s"}}
{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"toolu_{number}","content":"{output}"}}]}},"parent_tool_use_id":null,"session_id":"s"}}
"#
    )
}
