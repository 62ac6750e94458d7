//! The hooks of agents: how they are wired, read and answered.
//!
//! A module of this folder describes the hooks of one agent by a [`HookSpec`].

pub(super) mod claude;
pub(super) mod codex;
mod event;
pub(super) mod gemini;
pub(super) mod opencode;
mod spec;

pub(crate) use event::{HookCall, HookEvent, HookKey, HookKind, policy_name};
pub(crate) use spec::{HookAnswer, Join};
pub use spec::{HookFile, HookPlace, HookSpec, HookWiring};

use event::{HookFlaw, name, optional_name};
use serde_json::{Map, Value, json};

/// The seconds that an agent waits for the hook program.
const PATIENCE: u64 = 60;

/// Quotes a text for a shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Returns the command line of the hook program. An agent lets a call run where
/// the program fails in any way but with exit code 2.
fn command(place: &HookPlace<'_>) -> String {
    let words = [Some(place.program), place.mode, Some(place.socket)];
    let words = words.into_iter().flatten().map(quoted);
    words.collect::<Vec<_>>().join(" ") + " || exit 2"
}

/// Returns the answer of Claude Code and Codex that denies a call. Codex lets
/// the call run where it has any other key.
fn denial_before_tool(reason: &str) -> Value {
    json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    }})
}

/// Returns the answer of Claude Code and Codex to the end of a call that gives the
/// agent a text.
fn telling_after_tool(text: &str) -> Value {
    json!({"hookSpecificOutput": {
        "hookEventName": "PostToolUse",
        "additionalContext": text,
    }})
}

/// Reads the input of a call.
fn input<'e>(event: &'e Map<String, Value>, field: &'static str) -> Result<&'e Value, HookFlaw> {
    event.get(field).ok_or(HookFlaw::Field {
        field,
        expected: "the input of the tool",
    })
}

/// Reads an event whose fields Claude Code and Codex name alike; `call` reads that
/// of a call.
fn read_with(
    event: &Map<String, Value>,
    worktree: &str,
    call: fn(&Map<String, Value>, &str) -> Result<HookCall, HookFlaw>,
) -> Result<HookEvent, HookFlaw> {
    let kind = match &*name(event, "hook_event_name")? {
        "UserPromptSubmit" => HookKind::Prompt,
        "PreToolUse" => HookKind::Before,
        "PostToolUse" => HookKind::After,
        "PostToolUseFailure" => HookKind::Failed,
        "SubagentStart" => HookKind::SubagentBegun,
        "Stop" => HookKind::End,
        _ => HookKind::Other,
    };
    Ok(HookEvent {
        kind,
        session: Some(name(event, "session_id")?),
        caller: optional_name(event, "agent_id")?,
        parent: None,
        call: kind
            .is_of_call()
            .then(|| call(event, worktree))
            .transpose()?,
    })
}
