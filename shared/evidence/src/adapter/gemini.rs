//! Gemini CLI's `stream-json`.
//!
//! Requests of one answer come before their results. A call that was cancelled
//! is said to be a success, and may bear its error all the same.

use super::{Out, speaks_of_limit, unknown};
use crate::event::{
    Begun, CallRequest, CallResult, EventKind, Limit, LimitStatus, Speaker, Terminal, Tokens,
    Usage, UsageBasis,
};
use crate::flaw::Flaw;
use crate::json::{Object, digest_of};
use crate::shell::CallEnd;

/// Which answer of the model it is.
#[derive(Debug, Default)]
pub(crate) struct Gemini {
    round: u64,
    answered: bool,
}

impl Gemini {
    pub(super) fn read(&mut self, line: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
        match &*line.word("type")? {
            "init" => out(EventKind::Begun(Begun {
                session_id: line.optional_name("session_id")?,
                model: line.optional_name("model")?,
            })),
            "message" => {
                if &*line.word("role")? == "assistant" {
                    out(EventKind::Message(self.speaker()));
                }
            }
            "tool_use" => out(EventKind::Request(CallRequest {
                call_id: line.name("tool_id")?,
                tool: line.name("tool_name")?,
                input_digest: digest_of(line.get("parameters")?),
                speaker: self.speaker(),
                synthesized: false,
            })),
            "tool_result" => {
                self.answered = true;
                let output = line.get("output")?;
                out(EventKind::Result(CallResult {
                    call_id: line.name("tool_id")?,
                    caller: None,
                    input_digest: None,
                    end: end(line)?,
                    digest: digest_of(output),
                    bytes: output.map_or(0, |output| output.get().len() as u64),
                }));
            }
            "error" => out(EventKind::Notice(line.excerpt("message")?)),
            "result" => result(line, out)?,
            other => return unknown(other, line, out),
        }
        Ok(())
    }

    /// What comes after results is of the next answer.
    fn speaker(&mut self) -> Speaker {
        if std::mem::take(&mut self.answered) {
            self.round += 1;
        }
        Speaker {
            caller: None,
            round: Some(self.round.to_string()),
        }
    }
}

fn end(line: &Object<'_>) -> Result<CallEnd, Flaw> {
    let failed = match &*line.word("status")? {
        "success" => false,
        "error" => true,
        _ => return Err(Flaw::field("status", "success or error")),
    };
    let error = line.object("error")?;
    if !failed && error.is_none() {
        return Ok(CallEnd::Ok);
    }
    let said = |name| match &error {
        Some(error) => error.excerpt(name),
        None => Ok(String::new()),
    };
    Ok(CallEnd::failed(&said("type")?, said("message")?))
}

fn result(line: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
    if let Some(stats) = line.object("stats")? {
        let count = |name| Ok(stats.count(name)?.unwrap_or_default());
        out(EventKind::Usage(Usage {
            basis: UsageBasis::RunningTotal,
            tokens: Some(Tokens {
                input: count("input_tokens")?,
                cached: count("cached")?,
                output: count("output_tokens")?,
            }),
            cost_nano_usd: None,
        }));
    }
    let terminal = match &*line.word("status")? {
        "success" => Terminal::Finished {
            stop_reason: "end_turn".to_owned(),
        },
        "error" => {
            let message = match line.object("error")? {
                Some(error) => error.excerpt("message")?,
                None => String::new(),
            };
            if speaks_of_limit(&message) {
                out(EventKind::Limit(Limit {
                    status: LimitStatus::Rejected,
                    resets_at: None,
                }));
            }
            Terminal::Failed {
                reason: "result_error".to_owned(),
                message,
            }
        }
        _ => return Err(Flaw::field("status", "success or error")),
    };
    out(EventKind::Terminal(terminal));
    Ok(())
}
