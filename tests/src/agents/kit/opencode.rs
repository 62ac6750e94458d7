//! OpenCode: how it is pointed at a model server, and how it says things.

use super::{AgentKit, StreamLines};
use crate::scripted::Misbehaviour;
use crate::scripted::beat::{Beat, Call, Deed, End, Format};
use premath_evidence::Agent;
use serde_json::{Value, json};

/// OpenCode, as tests know it.
pub(super) static KIT: AgentKit = AgentKit {
    agent: Agent::OpenCode,
    settings: (".config/opencode/opencode.json", settings),
    environment: |_, _| Vec::new(),
    arguments: &["run", "--format", "json"],
    format: || Box::new(OpenCode::default()),
    not_said: &[(
        Misbehaviour::Orphan,
        "a call is reported once, when it is over: each result is its own request",
    )],
    reports_use_as_it_goes: true,
    lines: StreamLines {
        begin: "{\"type\":\"step_start\",\"sessionID\":\"o\"}\n",
        end: "{\"type\":\"step_finish\",\"sessionID\":\"o\",\"part\":{\"reason\":\"stop\"}}\n",
        call,
    },
};

/// A step is open from the model's first word to the end of its call.
#[derive(Default)]
struct OpenCode {
    open: bool,
}

impl Format for OpenCode {
    fn lines(&mut self, beat: &Beat<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        match beat {
            Beat::Begin => self.step(&mut lines),
            Beat::Say(text) => {
                self.step(&mut lines);
                lines.push(event("text", json!({"type": "text", "text": text})));
            }
            // A call is reported when it is over.
            Beat::Call(_) => self.step(&mut lines),
            Beat::Done(call, end) => {
                self.step(&mut lines);
                lines.push(event("tool_use", part(call, end)));
                self.end("tool-calls", 10, &mut lines);
            }
            Beat::Lost => self.end("tool-calls", 10, &mut lines),
            Beat::Used(tokens) => {
                self.step(&mut lines);
                lines.push(event("text", json!({"type": "text", "text": "…"})));
                let call = Call {
                    id: format!("used_{tokens}"),
                    deed: Deed::Command("true".to_owned()),
                };
                lines.push(event("tool_use", part(&call, &End::Ok(""))));
                self.end("tool-calls", *tokens, &mut lines);
            }
            Beat::Finished(_) => {
                self.step(&mut lines);
                self.end("stop", 10, &mut lines);
            }
            Beat::Failed(why) => lines.push(failed("UnknownError", json!({"message": why}))),
            Beat::Refused(_) => {
                let data = json!({"message": "Too Many Requests", "statusCode": 429});
                lines.push(failed("APIError", data));
            }
        }
        lines.iter().map(Value::to_string).collect()
    }
}

impl OpenCode {
    fn step(&mut self, lines: &mut Vec<Value>) {
        if !self.open {
            self.open = true;
            lines.push(event("step_start", json!({"type": "step-start"})));
        }
    }

    fn end(&mut self, reason: &str, tokens: u64, lines: &mut Vec<Value>) {
        self.open = false;
        let part = json!({
            "type": "step-finish", "reason": reason, "cost": 0,
            "tokens": {
                "input": tokens, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0},
            },
        });
        lines.push(event("step_finish", part));
    }
}

fn event(kind: &str, part: Value) -> Value {
    json!({"type": kind, "timestamp": 1, "sessionID": "scripted-opencode", "part": part})
}

fn failed(name: &str, data: Value) -> Value {
    json!({
        "type": "error", "timestamp": 1, "sessionID": "scripted-opencode",
        "error": {"name": name, "data": data},
    })
}

fn part(call: &Call, end: &End<'_>) -> Value {
    let (tool, input, is_command) = match &call.deed {
        Deed::Command(command) => ("bash", json!({"command": command}), true),
        Deed::Write { path, content } => (
            "write",
            json!({"filePath": path, "content": content}),
            false,
        ),
    };
    let mut state = json!({"input": input, "status": "completed"});
    let code = match end {
        End::Ok(output) => {
            state["output"] = (*output).into();
            json!(0)
        }
        End::Error(error) => {
            state["status"] = "error".into();
            state["error"] = (*error).into();
            json!(1)
        }
        End::NoCode => {
            state["output"] = "".into();
            json!(null)
        }
    };
    if is_command {
        state["metadata"] = json!({"exit": code});
    }
    json!({"type": "tool", "callID": call.id, "tool": tool, "state": state})
}

fn settings(url: &str) -> String {
    json!({
        "autoupdate": false,
        "share": "disabled",
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "provider": {"scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": format!("{url}/v1"), "apiKey": "none"},
            "models": {"scripted": {
                "name": "scripted",
                "limit": {"context": 100_000, "output": 10_000},
                "cost": {"input": 1, "output": 10, "cache_read": 0.1},
            }},
        }},
    })
    .to_string()
}

fn call(number: u32, output: &str) -> String {
    format!(
        r#"{{"type":"tool_use","timestamp":{number},"sessionID":"o","part":{{"type":"tool","callID":"c{number}","tool":"bash","state":{{"status":"completed","input":{{"command":"cat {number}"}},"output":"{output}","metadata":{{"exit":0}}}}}}}}
"#
    )
}
