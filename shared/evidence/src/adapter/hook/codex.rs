//! The hooks of Codex.
//!
//! Its stream numbers calls by itself, so that a call is found by what it is: a
//! command by its text, a patch by the files that it changes.

use super::event::{HookFlaw, call_of, digest_of, name, optional_name, text};
use super::spec::{HookPlace, HookSpec, HookWiring, Join};
use super::{
    HookCall, HookEvent, HookKey, PATIENCE, command, denial_before_tool, input, read_with,
    telling_after_tool,
};
use premath_kernel::json::canonical::{self, Sum};
use premath_kernel::policy::turn::command::commands_of;
use premath_kernel::policy::turn::{CallPath, ToolClass};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::str::Chars;

/// The hooks of Codex.
pub(in crate::adapter) static HOOKS: HookSpec = HookSpec {
    wiring,
    needs_own_folder: false,
    read,
    denial: denial_before_tool,
    telling: telling_after_tool,
    join: Join::Content,
    unannounced: &["collab.*", "update_plan", "web_search"],
    refused: &[],
    class_of,
    streams_denied: false,
    streams_children: false,
};

const EVENTS: [&str; 6] = [
    "PostToolUse",
    "PreToolUse",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "UserPromptSubmit",
];

fn wiring(place: &HookPlace<'_>) -> HookWiring {
    // A value of `-c` is TOML; JSON texts are TOML texts.
    let hook = format!(
        "{{type=\"command\",command={},timeout={PATIENCE}}}",
        Value::from(command(place))
    );
    let mut arguments: Vec<String> = [
        "-c",
        "features.hooks=true",
        "--dangerously-bypass-hook-trust",
    ]
    .map(str::to_owned)
    .to_vec();
    for event in EVENTS {
        let matcher = if event.contains("Tool") {
            "matcher=\".*\","
        } else {
            ""
        };
        arguments.push("-c".to_owned());
        arguments.push(format!("hooks.{event}=[{{{matcher}hooks=[{hook}]}}]"));
    }
    HookWiring {
        arguments,
        ..HookWiring::default()
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
    let mut call = call_of(class_of(&tool), &tool, with, [folder, worktree]);
    let said = text(with, "command").unwrap_or_default();
    let patch = patch_of(&tool, said);
    let mut key = None;
    if let Some(patch) = &patch {
        let paths = paths_of(patch);
        let path = |path: &&str| CallPath::of(path, folder, worktree);
        if call.class == ToolClass::Edit {
            call.paths = paths.iter().map(path).collect();
        }
        key = Some(("file_change", patch_key(paths.iter().copied(), folder)));
    } else if call.class == ToolClass::Shell {
        key = Some(("command_execution", canonical::sum_ordered(said)));
    }
    Ok(HookCall {
        id: Some(name(event, "tool_use_id")?),
        // A patch in a shell text has no event at its end.
        ends_silently: patch.is_some() && call.class == ToolClass::Shell,
        may_be_refused: call.class == ToolClass::Shell && forces_removal(said),
        call,
        tool,
        input: digest_of(with),
        key: key.map(|(tool, input)| HookKey {
            tool: tool.to_owned(),
            input,
        }),
        result: event.get("tool_response").map(digest_of),
        is_input_unknown: false,
    })
}

/// Returns what a tool does, by its name in hooks or in the stream.
fn class_of(tool: &str) -> ToolClass {
    match tool {
        "Bash" | "command_execution" => ToolClass::Shell,
        "apply_patch" | "file_change" => ToolClass::Edit,
        "view_image" => ToolClass::Read,
        "update_plan" | "get_goal" => ToolClass::Plan,
        tool if tool.ends_with("spawn_agent") => ToolClass::Subagent,
        "web_search" => ToolClass::WebSearch,
        tool if tool.starts_with("mcp__") || tool.starts_with("mcp.") => ToolClass::Mcp,
        _ => ToolClass::Other,
    }
}

/// Returns whether a command has an `rm -f`. Codex refuses some of them where it may
/// not ask for permission, after the hook, and its stream does not have them.
fn forces_removal(said: &str) -> bool {
    let is_forced = |word: &str| {
        let is_short = word.starts_with('-') && !word.starts_with("--");
        word == "--force" || (is_short && word.contains('f'))
    };
    let commands = commands_of(said).unwrap_or_default();
    commands.iter().any(|command| {
        let mut words = command.arguments().iter();
        command.program() == Some("rm") && words.any(|word| is_forced(&word.text))
    })
}

/// Returns the patch that a call applies, by the tool or by a command whose text
/// is nothing else.
fn patch_of(tool: &str, said: &str) -> Option<String> {
    if tool == "apply_patch" {
        return Some(said.to_owned());
    }
    let commands = commands_of(said)?;
    let is_patch = |name: &str| matches!(name, "apply_patch" | "applypatch");
    let [.., last] = &*commands else { return None };
    let is_one = last.program().is_some_and(is_patch);
    (is_one && said.contains("*** Begin Patch")).then(|| said.to_owned())
}

/// Returns the files that a patch changes.
fn paths_of(patch: &str) -> BTreeSet<&str> {
    let starts = [
        "*** Add File: ",
        "*** Delete File: ",
        "*** Move to: ",
        "*** Update File: ",
    ];
    let path = |line: &'_ str| -> Option<usize> {
        let found = starts.iter().find(|start| line.starts_with(**start));
        found.map(|start| start.len())
    };
    let lines = patch.lines();
    lines
        .filter_map(|line| Some(line[path(line)?..].trim_end()))
        .collect()
}

/// Returns `D` of the absolute paths of a patch, sorted.
fn patch_key<'p>(paths: impl Iterator<Item = &'p str>, folder: &str) -> Sum {
    let paths = paths.map(|path| absolute(path, folder));
    canonical::sum_ordered(&paths.collect::<BTreeSet<_>>())
}

/// Returns a path from the root.
fn absolute(path: &str, folder: &str) -> String {
    CallPath::of(path, folder, "/").as_str().to_owned()
}

/// Returns what identifies a command of the stream: the text that the shell runs.
pub(in crate::adapter) fn command_key(command: &str) -> Option<Sum> {
    if let Some(text) = quoted_text(command) {
        return Some(canonical::sum_ordered(text));
    }
    // No shell runs a text of it.
    if !command.contains("c ") {
        return None;
    }
    text_of_shell(command).map(|text| canonical::sum_ordered(&*text))
}

/// Returns the text of `SHELL -lc 'TEXT'`, as most commands are, without a look at
/// the rest of the syntax.
fn quoted_text(command: &str) -> Option<&str> {
    let (shell, rest) = command.split_once(' ')?;
    let rest = rest.strip_prefix("-lc ").or(rest.strip_prefix("-c "))?;
    let text = rest.strip_prefix('\'')?.strip_suffix('\'')?;
    let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || b"/._-".contains(&letter);
    (shell.bytes().all(is_plain) && !text.contains('\'')).then_some(text)
}

/// Returns the text of `SHELL -c TEXT`, however it is quoted.
fn text_of_shell(command: &str) -> Option<String> {
    match &mut *words_of(command)? {
        [_, option, text] if matches!(&**option, "-c" | "-lc") => Some(std::mem::take(text)),
        _ => None,
    }
}

/// Returns the words of a command that Codex quoted for a shell; none where a quote
/// does not end. What the text of the shell means is not looked at: it may be long,
/// or nothing that a shell reads.
fn words_of(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        if letter == ' ' {
            words.extend(word.take());
            continue;
        }
        let word = word.get_or_insert_default();
        match letter {
            '\'' => loop {
                match letters.next()? {
                    '\'' => break,
                    letter => word.push(letter),
                }
            },
            '"' => double_quoted(&mut letters, word)?,
            '\\' => word.push(letters.next()?),
            letter => word.push(letter),
        }
    }
    words.extend(word);
    Some(words)
}

/// Reads to the end of a double-quoted part.
fn double_quoted(letters: &mut Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match letters.next()? {
            '"' => return Some(()),
            '\\' => match letters.next()? {
                letter @ ('$' | '`' | '"' | '\\') => word.push(letter),
                letter => word.extend(['\\', letter]),
            },
            letter => word.push(letter),
        }
    }
}

/// Returns what identifies a change of files of the stream.
pub(in crate::adapter) fn change_key<'p>(paths: impl Iterator<Item = &'p str>) -> Sum {
    patch_key(paths, "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_by_its_text_however_it_is_quoted() {
        let long = "x".repeat(100 << 10);
        for (command, text) in [
            ("/bin/sh -c ls", "ls"),
            ("/bin/bash -lc 'echo one'", "echo one"),
            (r#"/bin/bash -lc "echo '{}' > x""#, "echo '{}' > x"),
            (r#"/bin/bash -lc 'echo "$at" '"'{}'""#, r#"echo "$at" '{}'"#),
            (r#"/bin/sh -c "a \$b \\ \"c\" \n""#, r#"a $b \ "c" \n"#),
            // What no shell understands, and what is long.
            (r"/bin/sh -c 'for ( ; ;'\'", "for ( ; ;'"),
            (
                &format!("/bin/sh -c \"echo '{long}'\""),
                &format!("echo '{long}'"),
            ),
        ] {
            let expected = Some(canonical::sum_ordered(text));
            assert_eq!(command_key(command), expected, "{command:.80}");
        }
        for command in ["ls", "/bin/sh -c 'ls", "/bin/sh -c", "/bin/sh -c a b"] {
            assert_eq!(command_key(command), None, "{command}");
        }
    }
}
