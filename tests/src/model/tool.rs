//! What a script calls, in the words of each agent.

use super::wire::Dialect;
use serde::Deserialize;
use serde_json::{Value, json};

/// A tool, and what it is called with.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Tool {
    /// Run a command in a shell.
    Shell(String),
    /// Write a new file.
    Write {
        /// Where.
        path: String,
        /// What.
        content: String,
    },
    /// Read a file.
    Read(String),
    /// Say what the plan is: what is to be done, and how many of it are done.
    Plan {
        /// What is to be done.
        items: Vec<String>,
        /// How many of them are done.
        done: usize,
    },
    /// Ask a command that still runs again, and wait so many milliseconds.
    Poll(u64),
    /// Call a tool of just this name.
    Named {
        /// The name.
        name: String,
        /// What it is called with.
        arguments: Value,
    },
}

impl Tool {
    /// Returns the name and the arguments as an agent knows them; `running` is
    /// the agent's number of the command that runs still.
    pub fn call(&self, dialect: Dialect, running: Option<u64>) -> (String, Value) {
        use Dialect::{Chat, Gemini, Messages, Responses};
        let (name, arguments) = match (self, dialect) {
            (Self::Named { name, arguments }, _) => return (name.clone(), arguments.clone()),
            (Self::Shell(command), Responses) => ("exec_command", json!({"cmd": command})),
            (Self::Shell(command), Gemini) => ("run_shell_command", json!({"command": command})),
            (Self::Shell(command), Chat) => {
                ("bash", json!({"command": command, "description": "Runs"}))
            }
            (Self::Shell(command), Messages) => {
                ("Bash", json!({"command": command, "description": "Runs"}))
            }
            (Self::Write { path, content }, Responses) => ("apply_patch", patch(path, content)),
            (Self::Write { path, content }, Gemini) => {
                ("write_file", json!({"file_path": path, "content": content}))
            }
            (Self::Write { path, content }, Chat) => {
                ("write", json!({"filePath": path, "content": content}))
            }
            (Self::Write { path, content }, Messages) => {
                ("Write", json!({"file_path": path, "content": content}))
            }
            // Codex has no tool for it.
            (Self::Read(path), Responses) => {
                ("exec_command", json!({"cmd": format!("cat {path}")}))
            }
            (Self::Read(path), Gemini) => ("read_file", json!({"file_path": path})),
            (Self::Read(path), Chat) => ("read", json!({"filePath": path})),
            (Self::Read(path), Messages) => ("Read", json!({"file_path": path})),
            (Self::Poll(wait), Responses) => {
                let arguments = json!({"session_id": running, "chars": "", "yield_time_ms": wait});
                ("write_stdin", arguments)
            }
            (Self::Poll(wait), Gemini) => {
                let arguments = json!({"pid": running, "delay_ms": wait});
                ("read_background_output", arguments)
            }
            // OpenCode's commands are over when they have an answer.
            (Self::Poll(_), Chat) => ("bash", json!({"command": "true", "description": "Waits"})),
            (Self::Poll(_), Messages) => {
                ("Bash", json!({"command": "true", "description": "Waits"}))
            }
            (Self::Plan { items, done }, Responses) => {
                let plan = steps(items, *done, "step");
                ("update_plan", json!({"plan": plan}))
            }
            (Self::Plan { items, done }, Gemini) => {
                let todos = steps(items, *done, "description");
                ("write_todos", json!({"todos": todos}))
            }
            (Self::Plan { items, done }, Chat) => {
                let mut todos = steps(items, *done, "content");
                for todo in &mut todos {
                    todo["priority"] = json!("medium");
                }
                ("todowrite", json!({"todos": todos}))
            }
            (Self::Plan { items, done }, Messages) => {
                let mut todos = steps(items, *done, "content");
                for todo in &mut todos {
                    todo["activeForm"] = todo["content"].clone();
                }
                ("TodoWrite", json!({"todos": todos}))
            }
        };
        (name.to_owned(), arguments)
    }
}

fn patch(path: &str, content: &str) -> Value {
    let lines: String = content.lines().map(|line| format!("+{line}\n")).collect();
    Value::String(format!(
        "*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n"
    ))
}

fn steps(items: &[String], done: usize, key: &str) -> Vec<Value> {
    let status = |at: usize| match at.cmp(&done) {
        std::cmp::Ordering::Less => "completed",
        std::cmp::Ordering::Equal => "in_progress",
        std::cmp::Ordering::Greater => "pending",
    };
    let items = items.iter().enumerate();
    items
        .map(|(at, item)| json!({key: item, "status": status(at)}))
        .collect()
}
