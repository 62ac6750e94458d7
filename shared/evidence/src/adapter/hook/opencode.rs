//! The hooks of OpenCode: a plugin of ours in the agent's own process sends the
//! events to the socket.

use super::event::{HookFlaw, call_of, digest_of, name, optional_name};
use super::spec::{HookFile, HookPlace, HookSpec, HookWiring, Join};
use super::{HookCall, HookEvent, HookKey, HookKind};
use premath_kernel::policy::turn::ToolClass;
use serde_json::{Map, Value, json};

/// The plugin; the place of the socket is put in.
const PLUGIN: &str = include_str!("opencode_plugin.mjs");

/// The hooks of OpenCode.
pub(in crate::adapter) static HOOKS: HookSpec = HookSpec {
    wiring,
    needs_own_folder: false,
    read,
    denial: |reason| json!({"deny": reason}),
    telling: |text| json!({"say": text}),
    join: Join::Id,
    unannounced: &[],
    refused: &[],
    class_of,
    streams_denied: true,
    streams_children: false,
};

fn wiring(place: &HookPlace<'_>) -> HookWiring {
    let file = format!("file://{}/premath.mjs", place.folder);
    let socket = Value::from(place.socket).to_string();
    HookWiring {
        arguments: Vec::new(),
        variables: vec![
            (
                "OPENCODE_CONFIG_CONTENT",
                json!({"plugin": [file]}).to_string(),
            ),
            ("OPENCODE_DISABLE_PROJECT_CONFIG", "1".to_owned()),
        ],
        files: vec![HookFile {
            name: "premath.mjs",
            content: PLUGIN.replace("\"PREMATH_SOCKET\"", &socket),
        }],
    }
}

fn read(event: &Map<String, Value>, worktree: &str) -> Result<HookEvent, HookFlaw> {
    let kind = match &*name(event, "kind")? {
        "prompt" => HookKind::Prompt,
        "before" => HookKind::Before,
        "after" => HookKind::After,
        "failed" => HookKind::Failed,
        "session" => HookKind::SubagentBegun,
        "idle" => HookKind::End,
        _ => HookKind::Other,
    };
    Ok(HookEvent {
        kind,
        session: Some(name(event, "session")?),
        caller: optional_name(event, "child")?,
        parent: optional_name(event, "parent")?,
        call: kind
            .is_of_call()
            .then(|| call(event, kind, worktree))
            .transpose()?,
    })
}

fn call(event: &Map<String, Value>, kind: HookKind, worktree: &str) -> Result<HookCall, HookFlaw> {
    let tool = name(event, "tool")?;
    let with = event.get("args").unwrap_or(&Value::Null);
    Ok(HookCall {
        id: Some(name(event, "call")?),
        call: call_of(class_of(&tool), &tool, with, [worktree, worktree]),
        key: (kind == HookKind::Before).then(|| HookKey {
            tool: tool.clone(),
            input: digest_of(with),
        }),
        tool,
        input: digest_of(with),
        result: event.get("output").map(digest_of),
        ends_silently: false,
        may_be_refused: false,
        is_input_unknown: kind == HookKind::Failed,
    })
}

fn class_of(tool: &str) -> ToolClass {
    match tool {
        "bash" => ToolClass::Shell,
        "apply_patch" | "edit" | "multiedit" | "patch" | "write" => ToolClass::Edit,
        "read" => ToolClass::Read,
        "glob" | "grep" | "list" => ToolClass::Search,
        "webfetch" => ToolClass::WebFetch,
        "codesearch" | "websearch" => ToolClass::WebSearch,
        "task" => ToolClass::Subagent,
        "question" | "todoread" | "todowrite" => ToolClass::Plan,
        _ => ToolClass::Other,
    }
}
