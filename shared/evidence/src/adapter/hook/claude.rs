//! The hooks of Claude Code.

use super::event::{HookFlaw, call_of, digest_of, name, optional_name, text};
use super::spec::{HookFile, HookPlace, HookSpec, HookWiring, Join};
use super::{
    HookCall, HookEvent, HookKey, PATIENCE, command, denial_before_tool, input, read_with,
    telling_after_tool,
};
use crate::json::digest_of_text;
use premath_kernel::json::canonical::{self, Sum};
use premath_kernel::policy::turn::ToolClass;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The hooks of Claude Code.
pub(in crate::adapter) static HOOKS: HookSpec = HookSpec {
    wiring,
    needs_own_folder: false,
    read,
    denial: denial_before_tool,
    telling: telling_after_tool,
    join: Join::Id,
    unannounced: &[],
    refused: &["tool_refused"],
    class_of,
    streams_denied: true,
    streams_children: true,
};

/// The tool that runs commands.
const SHELL: &str = "Bash";

const EVENTS: [&str; 7] = [
    "PostToolUse",
    "PostToolUseFailure",
    "PreToolUse",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "UserPromptSubmit",
];

fn wiring(place: &HookPlace<'_>) -> HookWiring {
    let hooks = EVENTS.map(|event| {
        let hook = json!({"type": "command", "command": command(place), "timeout": PATIENCE});
        let group = match event.contains("Tool") {
            true => json!({"matcher": "*", "hooks": [hook]}),
            false => json!({"hooks": [hook]}),
        };
        (event.to_owned(), json!([group]))
    });
    let hooks: Map<String, Value> = hooks.into_iter().collect();
    // The settings of a repository could disable them otherwise.
    let settings = json!({"disableAllHooks": false, "hooks": hooks});
    let file = format!("{}/claude.json", place.folder);
    HookWiring {
        arguments: [
            "--settings",
            &file,
            "--setting-sources",
            "user",
            "--strict-mcp-config",
        ]
        .map(str::to_owned)
        .to_vec(),
        variables: Vec::new(),
        files: vec![HookFile {
            name: "claude.json",
            content: settings.to_string(),
        }],
    }
}

fn read(event: &Map<String, Value>, worktree: &str) -> Result<HookEvent, HookFlaw> {
    read_with(event, worktree, call)
}

fn call(event: &Map<String, Value>, worktree: &str) -> Result<HookCall, HookFlaw> {
    let tool = name(event, "tool_name")?;
    let with = input(event, "tool_input")?;
    let folder = optional_name(event, "cwd")?;
    let folder = folder.as_deref().unwrap_or(worktree);
    let result = event.get("tool_response").or_else(|| event.get("error"));
    let class = class_of(&tool);
    // The stream has other inputs in another form.
    let command = text(with, "command").filter(|_| tool == SHELL);
    Ok(HookCall {
        id: Some(name(event, "tool_use_id")?),
        call: call_of(class, &tool, with, [folder, worktree]),
        key: command.map(|command| HookKey {
            tool: tool.clone(),
            input: canonical::sum_ordered(command),
        }),
        tool,
        input: digest_of(with),
        result: result.map(digest_of),
        ends_silently: false,
        may_be_refused: false,
        is_input_unknown: false,
    })
}

/// The input of a shell.
#[derive(Deserialize)]
struct ShellInput<'i> {
    #[serde(borrow)]
    command: &'i RawValue,
}

/// Returns what identifies a call of the stream beside its id: the text of a command.
pub(in crate::adapter) fn command_key(tool: &str, input: &RawValue) -> Option<Sum> {
    if tool != SHELL {
        return None;
    }
    let input: ShellInput<'_> = serde_json::from_str(input.get()).ok()?;
    digest_of_text(input.command)
}

/// Returns what a tool does.
fn class_of(tool: &str) -> ToolClass {
    match tool {
        SHELL => ToolClass::Shell,
        "Edit" | "MultiEdit" | "NotebookEdit" | "Write" => ToolClass::Edit,
        "NotebookRead" | "Read" => ToolClass::Read,
        "Glob" | "Grep" | "LS" => ToolClass::Search,
        "WebFetch" => ToolClass::WebFetch,
        "WebSearch" => ToolClass::WebSearch,
        "Agent" | "Task" => ToolClass::Subagent,
        "AskUserQuestion" | "EnterPlanMode" | "ExitPlanMode" | "TaskCreate" | "TaskGet"
        | "TaskList" | "TaskUpdate" | "TodoWrite" => ToolClass::Plan,
        tool if tool.starts_with("mcp__") => ToolClass::Mcp,
        _ => ToolClass::Other,
    }
}
