//! OpenCode's `run --format json`.
//!
//! A call is reported once, when it is over, within the step that made it: its
//! request is made up from it. There is no terminal event but the step that
//! does not end by tool calls. What a sub-agent does is not reported: its
//! session is another one. Nor is what the provider refuses, as long as it is
//! asked again.

use super::saying::reports_limit;
use super::{AgentFiles, AgentSpec, LineReader, Out, unknown};
use crate::call::CallEnd;
use crate::event::{
    Begun, CallRequest, CallResult, EventKind, Limit, LimitStatus, ReportedUsage, Speaker,
    Terminal, Tokens, UsageBasis,
};
use crate::flaw::Flaw;
use crate::json::{Object, Shape, digest_of};
use std::borrow::Cow;
use std::sync::Arc;

/// OpenCode.
pub(super) static SPEC: AgentSpec = AgentSpec {
    name: "opencode",
    title: "OpenCode",
    program: "opencode",
    package: "opencode-ai",
    command_line: "opencode run --format json < \"$PREMATH_PROMPT_FILE\"",
    options: "",
    variables: &["OPENCODE_"],
    confined_variables: &[],
    governing_files: &[".opencode/", "opencode.json", "opencode.jsonc"],
    files: AgentFiles {
        folder_variable: None,
        folder: ".local/share/opencode",
        copied: &["auth.json"],
        beside: &[
            ".config/opencode/opencode.json",
            ".config/opencode/opencode.jsonc",
        ],
        renewed: &["auth.json"],
        token_fields: &["access", "expires", "refresh"],
        account_claims: &[],
    },
    stop_reasons_by_exit: &[],
    resume: &["--session"],
    totals_are_of_session: false,
    // Its first event is that of a step.
    says_begin: false,
    // A part has a state.
    transcript: super::transcript::opencode::read,
    hooks: &super::hook::opencode::HOOKS,
    shape: &Shape(&[("part", Shape(&[("state", Shape::FLAT)]))]),
    reader: || Box::new(OpenCode::default()),
};

/// The tool that replaces a call that could not be made; it is reported as a
/// success.
const INVALID: &str = "invalid";

/// The session and the step that is open.
#[derive(Debug, Default)]
struct OpenCode {
    session: Option<String>,
    steps: u64,
    /// The step as text.
    step: Option<Arc<str>>,
    open: bool,
    calls: u64,
}

impl LineReader for OpenCode {
    fn read(&mut self, line: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
        let kind = line.word("type")?;
        self.same_session(line, out)?;
        match &*kind {
            "step_start" => {
                self.steps += 1;
                self.step = Some(self.steps.to_string().into());
                self.open = true;
                self.calls = 0;
            }
            "text" | "reasoning" => out(EventKind::Message(self.speaker())),
            "tool_use" => {
                self.calls += 1;
                let part = line.needed("part")?;
                self.call(&part, out)?;
                if !self.open {
                    return Err(Flaw::CallOutside(part.name("callID")?.into_owned()));
                }
            }
            "step_finish" => self.finish(&*line.needed("part")?, out)?,
            "error" => error(line, &*line.needed("error")?, out)?,
            other => return unknown(other, line, out),
        }
        Ok(())
    }

    /// A step is open from the model's first word until its calls are over.
    fn may_be_in_call(&self) -> bool {
        self.open
    }

    fn retained_bytes(&self) -> usize {
        self.session.as_ref().map_or(0, String::capacity)
    }
}

impl OpenCode {
    fn same_session(&mut self, line: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
        let session = line.optional_name("sessionID")?;
        if self.session.is_none() {
            self.session = session.map(Cow::into_owned);
            out(EventKind::Begun(Begun {
                session_id: self.session.clone(),
                model: None,
                tools: None,
            }));
        } else if session.is_some() && session.as_deref() != self.session.as_deref() {
            return Err(Flaw::OtherSession);
        }
        Ok(())
    }

    fn speaker(&self) -> Speaker {
        Speaker {
            caller: None,
            round: self.step.clone(),
        }
    }

    fn call(&self, part: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
        let call_id = part.name("callID")?;
        let state = part.needed("state")?;
        let metadata = state.object("metadata")?;
        let exit = match &metadata {
            Some(metadata) => metadata.integer("exit")?,
            None => None,
        };
        let killed = exit.is_none() && metadata.is_some_and(|metadata| metadata.has("exit"));
        let output = match state.get("output")? {
            None => state.get("error")?,
            output => output,
        };
        out(EventKind::Request(CallRequest {
            call_id: call_id.clone(),
            tool: part.name("tool")?,
            input_digest: digest_of(state.get("input")?),
            hook_digest: None,
            speaker: self.speaker(),
            synthesized: true,
        }));
        let end = match (&*state.word("status")?, exit) {
            ("completed", _) if part.word("tool")? == INVALID => {
                CallEnd::failed("invalid_call", state.excerpt("output")?)
            }
            ("error", _) => CallEnd::failed("tool_error", state.excerpt("error")?),
            ("completed", _) if killed => return Err(Flaw::Abandoned(call_id.into_owned())),
            ("completed", None | Some(0)) => CallEnd::Ok,
            ("completed", Some(code)) => {
                let output = state.excerpt("output")?;
                CallEnd::failed("command_failed", format!("exit code {code}: {output}"))
            }
            _ => return Err(Flaw::Abandoned(call_id.into_owned())),
        };
        out(EventKind::Result(CallResult {
            call_id,
            caller: None,
            input_digest: None,
            end,
            digest: digest_of(output),
            bytes: output.map_or(0, |output| output.get().len() as u64),
        }));
        Ok(())
    }

    fn finish(&mut self, part: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
        if !std::mem::take(&mut self.open) {
            return Err(Flaw::TurnUnopened);
        }
        let reason = part.word("reason")?;
        // The model spoke, even where it only called.
        out(EventKind::Message(self.speaker()));
        out(EventKind::Usage(usage(part)?));
        match &*reason {
            "tool-calls" if self.calls == 0 => return Err(Flaw::StepCallsMissing),
            "tool-calls" => {}
            "stop" => out(finished("end_turn")),
            "length" => out(finished("max_tokens")),
            _ => out(EventKind::Terminal(Terminal::Failed {
                reason: part.name("reason")?.into_owned(),
                message: String::new(),
            })),
        }
        Ok(())
    }
}

fn finished(stop_reason: &str) -> EventKind<'static> {
    EventKind::Terminal(Terminal::Finished {
        stop_reason: stop_reason.to_owned(),
    })
}

fn usage(part: &Object<'_>) -> Result<ReportedUsage, Flaw> {
    let tokens = match part.object("tokens")? {
        Some(tokens) => {
            let cache = tokens.object("cache")?;
            let of_cache = |name| match &cache {
                Some(cache) => Ok(cache.count(name)?.unwrap_or_default()),
                None => Ok(0_u64),
            };
            let count = |name| Ok(tokens.count(name)?.unwrap_or_default());
            let (cached, written) = (of_cache("read")?, of_cache("write")?);
            let (fresh, said): (u64, u64) = (count("input")?, count("output")?);
            Some(Tokens {
                input: fresh.saturating_add(cached).saturating_add(written),
                cached,
                output: said.saturating_add(count("reasoning")?),
            })
        }
        None => None,
    };
    Ok(ReportedUsage {
        basis: UsageBasis::Step,
        tokens,
        cost_nano_usd: part.nano_usd("cost")?,
    })
}

fn error(line: &Object<'_>, error: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
    let data = error.object("data")?;
    let (message, status) = match &data {
        Some(data) => (data.excerpt("message")?, data.count("statusCode")?),
        None => (String::new(), None),
    };
    if status == Some(429) || reports_limit(&message) {
        out(EventKind::Limit(Limit {
            status: LimitStatus::Rejected,
            resets_at: resets_at(line, data.as_deref())?,
        }));
    }
    let name = error.optional_name("name")?;
    out(EventKind::Terminal(Terminal::Failed {
        reason: name.map_or_else(|| "error".to_owned(), Cow::into_owned),
        message,
    }));
    Ok(())
}

/// Returns when a limit resets: the provider says after how many seconds, and
/// the line says when that was.
fn resets_at(line: &Object<'_>, data: Option<&Object<'_>>) -> Result<Option<i64>, Flaw> {
    let headers = match data {
        Some(data) => data.object("responseHeaders")?,
        None => None,
    };
    let after = match headers {
        Some(headers) => headers.text("retry-after")?,
        None => None,
    };
    let seconds = after.and_then(|after| after.trim().parse::<i64>().ok());
    let now = line.count("timestamp")?;
    Ok(now.zip(seconds).and_then(|(now, seconds)| {
        let now = i64::try_from(now / 1000).ok()?;
        now.checked_add(seconds.max(0))
    }))
}
