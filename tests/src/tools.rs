//! A client of `premath mcp-serve`, which writes lines and reads lines.

use crate::{Scratch, binaries, command};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A client of a server of its own.
#[derive(Debug)]
pub struct Tools {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    last: u64,
}

impl Tools {
    /// Starts a server in a repository's root, and shakes hands with it.
    pub fn of(scratch: &Scratch) -> Self {
        let mut server = command(&binaries().premath);
        server.arg("mcp-serve").current_dir(&scratch.root);
        server.env_clear().env("HOME", scratch.home());
        server.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = server.stderr(Stdio::null()).spawn().unwrap();
        let mut tools = Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            last: 0,
        };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "e2e", "version": "1"},
        });
        tools.request("initialize", hello);
        tools.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        tools
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let answer: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("no answer: {line:?}"));
        assert_eq!(answer["id"], id, "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool that must accept; returns what it says.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let result = self.request("tools/call", params);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        result["structuredContent"].clone()
    }
}

impl Drop for Tools {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.wait();
    }
}
