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
        let (name, arguments) = match self {
            Self::Named { name, arguments } => (name.as_str(), arguments.clone()),
            Self::Shell(command) => shell(dialect, command),
            Self::Write { path, content } => write(dialect, path, content),
            Self::Read(path) => read(dialect, path),
            Self::Poll(wait) => poll(dialect, *wait, running),
            Self::Plan { items, done } => plan(dialect, items, *done),
        };
        (name.to_owned(), arguments)
    }
}

fn shell(dialect: Dialect, command: &str) -> (&'static str, Value) {
    let described = json!({"command": command, "description": "Runs"});
    match dialect {
        Dialect::Responses => ("exec_command", json!({"cmd": command})),
        Dialect::Gemini => ("run_shell_command", json!({"command": command})),
        Dialect::Chat => ("bash", described),
        Dialect::Messages => ("Bash", described),
    }
}

fn write(dialect: Dialect, path: &str, content: &str) -> (&'static str, Value) {
    let file = |key: &str| json!({key: path, "content": content});
    match dialect {
        Dialect::Responses => ("apply_patch", patch(path, content)),
        Dialect::Gemini => ("write_file", file("file_path")),
        Dialect::Chat => ("write", file("filePath")),
        Dialect::Messages => ("Write", file("file_path")),
    }
}

fn read(dialect: Dialect, path: &str) -> (&'static str, Value) {
    match dialect {
        // Codex has no tool for it.
        Dialect::Responses => ("exec_command", json!({"cmd": format!("cat {path}")})),
        Dialect::Gemini => ("read_file", json!({"file_path": path})),
        Dialect::Chat => ("read", json!({"filePath": path})),
        Dialect::Messages => ("Read", json!({"file_path": path})),
    }
}

fn poll(dialect: Dialect, wait: u64, running: Option<u64>) -> (&'static str, Value) {
    let over = json!({"command": "true", "description": "Waits"});
    match dialect {
        Dialect::Responses => {
            let arguments = json!({"session_id": running, "chars": "", "yield_time_ms": wait});
            ("write_stdin", arguments)
        }
        Dialect::Gemini => {
            let arguments = json!({"pid": running, "delay_ms": wait});
            ("read_background_output", arguments)
        }
        // OpenCode's commands are over when they have an answer.
        Dialect::Chat => ("bash", over),
        Dialect::Messages => ("Bash", over),
    }
}

fn plan(dialect: Dialect, items: &[String], done: usize) -> (&'static str, Value) {
    match dialect {
        Dialect::Responses => {
            let plan = steps(items, done, "step");
            ("update_plan", json!({"plan": plan}))
        }
        Dialect::Gemini => {
            let todos = steps(items, done, "description");
            ("write_todos", json!({"todos": todos}))
        }
        Dialect::Chat => {
            let mut todos = steps(items, done, "content");
            for todo in &mut todos {
                todo["priority"] = json!("medium");
            }
            ("todowrite", json!({"todos": todos}))
        }
        Dialect::Messages => {
            let mut todos = steps(items, done, "content");
            for todo in &mut todos {
                todo["activeForm"] = todo["content"].clone();
            }
            ("TodoWrite", json!({"todos": todos}))
        }
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
