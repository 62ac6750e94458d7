//! Gemini CLI's `stream-json`.
//!
//! Requests of one answer come before their results. A call that was cancelled
//! is reported to be a success, and may bear its error all the same. So is a
//! command that failed: only one that printed nothing is marked as failed, in
//! words. A run that the agent stopped itself (a loop, the turns) ends as a
//! success after an `error`.

use super::saying::reports_limit;
use super::{AgentFiles, AgentSpec, LineReader, Out, unknown};
use crate::call::CallEnd;
use crate::event::{
    Begun, CallRequest, CallResult, EventKind, Limit, LimitStatus, ReportedUsage, Speaker,
    Terminal, Tokens, UsageBasis,
};
use crate::flaw::{Flaw, MAX_OPEN};
use crate::json::{Object, Shape, digest_of};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Gemini CLI.
pub(super) static SPEC: AgentSpec = AgentSpec {
    name: "gemini",
    title: "Gemini CLI",
    program: "gemini",
    package: "@google/gemini-cli",
    command_line: "gemini --output-format stream-json --yolo < \"$PREMATH_PROMPT_FILE\"",
    options: "",
    variables: &["GEMINI_", "GOOGLE_GEMINI_"],
    confined_variables: &[],
    governing_files: &["GEMINI.md", ".gemini/"],
    files: AgentFiles {
        folder_variable: None,
        folder: ".gemini",
        copied: &[
            "oauth_creds.json",
            "google_accounts.json",
            "installation_id",
            "settings.json",
            "GEMINI.md",
        ],
        beside: &[],
        renewed: &["oauth_creds.json"],
        token_fields: &["access_token", "expiry_date", "id_token", "refresh_token"],
        account_claims: &[],
    },
    stop_reasons_by_exit: &[(53, "turn_limit")],
    resume: &["--resume"],
    totals_are_of_session: false,
    says_begin: true,
    transcript: super::transcript::gemini::read,
    hooks: &super::hook::gemini::HOOKS,
    shape: &Shape::FLAT,
    reader: || Box::new(Gemini::default()),
};

/// The tool that runs commands.
const SHELL: &str = "run_shell_command";

/// What is reported about a loop, which is not a failure where the agent
/// continues.
const LOOP: &str = "Loop detected, stopping execution";

/// Which answer of the model it is, and what is open.
#[derive(Debug, Default)]
struct Gemini {
    round: u64,
    /// The same as text.
    round_name: Option<Arc<str>>,
    answered: bool,
    /// Commands that run.
    commands: BTreeSet<Arc<str>>,
    /// Why the agent stops, if it reported a reason and did nothing since.
    stopped: Option<Stop>,
}

#[derive(Debug)]
struct Stop {
    reason: &'static str,
    message: String,
}

impl LineReader for Gemini {
    fn read(&mut self, line: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
        match &*line.word("type")? {
            "init" => out(EventKind::Begun(Begun {
                session_id: line.optional_name("session_id")?.map(Cow::into_owned),
                model: line.optional_name("model")?.map(Cow::into_owned),
                tools: None,
            })),
            "message" => {
                if &*line.word("role")? == "assistant" {
                    self.stopped = None;
                    out(EventKind::Message(self.speaker()));
                }
            }
            "tool_use" => {
                self.stopped = None;
                let call_id = line.name("tool_id")?;
                let tool = line.name("tool_name")?;
                if tool == SHELL {
                    if self.commands.len() >= MAX_OPEN {
                        return Err(Flaw::TooManyOpen);
                    }
                    self.commands.insert((&*call_id).into());
                }
                out(EventKind::Request(CallRequest {
                    call_id,
                    tool,
                    input_digest: digest_of(line.get("parameters")?),
                    hook_digest: None,
                    speaker: self.speaker(),
                    synthesized: false,
                }));
            }
            "tool_result" => self.ended(line, out)?,
            "error" => {
                let message = line.excerpt("message")?;
                let reason = match line.text("severity")?.as_deref() {
                    Some("error") => Some("stopped"),
                    _ if message == LOOP => Some("loop_detected"),
                    _ => None,
                };
                if let Some(reason) = reason {
                    let message = message.clone();
                    self.stopped = Some(Stop { reason, message });
                }
                out(EventKind::Notice(message));
            }
            "result" => self.result(line, out)?,
            other => return unknown(other, line, out),
        }
        Ok(())
    }

    fn retained_bytes(&self) -> usize {
        let ids: usize = self.commands.iter().map(|id| id.len()).sum();
        ids + self.commands.len() * size_of::<Arc<str>>() * 2
    }
}

impl Gemini {
    fn ended(&mut self, line: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
        self.answered = true;
        self.stopped = None;
        let call_id = line.name("tool_id")?;
        let output = line.get("output")?;
        let mut end = end(line)?;
        if self.commands.remove(&*call_id) && matches!(end, CallEnd::Ok) {
            let said = line.excerpt("output")?;
            if command_failed(&said) {
                end = CallEnd::failed("command_failed", said);
            }
        }
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

    /// What comes after results is of the next answer.
    fn speaker(&mut self) -> Speaker {
        if std::mem::take(&mut self.answered) {
            self.round += 1;
            self.round_name = None;
        }
        let name = || self.round.to_string().into();
        let name: &Arc<str> = self.round_name.get_or_insert_with(name);
        Speaker {
            caller: None,
            round: Some(name.clone()),
        }
    }
}

impl Gemini {
    fn result(&mut self, line: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
        if let Some(stats) = line.object("stats")? {
            let count = |name| Ok(stats.count(name)?.unwrap_or_default());
            out(EventKind::Usage(ReportedUsage {
                basis: UsageBasis::RunningTotal,
                tokens: Some(Tokens {
                    input: count("input_tokens")?,
                    cached: count("cached")?,
                    output: count("output_tokens")?,
                }),
                cost_nano_usd: None,
            }));
        }
        let stopped = self.stopped.take();
        let terminal = match (&*line.word("status")?, stopped) {
            ("success", None) => Terminal::Finished {
                stop_reason: "end_turn".to_owned(),
            },
            ("success", Some(Stop { reason, message })) => Terminal::Failed {
                reason: reason.to_owned(),
                message,
            },
            ("error", stopped) => {
                let (kind, message) = match line.object("error")? {
                    Some(error) => (error.excerpt("type")?, error.excerpt("message")?),
                    // What was reported before is all there is.
                    None => {
                        let said = stopped.map(|stopped| stopped.message);
                        (String::new(), said.unwrap_or_default())
                    }
                };
                if reports_limit(&message) {
                    out(EventKind::Limit(Limit {
                        status: LimitStatus::Rejected,
                        resets_at: None,
                    }));
                }
                Terminal::Failed {
                    reason: reason_of(&kind).to_owned(),
                    message,
                }
            }
            _ => return Err(Flaw::field("status", "success or error")),
        };
        out(EventKind::Terminal(terminal));
        Ok(())
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
    let text = |name| match &error {
        Some(error) => error.excerpt(name),
        None => Ok(String::new()),
    };
    Ok(CallEnd::failed(&text("type")?, text("message")?))
}

/// Returns whether a command's output is what the agent reports about one that
/// failed.
fn command_failed(output: &str) -> bool {
    let number = |saying| {
        let rest = output.strip_prefix(saying);
        rest.is_some_and(|rest: &str| rest.parse::<i64>().is_ok())
    };
    number("Command exited with code: ")
        || number("Command terminated by signal: ")
        || output.starts_with("Command was automatically cancelled because ")
}

/// The agent's word for a failure, where it is one that we know.
fn reason_of(kind: &str) -> &'static str {
    match kind {
        "FatalTurnLimitedError" => "turn_limit",
        _ => "result_error",
    }
}
