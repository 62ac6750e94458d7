//! The server over HTTP.

use crate::client::{Project, hello};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

const TOKEN: &str = "correct-horse-battery";
/// The folder of the repository that no step can read.
const PRIVATE: &str = ".premath/private";
const TOKEN_FILE: &str = ".premath/private/token";

/// A server on a free port.
struct Http {
    child: Child,
    address: String,
}

impl Http {
    fn start(project: &Project) -> Self {
        private(project, "token", TOKEN);
        let mut command = project.command(&["mcp-serve", "--http", "127.0.0.1:0"]);
        command.args(["--token-file", TOKEN_FILE]);
        Self::listening(command)
    }

    fn listening(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines
            .map(Result::unwrap)
            .find_map(|line| {
                let rest = line.strip_prefix("listening on http://")?;
                Some(rest.strip_suffix("/mcp")?.to_owned())
            })
            .unwrap();
        Self { child, address }
    }

    /// Asks once; returns the status, the head and the body.
    fn ask(&self, path: &str, headers: &[&str], message: &Value) -> (u16, String, String) {
        self.send("POST", path, headers, message)
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[&str],
        message: &Value,
    ) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = message.to_string();
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAccept: application/json, \
             text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            self.address,
            body.len()
        );
        for header in headers {
            request.push_str(&format!("{header}\r\n"));
        }
        let whole = format!("{request}\r\n{body}");
        stream.write_all(whole.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_ascii_lowercase(), body.to_owned())
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes a file that its owner alone may read.
fn private(project: &Project, name: &str, text: &str) {
    let path = project.root.join(PRIVATE).join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The message in an answer that is an event stream.
fn message(body: &str) -> Value {
    let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
    let mut read = data.filter_map(|text| serde_json::from_str(text.trim()).ok());
    read.next().unwrap_or_else(|| panic!("{body}"))
}

#[test]
fn only_a_client_with_the_token_is_served() {
    let project = Project::claiming(&["all"]);
    let server = Http::start(&project);
    let bearer = format!("Authorization: Bearer {TOKEN}");
    let first = request(1, "initialize", hello());
    for wrong in [
        &[][..],
        &["Authorization: Bearer wrong-horse-battery"],
        &["Authorization: Basic correct-horse-battery"],
    ] {
        let (status, head, _) = server.ask("/mcp", wrong, &first);
        assert_eq!(status, 401, "{wrong:?}");
        assert!(head.contains("www-authenticate: bearer"), "{head}");
    }
    assert_eq!(server.ask("/other", &[&bearer], &first).0, 404);
    for elsewhere in ["Origin: https://example.com", "Origin: null"] {
        assert_eq!(server.ask("/mcp", &[&bearer, elsewhere], &first).0, 403);
    }
    let (status, head, body) = server.ask("/mcp", &[&bearer], &first);
    assert_eq!(status, 200, "{head}");
    assert_eq!(message(&body)["result"]["serverInfo"]["name"], "premath");
    let session = head
        .lines()
        .find(|line| line.starts_with("mcp-session-id:"))
        .unwrap()
        .to_owned();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let known = [&*bearer, &*session, "MCP-Protocol-Version: 2025-06-18"];
    assert_eq!(server.ask("/mcp", &known, &ready).0, 202);
    let call = json!({"name": "issue_claim", "arguments": {"id": "a", "assignee": "w"}});
    let (status, _, body) = server.ask("/mcp", &known, &request(2, "tools/call", call.clone()));
    assert_eq!(status, 200);
    let answer = message(&body);
    assert_eq!(answer["result"]["structuredContent"]["claimed"], true);
    // A session is not a token.
    let (status, ..) = server.ask("/mcp", &[&session], &request(3, "tools/call", call));
    assert_eq!(status, 401);
}

#[test]
fn a_server_that_others_could_reach_or_that_asks_for_no_token_does_not_start() {
    let project = Project::claiming(&["all"]);
    private(&project, "token", TOKEN);
    private(&project, "short", "abc");
    for (args, printed) in [
        (
            &["--http", "0.0.0.0:0", "--token-file", TOKEN_FILE][..],
            "loopback",
        ),
        (
            &["--http", "[::]:0", "--token-file", TOKEN_FILE],
            "loopback",
        ),
        (
            &[
                "--http",
                "127.0.0.1:0",
                "--token-file",
                ".premath/private/short",
            ],
            "at least 16",
        ),
        (
            &["--http", "127.0.0.1:0", "--token-file", "none"],
            "cannot read none",
        ),
        (&["--token-file", TOKEN_FILE], "--http"),
        (&["--http", "localhost"], "--http"),
    ] {
        let output = project.premath(&[&["mcp-serve"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(printed), "{args:?}: {said}");
    }
}

#[test]
fn a_token_that_others_may_read_is_refused_with_the_remedy() {
    let project = Project::claiming(&["all"]);
    private(&project, "token", TOKEN);
    for mode in [0o640, 0o604, 0o620, 0o610] {
        let path = project.root.join(TOKEN_FILE);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let args = [
            "mcp-serve",
            "--http",
            "127.0.0.1:0",
            "--token-file",
            TOKEN_FILE,
        ];
        let output = project.premath(&args);
        assert_eq!(output.status.code(), Some(2), "{mode:o}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("run `chmod 600` on it"), "{said}");
        assert!(said.contains(&format!("mode {mode:03o}")), "{said}");
    }
}

/// Attack 10: a step read the token file and called the server.
#[test]
fn a_token_file_where_steps_read_is_refused_with_the_place_to_keep_it() {
    let project = Project::claiming(&["all"]);
    private(&project, "token", TOKEN);
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    fs::write(elsewhere.path(), TOKEN).unwrap();
    fs::copy(project.root.join(TOKEN_FILE), project.root.join("token")).unwrap();
    fs::copy(
        project.root.join(TOKEN_FILE),
        project.root.join(".premath/token"),
    )
    .unwrap();
    std::os::unix::fs::symlink("../../token", project.root.join(PRIVATE).join("link")).unwrap();
    let elsewhere = elsewhere.path().to_str().unwrap();
    for file in [
        "token",
        ".premath/token",
        ".premath/private/link",
        elsewhere,
    ] {
        let output = project.premath(&["mcp-serve", "--http", "127.0.0.1:0", "--token-file", file]);
        assert_eq!(output.status.code(), Some(2), "{file}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("is readable by steps"), "{said}");
        assert!(said.contains(PRIVATE), "{said}");
    }
}

#[test]
fn without_a_token_the_server_makes_one_that_its_owner_alone_reads() {
    let project = Project::claiming(&["all"]);
    let server = Http::listening(project.command(&["mcp-serve", "--http", "127.0.0.1:0"]));
    let path = project.root.join(PRIVATE).join("mcp-token");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    let token = fs::read_to_string(&path).unwrap();
    let bearer = format!("Authorization: Bearer {}", token.trim());
    let first = request(1, "initialize", hello());
    assert_eq!(server.ask("/mcp", &[&bearer], &first).0, 200);
    assert_eq!(server.ask("/mcp", &[], &first).0, 401);
}

#[test]
fn no_more_clients_are_taken_than_there_is_room_for_until_one_goes() {
    let project = Project::claiming(&["all"]);
    let server = Http::start(&project);
    let bearer = format!("Authorization: Bearer {TOKEN}");
    let first = request(1, "initialize", hello());
    let open = || {
        let (status, head, _) = server.ask("/mcp", &[&bearer], &first);
        let session = head
            .lines()
            .find(|line| line.starts_with("mcp-session-id:"))
            .map(str::to_owned);
        (status, session, head)
    };
    let sessions: Vec<String> = (0..64)
        .map(|_| {
            let (status, session, head) = open();
            assert_eq!(status, 200, "{head}");
            session.unwrap()
        })
        .collect();
    let (status, session, head) = open();
    assert_eq!((status, session), (503, None), "{head}");
    assert!(head.contains("retry-after:"), "{head}");
    // Who is there is served all the same.
    let known = [&*bearer, &*sessions[1], "MCP-Protocol-Version: 2025-06-18"];
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(server.ask("/mcp", &known, &ready).0, 202);
    let gone = [&*bearer, &*sessions[0], "MCP-Protocol-Version: 2025-06-18"];
    let (status, head, _) = server.send("DELETE", "/mcp", &gone, &Value::Null);
    assert!((200..300).contains(&status), "{head}");
    assert_eq!(open().0, 200);
}
