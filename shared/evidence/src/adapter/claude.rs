//! Claude Code's `stream-json`.
//!
//! One message may hold several blocks, and several lines may tell one
//! message. `is_error` can come with the subtype `success`, the cost is that
//! of the session so far, and `allowed` is what a limit says all day long. A
//! call that begins a task in the background is over when the task begins: the
//! agent ends its turn, waits for the task, and takes another turn.

use super::hook::claude::command_key;
use super::{AgentFiles, AgentSpec, LineReader, Out, unknown};
use crate::call::CallEnd;
use crate::event::{
    Begun, CallRequest, CallResult, Compacted, EventKind, Limit, LimitStatus, ReportedUsage, Retry,
    Speaker, Terminal, Tokens, UsageBasis,
};
use crate::flaw::Flaw;
use crate::json::{Object, Shape, cut, digest_of, length};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Claude Code.
pub(super) static SPEC: AgentSpec = AgentSpec {
    name: "claude",
    title: "Claude Code",
    program: "claude",
    package: "@anthropic-ai/claude-code",
    command_line: "claude -p --output-format stream-json --verbose --dangerously-skip-permissions \
                   < \"$PREMATH_PROMPT_FILE\"",
    options: "--model opus",
    variables: &["ANTHROPIC_", "CLAUDE_CODE_", "DISABLE_"],
    // As root it works without asking only where this is set.
    confined_variables: &["IS_SANDBOX"],
    governing_files: &["CLAUDE.md", ".claude/"],
    files: AgentFiles {
        folder_variable: Some("CLAUDE_CONFIG_DIR"),
        folder: ".claude",
        copied: &[".credentials.json", "settings.json", "CLAUDE.md"],
        beside: &[".claude.json"],
        renewed: &[".credentials.json"],
        token_fields: &["accessToken", "expiresAt", "refreshToken"],
        account_claims: &[],
    },
    stop_reasons_by_exit: &[],
    resume: &["--resume"],
    totals_are_of_session: false,
    says_begin: true,
    transcript: super::transcript::claude::read,
    hooks: &super::hook::claude::HOOKS,
    // A message has blocks and what it used; beside it is the outcome of its calls.
    shape: &Shape(&[
        (
            "message",
            Shape(&[("content", Shape::FLAT), ("usage", Shape::FLAT)]),
        ),
        ("tool_result_meta", Shape::FLAT),
    ]),
    reader: || Box::new(Claude),
};

/// Holds nothing between two lines.
#[derive(Debug)]
struct Claude;

impl LineReader for Claude {
    fn read(&mut self, line: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
        read(line, out)
    }
}

/// Subtypes of `system` that tell of no call, though some bear ids.
const NOTICES: [&str; 24] = [
    "api_error",
    "files_persisted",
    "hook_progress",
    "hook_response",
    "hook_started",
    "memory_recall",
    "memory_saved",
    "model_consent_fallback",
    "model_fallback",
    "model_refusal_fallback",
    "model_refusal_no_fallback",
    "post_turn_summary",
    "session_state_changed",
    "session_title_changed",
    "shell_cwd",
    "status",
    "stop_hook_summary",
    "task_progress",
    "task_started",
    "task_summary",
    "task_updated",
    "thinking_tokens",
    "turn_duration",
    "vcs_state_changed",
];

/// Subtypes of `system` that warn of something, and the member that has the
/// warning.
const WARNINGS: [(&str, &str); 3] = [
    ("informational", "content"),
    ("notification", "text"),
    ("permission_denied", "message"),
];

/// The model's name in messages that the agent wrote itself.
const SYNTHETIC: &str = "<synthetic>";

fn read(line: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
    match &*line.word("type")? {
        "system" => system(line, out),
        "assistant" => assistant(line, out),
        "user" => user(line, out),
        "result" => result(line, out),
        "rate_limit_event" => limit(line, out),
        // Pieces of messages that come whole as well, and progress of calls
        // whose request and result are separate events.
        "stream_event" | "tool_progress" => Ok(()),
        other => unknown(other, line, out),
    }
}

fn system(line: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
    match &*line.word("subtype")? {
        "init" => out(EventKind::Begun(Begun {
            session_id: line.optional_name("session_id")?.map(Cow::into_owned),
            model: line.optional_name("model")?.map(Cow::into_owned),
            tools: tools(line)?,
        })),
        "api_retry" => out(EventKind::Retry(Retry {
            attempt: line.count("attempt")?,
            delay_ms: line.count("retry_delay_ms")?,
            status: line.count("error_status")?,
            said: String::new(),
        })),
        "compact_boundary" => {
            let about = line.object("compact_metadata")?;
            let about = about.as_deref();
            let trigger = about.map(|about| about.optional_name("trigger"));
            let trigger = trigger.transpose()?.flatten();
            let tokens = about.map(|about| about.count("pre_tokens"));
            out(EventKind::Compacted(Compacted {
                trigger: trigger.map_or_else(|| "unknown".to_owned(), Cow::into_owned),
                tokens_before: tokens.transpose()?.flatten(),
            }));
        }
        "background_tasks_changed" => {
            let tasks = line.get("tasks")?.and_then(length);
            let tasks = tasks.ok_or(Flaw::field("tasks", "a list"))?;
            out(EventKind::Running(tasks as u64));
        }
        // An agent that was done already continues.
        "task_notification" => {
            out(EventKind::TaskOver);
            let status = line.text("status")?.unwrap_or_default();
            if status != "completed" {
                out(EventKind::Notice(format!("a task {}", cut(&status))));
            }
        }
        known if NOTICES.contains(&known) => {}
        other => match WARNINGS.iter().find(|(known, _)| *known == other) {
            Some((_, said)) => out(EventKind::Notice(line.excerpt(said)?)),
            None => return unknown(&format!("system/{other}"), line, out),
        },
    }
    Ok(())
}

/// Returns the tools that the agent lists.
fn tools(line: &Object<'_>) -> Result<Option<BTreeSet<String>>, Flaw> {
    let Some(listed) = line.get("tools")? else {
        return Ok(None);
    };
    let names = serde_json::from_str(listed.get());
    names.map_err(|_| Flaw::field("tools", "a list of names"))
}

fn assistant(line: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
    let message = line.needed("message")?;
    let speaker = Speaker {
        caller: line.optional_name("parent_tool_use_id")?.map(Arc::from),
        round: message.optional_name("id")?.map(Arc::from),
    };
    if message.text("model")?.as_deref() == Some(SYNTHETIC) {
        out(EventKind::Notice(first_text(&message)?));
        return Ok(());
    }
    for block in message.objects("content")? {
        match &*block.word("type")? {
            "text" | "thinking" | "redacted_thinking" => out(EventKind::Message(speaker.clone())),
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                let (tool, input) = (block.name("name")?, block.get("input")?);
                out(EventKind::Request(CallRequest {
                    call_id: block.name("id")?,
                    hook_digest: input.and_then(|input| command_key(&tool, input)),
                    tool,
                    input_digest: digest_of(input),
                    speaker: speaker.clone(),
                    synthesized: false,
                }));
            }
            kind if kind.ends_with("tool_result") => ended(block, &speaker, false, out)?,
            other => unknown(other, block, out)?,
        }
    }
    if let Some(usage) = message.object("usage")? {
        out(EventKind::Usage(ReportedUsage {
            basis: UsageBasis::Message(speaker.round.unwrap_or_default()),
            tokens: Some(tokens(&usage)?),
            cost_nano_usd: None,
        }));
    }
    Ok(())
}

/// Returns the text of a message, or the first of its texts.
fn first_text(message: &Object<'_>) -> Result<String, Flaw> {
    if message.is_text("content")? {
        return message.excerpt("content");
    }
    let texts = message
        .objects("content")?
        .filter(|block| block.has("text"));
    let first = texts.map(|block| block.excerpt("text")).next();
    Ok(first.transpose()?.unwrap_or_default())
}

fn user(line: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
    let message = line.needed("message")?;
    let speaker = Speaker {
        caller: line.optional_name("parent_tool_use_id")?.map(Arc::from),
        round: None,
    };
    // A prompt is a text; what it says is not evidence.
    if message.is_text("content")? {
        return Ok(());
    }
    let was_kept = was_kept_from_running(line);
    for block in message.objects("content")? {
        match &*block.word("type")? {
            "tool_result" => ended(block, &speaker, was_kept, out)?,
            "text" | "image" | "document" => {}
            other => unknown(other, block, out)?,
        }
    }
    Ok(())
}

/// Returns whether a hook, a rule or a person kept the calls of a line from
/// running. Only their class depends on it: another form of the member is not a
/// flaw.
fn was_kept_from_running(line: &Object<'_>) -> bool {
    let mut calls = line.objects("tool_result_meta").into_iter().flatten();
    calls.any(|call| call.has("non_execution_kind"))
}

/// Returns the class of a call that failed, by what it says.
fn failure(said: &str, was_kept: bool) -> &'static str {
    match said {
        _ if was_kept => "call_denied",
        // No such tool, bad arguments, or an edit that does not apply: refused by
        // the agent itself, and no hook is called.
        said if said.starts_with("<tool_use_error>") => "tool_refused",
        said if said.starts_with("Exit code ") => "command_failed",
        _ => "tool_error",
    }
}

fn ended(block: &Object<'_>, speaker: &Speaker, was_kept: bool, out: Out<'_>) -> Result<(), Flaw> {
    let content = block.get("content")?;
    let end = if block.flag("is_error")? {
        let said = block.excerpt("content")?;
        CallEnd::failed(failure(&said, was_kept), said)
    } else {
        CallEnd::Ok
    };
    out(EventKind::Result(CallResult {
        call_id: block.name("tool_use_id")?,
        caller: speaker.caller.clone(),
        input_digest: None,
        end,
        digest: digest_of(content),
        bytes: content.map_or(0, |content| content.get().len() as u64),
    }));
    Ok(())
}

fn result(line: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
    let subtype = line.word("subtype")?;
    let failed = line.flag("is_error")? || &*subtype != "success";
    spent(line, out)?;
    let denied = line.get("permission_denials")?.and_then(length);
    if let Some(denied) = denied.filter(|denied| *denied > 0) {
        out(EventKind::Notice(format!("{denied} calls denied")));
    }
    if line.count("api_error_status")? == Some(429) {
        out(EventKind::Limit(Limit {
            status: LimitStatus::Rejected,
            resets_at: None,
        }));
    }
    out(EventKind::Terminal(if failed {
        let mut reason = Some(subtype).filter(|subtype| subtype != "success");
        for name in ["api_error", "api_error_type"] {
            if reason.is_none() {
                reason = line.text(name)?;
            }
        }
        Terminal::Failed {
            reason: cut(reason.as_deref().unwrap_or("is_error")).to_owned(),
            message: line.excerpt("result")?,
        }
    } else {
        let reason = line.optional_name("stop_reason")?;
        Terminal::Finished {
            stop_reason: reason.map_or_else(|| "end_turn".to_owned(), Cow::into_owned),
        }
    }));
    Ok(())
}

/// What was spent since the last result: by model, with what sub-agents spent.
/// `usage`, all that older versions have, is without these, and
/// `total_cost_usd` is that of the session, with what it had cost before it was
/// resumed.
fn spent(line: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
    let mut sum = Tokens::default();
    let mut cost = 0_u64;
    let is_there = line.each_object("model_usage_since_last_result", |model| {
        sum = sum.plus(model_tokens(model)?);
        cost = cost.saturating_add(model.nano_usd("costUSD")?.unwrap_or_default());
        Ok(())
    })?;
    let (turn, step) = if is_there {
        (Some(sum), Some(cost))
    } else {
        let usage = line.object("usage")?;
        (usage.as_deref().map(tokens).transpose()?, None)
    };
    out(EventKind::Usage(ReportedUsage {
        basis: UsageBasis::Turn,
        tokens: turn,
        cost_nano_usd: match step {
            None => line.nano_usd("total_cost_usd")?,
            Some(_) => None,
        },
    }));
    if step.is_some() {
        out(EventKind::Usage(ReportedUsage {
            basis: UsageBasis::Step,
            tokens: None,
            cost_nano_usd: step,
        }));
    }
    Ok(())
}

fn model_tokens(model: &Object<'_>) -> Result<Tokens, Flaw> {
    let count = |name| Ok(model.count(name)?.unwrap_or_default());
    let cached = count("cacheReadInputTokens")?;
    let written: u64 = count("cacheCreationInputTokens")?;
    let fresh: u64 = count("inputTokens")?;
    Ok(Tokens {
        input: fresh.saturating_add(written).saturating_add(cached),
        cached,
        output: count("outputTokens")?,
    })
}

fn limit(line: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
    let info = line.needed("rate_limit_info")?;
    let status = match info.text("status")?.as_deref() {
        Some("rejected") => LimitStatus::Rejected,
        Some("allowed") => LimitStatus::Allowed,
        other => LimitStatus::Other(cut(other.unwrap_or_default()).to_owned()),
    };
    out(EventKind::Limit(Limit {
        status,
        resets_at: info.integer("resetsAt")?,
    }));
    Ok(())
}

fn tokens(usage: &Object<'_>) -> Result<Tokens, Flaw> {
    let count = |name| Ok(usage.count(name)?.unwrap_or_default());
    let cached = count("cache_read_input_tokens")?;
    let written: u64 = count("cache_creation_input_tokens")?;
    let fresh: u64 = count("input_tokens")?;
    Ok(Tokens {
        input: fresh.saturating_add(written).saturating_add(cached),
        cached,
        output: count("output_tokens")?,
    })
}
