//! A program that plays Codex: it makes calls at a rate, starts its hooks by the
//! shell as the agent does, and writes down how long each took.

use crate::figure::Wrong;
use crate::programs::command;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The hidden mode; its arguments are how many calls, the milliseconds from one to
/// the next, and the folder for the times. The agent's own follow.
pub(crate) const MODE: &str = "--hooks-agent";

/// What is started in the place of hooks where there are none.
const FLOOR: &str = "/bin/true || exit 2";

/// The command that the agent reports.
const COMMAND: &str = "cargo test --workspace";

/// Plays the agent.
pub(crate) fn play(arguments: &[&str]) -> Result<(), Wrong> {
    let [calls, pause, folder, own @ ..] = arguments else {
        return Err(Wrong::because("the agent lacks an argument"));
    };
    let hook = own.iter().find_map(|argument| hook_of(argument));
    let mut agent = Player {
        hook: hook.unwrap_or_else(|| FLOOR.to_owned()),
        took: Vec::new(),
    };
    let pause = Duration::from_millis(pause.parse()?);
    print(&json!({"type": "thread.started", "thread_id": "s"}))?;
    print(&json!({"type": "turn.started"}))?;
    agent.start(&json!({"session_id": "s", "hook_event_name": "UserPromptSubmit"}))?;
    // The first is not of a call.
    agent.took.clear();
    let begun = Instant::now();
    for number in 0..calls.parse()? {
        let due = begun + pause * number;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        agent.call(number)?;
    }
    let usage = json!({"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1});
    print(&json!({"type": "turn.completed", "usage": usage}))?;
    let issue = std::env::var("PREMATH_ISSUE_ID")?;
    fs::write(format!("{issue}.txt"), "done\n")?;
    let took = agent
        .took
        .iter()
        .map(|took| format!("{}\n", took.as_nanos()));
    Ok(fs::write(
        PathBuf::from(folder).join(issue),
        took.collect::<String>(),
    )?)
}

/// Returns the command of hooks in an argument, where it has one.
fn hook_of(argument: &str) -> Option<String> {
    let (_, rest) = argument.split_once("hooks.PreToolUse=")?;
    let (_, rest) = rest.split_once("command=")?;
    let (text, _) = rest.split_once(",timeout=")?;
    serde_json::from_str(text).ok()
}

struct Player {
    hook: String,
    took: Vec<Duration>,
}

impl Player {
    fn call(&mut self, number: u32) -> Result<(), Wrong> {
        let event = |name: &str| {
            json!({
                "session_id": "s", "hook_event_name": name, "tool_name": "Bash",
                "tool_use_id": format!("call_{number}"), "tool_input": {"command": COMMAND},
                "cwd": "/",
            })
        };
        let item = |status: &str, code: Option<i32>| {
            json!({
                "id": format!("item_{number}"), "type": "command_execution",
                "command": format!("/bin/sh -c '{COMMAND}'"), "aggregated_output": "",
                "exit_code": code, "status": status,
            })
        };
        self.start(&event("PreToolUse"))?;
        print(&json!({"type": "item.started", "item": item("in_progress", None)}))?;
        print(&json!({"type": "item.completed", "item": item("completed", Some(0))}))?;
        self.start(&event("PostToolUse"))
    }

    /// Starts a hook by the shell, as agents do, and waits for its end.
    fn start(&mut self, event: &Value) -> Result<(), Wrong> {
        let event = event.to_string();
        let begun = Instant::now();
        let mut child = command("/bin/sh")
            .args(["-c", &self.hook])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        if let Some(mut input) = child.stdin.take() {
            // What reads nothing is over before.
            let _ = input.write_all(event.as_bytes());
        }
        let ended = child.wait_with_output()?;
        self.took.push(begun.elapsed());
        match ended.status.success() && ended.stdout.is_empty() {
            true => Ok(()),
            false => Err(Wrong::because("a hook denied a call")),
        }
    }
}

fn print(line: &Value) -> Result<(), Wrong> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
