//! Codex's `exec --json`.
//!
//! Items begin, change and end. A command that was abandoned at the end of the
//! turn is reported to be completed, without an exit code. File changes and
//! searches of some versions are only said to be over. A `web_search` line may
//! have two ids, of which the first is the item's. Plans are one item for the
//! whole turn, and each change of it is a call. Usage is a running total, an
//! `error` may be a warning, and a launch that failed prints nothing.

use super::hook::codex::{change_key, command_key};
use super::saying::reports_limit;
use super::{AgentFiles, AgentSpec, LineReader, Out, unknown};
use crate::call::CallEnd;
use crate::event::{
    Begun, CallRequest, CallResult, EventKind, Limit, LimitStatus, ReportedUsage, Retry, Speaker,
    Terminal, Tokens, UsageBasis,
};
use crate::flaw::{Flaw, MAX_OPEN};
use crate::json::{Object, Shape, digest_of, excerpt};
use premath_kernel::json::canonical::Sum;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Codex.
pub(super) static SPEC: AgentSpec = AgentSpec {
    name: "codex",
    title: "Codex",
    program: "codex",
    package: "@openai/codex",
    command_line: "codex exec --json --skip-git-repo-check --sandbox danger-full-access - \
                   < \"$PREMATH_PROMPT_FILE\"",
    options: "",
    variables: &["CODEX_", "OPENAI_"],
    confined_variables: &[],
    governing_files: &[".codex/"],
    files: AgentFiles {
        folder_variable: Some("CODEX_HOME"),
        folder: ".codex",
        copied: &["auth.json", "config.toml", "AGENTS.md"],
        beside: &[],
        renewed: &["auth.json"],
        token_fields: &["access_token", "id_token", "last_refresh", "refresh_token"],
        account_claims: &["/https:~1~1api.openai.com~1auth/chatgpt_account_id"],
    },
    stop_reasons_by_exit: &[],
    resume: &["resume"],
    totals_are_of_session: true,
    says_begin: true,
    transcript: super::transcript::codex::read,
    hooks: &super::hook::codex::HOOKS,
    // A line of an item has it within.
    shape: &Shape(&[("item", Shape::FLAT)]),
    reader: || Box::new(Codex::default()),
};

/// The state of a Codex stream: its open turn and items.
#[derive(Debug, Default)]
struct Codex {
    turn_open: bool,
    /// Items that began, with how many changes of a plan were seen.
    open: BTreeMap<Arc<str>, u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Started,
    Updated,
    Completed,
}

impl LineReader for Codex {
    fn read(&mut self, line: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
        match &*line.word("type")? {
            "thread.started" => out(EventKind::Begun(Begun {
                session_id: Some(line.name("thread_id")?.into_owned()),
                model: None,
                tools: None,
            })),
            "turn.started" => self.turn_open = true,
            "item.started" => return self.item(line, Phase::Started, out),
            "item.updated" => return self.item(line, Phase::Updated, out),
            "item.completed" => return self.item(line, Phase::Completed, out),
            "turn.completed" => {
                self.end_turn()?;
                let usage = line.needed("usage")?;
                let has_usage = usage.has("input_tokens") || usage.has("output_tokens");
                let tokens = Tokens {
                    input: usage.count("input_tokens")?.unwrap_or_default(),
                    cached: usage.count("cached_input_tokens")?.unwrap_or_default(),
                    output: usage.count("output_tokens")?.unwrap_or_default(),
                };
                out(EventKind::Usage(ReportedUsage {
                    basis: UsageBasis::RunningTotal,
                    tokens: has_usage.then_some(tokens),
                    cost_nano_usd: None,
                }));
                out(EventKind::Terminal(Terminal::Finished {
                    stop_reason: "end_turn".to_owned(),
                }));
            }
            "turn.failed" => {
                self.end_turn()?;
                let message = line.needed("error")?.excerpt("message")?;
                if reports_limit(&message) {
                    out(limit());
                }
                out(EventKind::Terminal(Terminal::Failed {
                    reason: "turn_failed".to_owned(),
                    message,
                }));
            }
            "error" => {
                let message = line.excerpt("message")?;
                out(match reconnecting(&message) {
                    Some(attempt) => EventKind::Retry(Retry {
                        attempt,
                        delay_ms: None,
                        status: status_of(&message),
                        said: message,
                    }),
                    None if reports_limit(&message) => limit(),
                    None => EventKind::Notice(message),
                });
            }
            other => return unknown(other, line, out),
        }
        Ok(())
    }

    fn retained_bytes(&self) -> usize {
        let ids: usize = self.open.keys().map(|id| id.len()).sum();
        ids + self.open.len() * size_of::<(Arc<str>, u64)>() * 2
    }
}

impl Codex {
    fn open(&mut self, id: &str) -> Result<(), Flaw> {
        if self.open.len() >= MAX_OPEN {
            return Err(Flaw::TooManyOpen);
        }
        self.open.insert(id.into(), 0);
        Ok(())
    }

    fn end_turn(&mut self) -> Result<(), Flaw> {
        if std::mem::take(&mut self.turn_open) {
            Ok(())
        } else {
            Err(Flaw::TurnUnopened)
        }
    }

    fn item(&mut self, line: &Object<'_>, phase: Phase, out: Out<'_>) -> Result<(), Flaw> {
        let item = line.needed("item")?;
        let id = item.first_name("id")?;
        match &*item.word("type")? {
            "agent_message" | "reasoning" | "plan" => {
                out(EventKind::Message(Speaker::default()));
                Ok(())
            }
            "error" => {
                out(EventKind::Notice(item.excerpt("message")?));
                Ok(())
            }
            "todo_list" => self.plan(id, &item, phase, out),
            "command_execution" => {
                let input = digest_of(item.get("command")?);
                // Only the request keeps it.
                let text = match phase {
                    Phase::Started => item.text("command")?,
                    _ => None,
                };
                let call = Call {
                    hooked: text.and_then(|text| command_key(&text)),
                    ..Call::of(id, "command_execution", input)
                };
                self.call(call, &item, phase, out)
            }
            "file_change" => {
                // What is changed may be reported only when it is done.
                let call = Call {
                    may_end_only: true,
                    input_again: None,
                    hooked: changes_key(item.get("changes")?),
                    ..Call::of(id, "file_change", digest_of(item.get("changes")?))
                };
                self.call(call, &item, phase, out)
            }
            "web_search" => {
                let call = Call {
                    may_end_only: true,
                    input_again: None,
                    ..Call::of(id, "web_search", digest_of(item.get("query")?))
                };
                self.call(call, &item, phase, out)
            }
            "mcp_tool_call" => {
                let tool = format!("mcp.{}.{}", item.name("server")?, item.name("tool")?);
                let input = digest_of(item.get("arguments")?);
                self.call(Call::of(id, tool, input), &item, phase, out)
            }
            "collab_tool_call" => {
                let tool = format!("collab.{}", item.name("tool")?);
                let call = Call {
                    input_again: None,
                    ..Call::of(id, tool, digest_of(item.get("prompt")?))
                };
                self.call(call, &item, phase, out)
            }
            other => unknown(&format!("item/{other}"), line, out),
        }
    }

    fn call(
        &mut self,
        call: Call<'_>,
        item: &Object<'_>,
        phase: Phase,
        out: Out<'_>,
    ) -> Result<(), Flaw> {
        let known = self.open.contains_key(&*call.id);
        match phase {
            // A call that began already is the fold's to refuse.
            Phase::Started => {
                self.open(&call.id)?;
                out(call.request(false));
                return Ok(());
            }
            // Some file changes begin with what is known about them so far.
            Phase::Updated if !known && call.may_end_only => {
                self.open(&call.id)?;
                out(call.request(false));
                return Ok(());
            }
            Phase::Updated => return Ok(()),
            Phase::Completed => {
                self.open.remove(&*call.id);
            }
        }
        if !known && call.may_end_only {
            out(call.request(true));
        }
        let end = call.end(item)?;
        let given = ["aggregated_output", "result", "changes", "action", "error"];
        let mut output = None;
        for name in given {
            output = output.or(item.get(name)?);
        }
        out(EventKind::Result(CallResult {
            caller: None,
            end,
            digest: digest_of(output),
            bytes: output.map_or(0, |output| output.get().len() as u64),
            input_digest: call.input_again,
            call_id: call.id,
        }));
        Ok(())
    }

    /// Every change of the plan is a call of the model that is over at once.
    fn plan(
        &mut self,
        id: Cow<'_, str>,
        item: &Object<'_>,
        phase: Phase,
        out: Out<'_>,
    ) -> Result<(), Flaw> {
        if phase == Phase::Started {
            self.open(&id)?;
        }
        let Some(changes) = self.open.get_mut(&*id) else {
            return Err(Flaw::TurnUnopened);
        };
        if phase == Phase::Completed {
            self.open.remove(&*id);
            return Ok(());
        }
        *changes += 1;
        let input = digest_of(item.get("items")?);
        let call = Call::of(format!("{id}.{changes}").into(), "update_plan", input);
        out(call.request(true));
        out(EventKind::Result(CallResult {
            call_id: call.id,
            caller: None,
            input_digest: None,
            end: CallEnd::Ok,
            digest: input,
            bytes: 0,
        }));
        Ok(())
    }
}

struct Call<'a> {
    id: Cow<'a, str>,
    tool: Cow<'a, str>,
    input: Sum,
    /// What hooks report of the input.
    hooked: Option<Sum>,
    /// The input in the end event of the call, if both events carry it.
    input_again: Option<Sum>,
    /// Some versions say only that it is over.
    may_end_only: bool,
}

impl<'a> Call<'a> {
    fn of(id: Cow<'a, str>, tool: impl Into<Cow<'a, str>>, input: Sum) -> Self {
        Self {
            id,
            tool: tool.into(),
            input_again: Some(input),
            input,
            hooked: None,
            may_end_only: false,
        }
    }

    fn request(&self, synthesized: bool) -> EventKind<'_> {
        EventKind::Request(CallRequest {
            call_id: Cow::Borrowed(&self.id),
            tool: Cow::Borrowed(&self.tool),
            input_digest: self.input,
            hook_digest: self.hooked,
            speaker: Speaker::default(),
            synthesized,
        })
    }

    fn end(&self, item: &Object<'_>) -> Result<CallEnd, Flaw> {
        let status = item.text("status")?;
        let failed = CallEnd::failed;
        let excerpt_of = |name| -> Result<String, Flaw> { item.excerpt(name) };
        match status.as_deref() {
            Some("declined") => return Ok(failed("declined", excerpt_of("aggregated_output")?)),
            Some("failed") | Some("completed") => {}
            // A search has no status: it is over when it is reported to be.
            None if &*self.tool == "web_search" => return Ok(CallEnd::Ok),
            _ => return Err(Flaw::Abandoned(self.id.to_string())),
        }
        let failure = match &*self.tool {
            "command_execution" => {
                let Some(code) = item.integer("exit_code")? else {
                    return Err(Flaw::Abandoned(self.id.to_string()));
                };
                if code == 0 {
                    None
                } else {
                    let output = excerpt_of("aggregated_output")?;
                    let message = format!("exit code {code}: {output}");
                    Some(failed("command_failed", message))
                }
            }
            "file_change" => None,
            _ => item
                .get("error")?
                .map(|error| failed("tool_error", message_of(error))),
        };
        Ok(match (failure, status.as_deref()) {
            (Some(failure), _) => failure,
            (None, Some("failed")) => failed("tool_error", String::new()),
            (None, _) => CallEnd::Ok,
        })
    }
}

/// A file of a change.
#[derive(Deserialize)]
struct ChangedFile {
    path: String,
}

/// Returns `D` of what hooks report of a change of files.
fn changes_key(changes: Option<&RawValue>) -> Option<Sum> {
    let files: Vec<ChangedFile> = serde_json::from_str(changes?.get()).ok()?;
    Some(change_key(files.iter().map(|file| &*file.path)))
}

fn message_of(error: &RawValue) -> String {
    let message =
        Object::read(error.get(), &Shape::FLAT).and_then(|error| error.excerpt("message"));
    message
        .ok()
        .filter(|message| !message.is_empty())
        .unwrap_or_else(|| excerpt(error))
}

fn limit() -> EventKind<'static> {
    EventKind::Limit(Limit {
        status: LimitStatus::Rejected,
        resets_at: None,
    })
}

/// Returns the attempt of `Reconnecting... 2/5`, which is not a failure.
fn reconnecting(message: &str) -> Option<Option<u64>> {
    let rest = message.trim_start().get(.."reconnecting".len())?;
    if !rest.eq_ignore_ascii_case("reconnecting") {
        return None;
    }
    let words = message.split_whitespace();
    Some(
        words
            .filter_map(|word| word.split_once('/')?.0.parse().ok())
            .next(),
    )
}

/// Returns the HTTP status of `… last status: 429 Too Many Requests …`.
fn status_of(message: &str) -> Option<u64> {
    let (_, rest) = message.split_once("status: ")?;
    rest.split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}
