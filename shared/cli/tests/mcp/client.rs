//! A project, and a client that writes lines and reads lines.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

/// Variables that would lead a server elsewhere.
const ELSEWHERE: [&str; 10] = [
    "PREMATH_STEP_ID",
    "PREMATH_ISSUE_ID",
    "PREMATH_LEASE_ID",
    "PREMATH_LEASE_GENERATION",
    "PREMATH_OUTBOX",
    "PREMATH_ISSUES_PATH",
    "PREMATH_INSTRUCTION",
    "PREMATH_HARNESS_SESSION_PATH",
    "PREMATH_MCP_TOKEN",
    "PREMATH_HOST_ACTION_TRANSPORT",
];

/// Issues of every kind that the tools look at.
const ROWS: &str = r#"{"id":"a","title":"First","status":"open","priority":1}
{"id":"b","title":"Second","status":"open","labels":["ui"]}
{"id":"c","title":"Waits","status":"open","dependencies":[{"issue_id":"c","depends_on_id":"a","type":"blocks","created_by":"ann"}]}
{"id":"d","title":"Done","status":"closed"}
"#;

/// A folder that was created, with issues in it.
pub(crate) struct Project {
    _guard: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

impl Project {
    /// Creates a project whose one instruction claims these changes, `all`
    /// for every one.
    pub(crate) fn claiming(changes: &[&str]) -> Self {
        let guard = tempfile::tempdir().unwrap();
        let root = guard.path().canonicalize().unwrap();
        let project = Self {
            _guard: guard,
            root,
        };
        assert!(project.premath(&["init"]).status.success());
        fs::write(project.issues(), ROWS).unwrap();
        let claims: Vec<String> = changes
            .iter()
            .map(|change| format!("capabilities.change_morphisms.{change}"))
            .collect();
        project.edit_instruction(|envelope| envelope["capabilityClaims"] = json!(claims));
        project
    }

    pub(crate) fn issues(&self) -> PathBuf {
        self.root.join(".premath/issues.jsonl")
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(self.issues()).unwrap()
    }

    /// The envelope that `init` wrote.
    pub(crate) fn instruction(&self) -> PathBuf {
        let entries = fs::read_dir(self.root.join("instructions")).unwrap();
        entries.map(|entry| entry.unwrap().path()).next().unwrap()
    }

    pub(crate) fn edit_instruction(&self, edit: impl FnOnce(&mut Value)) {
        let path = self.instruction();
        let mut envelope: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        edit(&mut envelope);
        fs::write(&path, envelope.to_string()).unwrap();
    }

    /// Takes the instruction's name out of the configuration.
    pub(crate) fn without_instruction(self) -> Self {
        fs::write(self.root.join("harness.toml"), "[batch]\n").unwrap();
        self
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "the test plays the program that starts the server"
        )]
        let mut command = Command::new(env!("CARGO_BIN_EXE_premath"));
        command.args(args).current_dir(&self.root);
        for name in ELSEWHERE {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn premath(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// What a command answers.
    #[track_caller]
    pub(crate) fn answer(&self, args: &[&str]) -> Value {
        let output = self.premath(&[args, &["--json"]].concat());
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn serve(&self, args: &[&str]) -> Client {
        Client::start(self.command(&[&["mcp-serve"], args].concat()))
    }
}

/// A client of a server on stdin and stdout, shaken hands with.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    last: u64,
}

impl Client {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let mut client = Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            last: 0,
        };
        let hello = client.request("initialize", hello());
        assert_eq!(hello["result"]["serverInfo"]["name"], "premath", "{hello}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    /// Every line of stdout is the protocol's, and answers this request.
    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"));
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    #[track_caller]
    pub(crate) fn tools(&mut self) -> Vec<Value> {
        let listed = self.request("tools/list", json!({}));
        listed["result"]["tools"].as_array().unwrap().clone()
    }

    /// Calls a tool; returns its structured content, and whether it is an error.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> (Value, bool) {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.request("tools/call", params);
        let result = &answer["result"];
        let structured = result["structuredContent"].clone();
        assert!(structured.is_object(), "{answer}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), structured);
        (structured, result["isError"] == true)
    }

    #[track_caller]
    pub(crate) fn accepted(&mut self, tool: &str, arguments: Value) -> Value {
        let (answer, is_error) = self.call(tool, arguments);
        assert!(!is_error, "{tool}: {answer}");
        answer
    }

    /// Calls a tool that must refuse with a class.
    #[track_caller]
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value, class: &str) -> Value {
        let (answer, is_error) = self.call(tool, arguments);
        assert!(is_error, "{tool}: {answer}");
        assert_eq!(answer["failureClasses"], json!([class]), "{tool}: {answer}");
        assert!(answer["action"].is_string() && answer["error"].is_string());
        answer
    }

    /// Goes, and returns the server's exit code.
    pub(crate) fn go(mut self) -> Option<i32> {
        self.stdin = None;
        self.child.wait().unwrap().code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a client says first.
pub(crate) fn hello() -> Value {
    json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "by-hand", "version": "1"},
    })
}

/// A call of every tool that changes something.
pub(crate) fn changes() -> [(&'static str, Value); 9] {
    [
        ("issue_claim", json!({"id": "a", "assignee": "w"})),
        ("issue_update", json!({"id": "b", "title": "Other"})),
        ("issue_discover", json!({"parent": "a", "title": "Found"})),
        (
            "issue_lease_renew",
            json!({"id": "a", "assignee": "w", "leaseId": "lease1_a_w"}),
        ),
        (
            "issue_lease_release",
            json!({"id": "a", "assignee": "w", "leaseId": "lease1_a_w"}),
        ),
        ("dep_add", json!({"issueId": "b", "dependsOnId": "a"})),
        (
            "dep_replace",
            json!({"issueId": "c", "dependsOnId": "a", "toType": "blocks"}),
        ),
        ("dep_remove", json!({"issueId": "c", "dependsOnId": "a"})),
        ("issue_add", json!({"title": "Another", "labels": ["x"]})),
    ]
}

/// A call of every tool that asks the batch that runs.
pub(crate) fn controls() -> [(&'static str, Value); 8] {
    [
        ("batch_pause", json!({})),
        ("batch_resume", json!({})),
        ("batch_drain", json!({})),
        ("batch_stop", json!({"reason": "test"})),
        ("batch_lanes_add", json!({"count": 1})),
        ("batch_lanes_remove", json!({"lane": "worker.1"})),
        ("issue_cancel", json!({"issues": ["a"]})),
        ("issue_say", json!({"issues": ["a"], "text": "look"})),
    ]
}
