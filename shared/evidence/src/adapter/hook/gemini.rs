//! The hooks of Gemini CLI. They have no ids of calls, and those of a sub-agent
//! cannot be distinguished from the agent's own.

use super::event::{HookFlaw, call_of, digest_of, host_of, name, text};
use super::spec::{HookFile, HookPlace, HookSpec, HookWiring, Join};
use super::{HookCall, HookEvent, HookKey, HookKind, PATIENCE, command, input};
use premath_kernel::policy::turn::ToolClass;
use serde_json::{Map, Value, json};

/// The hooks of Gemini CLI.
pub(in crate::adapter) static HOOKS: HookSpec = HookSpec {
    wiring,
    needs_own_folder: true,
    read,
    denial: |reason| json!({"decision": "deny", "reason": reason}),
    telling: |text| json!({"hookSpecificOutput": {"additionalContext": text}}),
    join: Join::Content,
    unannounced: &[],
    refused: &["invalid_tool_params", "tool_not_registered"],
    class_of,
    streams_denied: true,
    streams_children: false,
};

const EVENTS: [&str; 4] = ["AfterAgent", "AfterTool", "BeforeAgent", "BeforeTool"];

fn wiring(place: &HookPlace<'_>) -> HookWiring {
    let hooks = EVENTS.map(|event| {
        let hook = json!({
            // A repository can disable a hook whose name it knows.
            "name": place.name,
            "type": "command",
            "command": command(place),
            "timeout": PATIENCE * 1000,
        });
        let group = match event.contains("Tool") {
            true => json!({"matcher": "*", "hooks": [hook]}),
            false => json!({"hooks": [hook]}),
        };
        (event.to_owned(), json!([group]))
    });
    let hooks: Map<String, Value> = hooks.into_iter().collect();
    let settings = json!({"hooksConfig": {"enabled": true}, "hooks": hooks});
    HookWiring {
        arguments: Vec::new(),
        variables: vec![(
            "GEMINI_CLI_SYSTEM_SETTINGS_PATH",
            format!("{}/gemini.json", place.folder),
        )],
        files: vec![HookFile {
            name: "gemini.json",
            content: settings.to_string(),
        }],
    }
}

fn read(event: &Map<String, Value>, worktree: &str) -> Result<HookEvent, HookFlaw> {
    let kind = match &*name(event, "hook_event_name")? {
        "BeforeAgent" => HookKind::Prompt,
        "BeforeTool" => HookKind::Before,
        "AfterTool" => HookKind::After,
        "AfterAgent" => HookKind::End,
        _ => HookKind::Other,
    };
    Ok(HookEvent {
        kind,
        session: Some(name(event, "session_id")?),
        caller: None,
        parent: None,
        call: kind
            .is_of_call()
            .then(|| call(event, worktree))
            .transpose()?,
    })
}

fn call(event: &Map<String, Value>, worktree: &str) -> Result<HookCall, HookFlaw> {
    let tool = name(event, "tool_name")?;
    let with = input(event, "tool_input")?;
    let mut call = call_of(class_of(&tool), &tool, with, [worktree, worktree]);
    if call.class == ToolClass::WebFetch {
        // The addresses are in the prompt.
        let words = text(with, "prompt").unwrap_or_default().split_whitespace();
        call.hosts.extend(words.filter_map(host_of));
    }
    Ok(HookCall {
        id: None,
        call,
        key: Some(HookKey {
            tool: tool.clone(),
            input: digest_of(with),
        }),
        tool,
        input: digest_of(with),
        result: event.get("tool_response").map(digest_of),
        ends_silently: false,
        may_be_refused: false,
        is_input_unknown: false,
    })
}

fn class_of(tool: &str) -> ToolClass {
    match tool {
        "run_shell_command" => ToolClass::Shell,
        "edit" | "replace" | "write_file" => ToolClass::Edit,
        "read_file" | "read_many_files" => ToolClass::Read,
        "glob" | "grep_search" | "list_directory" | "search_file_content" => ToolClass::Search,
        "web_fetch" => ToolClass::WebFetch,
        "google_web_search" => ToolClass::WebSearch,
        "delegate_to_agent" | "invoke_agent" => ToolClass::Subagent,
        "ask_user" | "enter_plan_mode" | "exit_plan_mode" | "write_todos" => ToolClass::Plan,
        tool if tool.starts_with("mcp_") => ToolClass::Mcp,
        _ => ToolClass::Other,
    }
}
