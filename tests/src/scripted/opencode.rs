//! As OpenCode says it.

use super::beat::{Beat, Call, Deed, End, Format};
use serde_json::{Value, json};

/// A step is open from the model's first word to the end of its call.
#[derive(Default)]
pub(super) struct OpenCode {
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
