//! The server: it finds the script, the turn in it, and plays that.

use super::account::Account;
use super::http::{self, Request};
use super::journal::{Journal, MadeCall, Played, PlayedTurn, Spent};
use super::script::{Refusal, Script, Scripts, Turn};
use super::tool::Tool;
use super::wire::{Asked, Dialect, Says};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What a prompt names its script by.
const MARK: &str = "play:";

/// Where tokens are renewed.
pub const RENEWAL: &str = "/oauth/token";

/// How long a client may be silent within a request.
const SILENCE: Duration = Duration::from_secs(60);

/// A running server; it lives as long as its process.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    stage: Arc<Stage>,
}

/// What the threads of a server share.
#[derive(Debug)]
struct Stage {
    scripts: Scripts,
    journal: Journal,
    /// How often a turn that goes wrong was played, by conversation and turn.
    failed: Mutex<BTreeMap<(String, usize), u64>>,
    requests: Option<PathBuf>,
    account: Account,
}

/// What is to be played: a script at a turn.
struct Cue<'a> {
    script: &'a str,
    conversation: &'a str,
}

impl ModelServer {
    /// Starts a server on a free port of loopback. Where a folder for requests
    /// is named, each is written there as it came.
    ///
    /// # Errors
    ///
    /// If no port is available.
    pub fn start(
        scripts: Scripts,
        journal: Journal,
        requests: Option<PathBuf>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let stage = Arc::new(Stage {
            scripts,
            journal,
            failed: Mutex::new(BTreeMap::new()),
            requests,
            account: Account::default(),
        });
        let shared = Arc::clone(&stage);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let stage = Arc::clone(&shared);
                // A client that went away is its own affair.
                thread::spawn(move || stage.serve(&stream).ok());
            }
        });
        Ok(Self { address, stage })
    }

    /// Returns `http://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns what was answered so far.
    pub fn turns(&self) -> Vec<PlayedTurn> {
        self.stage.journal.turns()
    }

    /// Returns the refresh tokens that were to be renewed, in their order.
    pub fn renewals(&self) -> Vec<String> {
        self.stage.account.renewals()
    }

    /// Returns the tokens that models were asked with, in their order.
    pub fn bearers(&self) -> Vec<String> {
        self.stage.account.bearers()
    }
}

impl Stage {
    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(SILENCE))?;
        let Some(request) = http::read(&mut BufReader::new(stream))? else {
            return Ok(());
        };
        self.keep(&request)?;
        let mut out = stream;
        if request.method == "POST" && request.path == RENEWAL {
            return self.renew(&mut out, &request.body);
        }
        let Some(dialect) = Dialect::of(&request.method, &request.path) else {
            return http::answer(&mut out, 404, &[], r#"{"error":{"message":"not found"}}"#);
        };
        let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
            return http::answer(&mut out, 400, &[], r#"{"error":{"message":"no JSON"}}"#);
        };
        if let Some(bearer) = &request.bearer {
            self.account.is_asked_with(bearer);
        }
        self.play(&mut out, dialect, &request.path, &body)
    }

    fn renew(&self, out: &mut impl io::Write, body: &[u8]) -> io::Result<()> {
        let body = serde_json::from_slice(body).unwrap_or_default();
        match self.account.renew(&body) {
            Some(tokens) => http::answer(out, 200, &[], &tokens.to_string()),
            None => {
                let reused = r#"{"error":{"code":"refresh_token_reused"}}"#;
                http::answer(out, 401, &[], reused)
            }
        }
    }

    fn play(
        &self,
        out: &mut impl io::Write,
        dialect: Dialect,
        path: &str,
        body: &Value,
    ) -> io::Result<()> {
        let asked = dialect.asked(path, body);
        let Some((cue, script)) = cue(&asked.prompt).and_then(|cue| {
            let script = self.scripts.get(cue.script)?;
            Some((cue, script))
        }) else {
            let refusal = Refusal {
                status: 400,
                message: "the prompt names no script: it must contain `play:<script>`".to_owned(),
                ..Refusal::default()
            };
            return http::answer(out, 400, &[], &dialect.refusal(&refusal));
        };
        let mut played = PlayedTurn {
            conversation: cue.conversation.to_owned(),
            script: cue.script.to_owned(),
            turn: 0,
            dialect,
            played: Played::Aside,
            calls: Vec::new(),
            spent: None,
        };
        if asked.aside {
            return self.answer_aside(out, dialect, played, asked.streams);
        }
        let name = self.name_of_next(cue.conversation);
        let (turn, what) = self.next(&cue, script, &asked);
        played.turn = turn;
        match what {
            None => self.say_it_is_over(out, dialect, &name, played),
            Some(Turn::Answer {
                text, calls, stop, ..
            }) => {
                played.calls = made_calls(calls, dialect, asked.running, &played);
                let says = Says {
                    stop: stop.clone(),
                    ..says(text, &name, &played)
                };
                self.answer_turn(out, dialect, played, &says)
            }
            Some(Turn::Fail(refusal)) => {
                played.played = Played::Fail;
                self.journal.push(played)?;
                let headers: Vec<(&str, String)> = refusal
                    .retry_after
                    .iter()
                    .map(|seconds| ("retry-after", seconds.to_string()))
                    .collect();
                http::answer(out, refusal.status, &headers, &dialect.refusal(refusal))
            }
            Some(Turn::Cut { text, call, .. }) => {
                let half = made_calls(call, dialect, asked.running, &played);
                let says = Says {
                    calls: half,
                    ..says(text, &name, &played)
                };
                played.played = Played::Cut;
                self.journal.push(played)?;
                http::stream(out, &dialect.begun(&says), true)
            }
        }
    }

    /// Answers what an agent asks beside its conversation, such as a title.
    fn answer_aside(
        &self,
        out: &mut impl io::Write,
        dialect: Dialect,
        mut played: PlayedTurn,
        streams: bool,
    ) -> io::Result<()> {
        let says = Dialect::aside();
        played.spent = Some(says.spent);
        self.journal.push(played)?;
        match streams {
            true => http::stream(out, &dialect.events(&says), false),
            false => http::answer(out, 200, &[], &dialect.document(&says)),
        }
    }

    fn say_it_is_over(
        &self,
        out: &mut impl io::Write,
        dialect: Dialect,
        name: &str,
        mut played: PlayedTurn,
    ) -> io::Result<()> {
        let says = says("The script is over.", name, &played);
        played.played = Played::Over;
        played.spent = Some(says.spent);
        self.journal.push(played)?;
        http::stream(out, &dialect.events(&says), false)
    }

    fn answer_turn(
        &self,
        out: &mut impl io::Write,
        dialect: Dialect,
        mut played: PlayedTurn,
        says: &Says,
    ) -> io::Result<()> {
        played.played = Played::Answer;
        played.spent = Some(says.spent);
        self.journal.push(played)?;
        http::stream(out, &dialect.events(says), false)
    }

    /// Names an answer by its conversation, and how many there were in it.
    fn name_of_next(&self, conversation: &str) -> String {
        let turns = self.journal.turns();
        let before = turns
            .iter()
            .filter(|turn| turn.conversation == conversation);
        format!("{conversation}_{}", before.count())
    }

    /// Finds the turn that comes next: after the calls that the conversation
    /// holds already, and past what has gone wrong often enough.
    fn next<'a>(
        &self,
        cue: &Cue<'_>,
        script: &'a Script,
        asked: &Asked,
    ) -> (usize, Option<&'a Turn>) {
        let begin = match dialect_position(asked, cue.conversation) {
            Position::After(turn) => turn + 1,
            Position::Rounds(rounds) => {
                let turns = script.turns.iter().enumerate();
                let mut called = turns.filter(|(_, turn)| turn.calls_tools());
                match rounds.checked_sub(1).map(|last| called.nth(last)) {
                    None => 0,
                    Some(found) => found.map_or(script.turns.len(), |(at, _)| at + 1),
                }
            }
        };
        let mut turns = script.turns.iter().enumerate().skip(begin);
        let shown = turns.find(|(_, turn)| turn.is_shown(&asked.prompt));
        let begin = shown.map_or(begin, |(at, _)| at);
        let mut failed = self.failed.lock().expect("no holder of the counts panics");
        for (at, turn) in script.turns.iter().enumerate().skip(begin) {
            let Some(times) = turn.failures() else {
                return (at, Some(turn));
            };
            let count = failed.entry((cue.conversation.to_owned(), at)).or_default();
            if *count < times {
                *count += 1;
                return (at, Some(turn));
            }
        }
        (script.turns.len(), None)
    }

    fn keep(&self, request: &Request) -> io::Result<()> {
        let Some(folder) = &self.requests else {
            return Ok(());
        };
        std::fs::create_dir_all(folder)?;
        let number = std::fs::read_dir(folder)?.count();
        let head = format!("{} {}\n", request.method, request.path).into_bytes();
        let bytes = [head.as_slice(), &request.body].concat();
        std::fs::write(folder.join(format!("{number:03}.txt")), bytes)
    }
}

/// Returns what a turn says, with the calls that it makes.
fn says(text: &str, name: &str, played: &PlayedTurn) -> Says {
    Says {
        text: text.to_owned(),
        calls: played.calls.clone(),
        stop: None,
        spent: spent_by(played.turn),
        name: name.to_owned(),
        turn: played.turn,
    }
}

/// Returns tools as the agent calls them in a turn.
fn made_calls<'a>(
    tools: impl IntoIterator<Item = &'a Tool>,
    dialect: Dialect,
    running: Option<u64>,
    played: &PlayedTurn,
) -> Vec<MadeCall> {
    let prefix = call_prefix(&played.conversation, played.turn);
    let made = |(at, tool): (usize, &Tool)| {
        let (name, arguments) = tool.call(dialect, running);
        MadeCall {
            id: format!("{prefix}{at}"),
            name,
            arguments,
        }
    };
    tools.into_iter().enumerate().map(made).collect()
}

/// The state of a conversation.
enum Position {
    /// After the turn that made a call that it holds.
    After(usize),
    /// After so many answers that called tools.
    Rounds(usize),
}

fn dialect_position(asked: &Asked, conversation: &str) -> Position {
    let begin = format!("call_{conversation}_");
    let turn_of = |id: &String| -> Option<usize> {
        let (turn, _) = id.strip_prefix(&begin)?.split_once('_')?;
        turn.parse().ok()
    };
    match asked.call_ids.iter().filter_map(turn_of).max() {
        Some(turn) => Position::After(turn),
        None => Position::Rounds(asked.rounds),
    }
}

fn call_prefix(conversation: &str, turn: usize) -> String {
    format!("call_{conversation}_{turn}_")
}

/// What a turn says that it cost: other figures for each, so that a sum shows
/// what is missing from it.
const fn spent_by(turn: usize) -> Spent {
    let turn = turn as u64;
    Spent {
        input: 1000 + 100 * turn,
        cached: 10 * turn,
        output: 20 + turn,
    }
}

/// Finds the script that a prompt names last.
fn cue(prompt: &str) -> Option<Cue<'_>> {
    let (_, rest) = prompt.rsplit_once(MARK)?;
    let ours = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let end = rest.find(|c| !ours(c)).unwrap_or(rest.len());
    let (script, rest) = rest.split_at(end);
    let conversation = rest.strip_prefix(':').map_or(script, |rest| {
        let end = rest.find(|c| !ours(c)).unwrap_or(rest.len());
        &rest[..end]
    });
    (!script.is_empty() && !conversation.is_empty()).then_some(Cue {
        script,
        conversation,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::{Read, Write};

    fn server(turns: Value) -> ModelServer {
        let folder = tempfile::tempdir().unwrap();
        let script = json!({"about": "a test", "turns": turns});
        std::fs::write(folder.path().join("x.json"), script.to_string()).unwrap();
        let scripts = Scripts::of_folder(folder.path()).unwrap();
        ModelServer::start(scripts, Journal::default(), None).unwrap()
    }

    fn post(server: &ModelServer, path: &str, body: &Value) -> String {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let body = body.to_string();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// A request with so many answers behind it, as each client makes it.
    fn request(dialect: Dialect, rounds: usize) -> (&'static str, Value) {
        let prompt = "Do it. play:x:issue-1";
        match dialect {
            Dialect::Responses => {
                let mut input = vec![json!({"role": "user", "content": [{"text": prompt}]})];
                for round in 0..rounds {
                    let id = format!("call_issue-1_{}_0", round * 2);
                    input.push(json!({"type": "function_call", "call_id": id}));
                }
                let body = json!({"stream": true, "tools": [{}], "input": input});
                ("/v1/responses", body)
            }
            Dialect::Gemini => {
                let mut contents = vec![json!({"role": "user", "parts": [{"text": prompt}]})];
                for _ in 0..rounds {
                    contents.push(json!({"role": "model", "parts": [{"functionCall": {}}]}));
                }
                let body = json!({"tools": [{}], "contents": contents});
                ("/v1beta/models/m:streamGenerateContent?alt=sse", body)
            }
            Dialect::Chat => {
                let mut messages = vec![json!({"role": "user", "content": prompt})];
                for round in 0..rounds {
                    let id = format!("call_issue-1_{}_0", round * 2);
                    messages.push(json!({"role": "assistant", "tool_calls": [{"id": id}]}));
                }
                let body = json!({"stream": true, "tools": [{}], "messages": messages});
                ("/v1/chat/completions", body)
            }
            Dialect::Messages => {
                let mut messages = vec![json!({"role": "user", "content": prompt})];
                for round in 0..rounds {
                    let id = format!("call_issue-1_{}_0", round * 2);
                    let block = json!({"type": "tool_use", "id": id});
                    messages.push(json!({"role": "assistant", "content": [block]}));
                }
                let body = json!({"stream": true, "tools": [{}], "messages": messages});
                ("/v1/messages?beta=true", body)
            }
        }
    }

    #[test]
    fn a_script_is_played_turn_by_turn_in_every_dialect() {
        let all = [
            Dialect::Responses,
            Dialect::Gemini,
            Dialect::Chat,
            Dialect::Messages,
        ];
        for dialect in all {
            let server = server(json!([
                {"answer": {"calls": [{"shell": "ls"}]}},
                {"fail": {"status": 429, "message": "later", "retryAfter": 1, "times": 1}},
                {"answer": {"calls": [{"shell": "pwd"}]}},
                {"cut": {"text": "I was about", "times": 1}},
                {"answer": {"text": "Done."}},
            ]));
            let ask = |rounds| {
                let (path, body) = request(dialect, rounds);
                post(&server, path, &body)
            };
            assert!(ask(0).contains("200 OK"));
            assert!(ask(1).contains("429 Too Many Requests\r\nretry-after: 1"));
            assert!(ask(1).contains("pwd"));
            let cut = ask(2);
            assert!(cut.contains("I was about") && !cut.ends_with("0\r\n\r\n"));
            assert!(ask(2).contains("Done."));
            assert!(ask(3).contains("The script is over."));
            let played: Vec<(usize, Played, usize)> = server
                .turns()
                .iter()
                .map(|turn| (turn.turn, turn.played, turn.calls.len()))
                .collect();
            let expected = [
                (0, Played::Answer, 1),
                (1, Played::Fail, 0),
                (2, Played::Answer, 1),
                (3, Played::Cut, 0),
                (4, Played::Answer, 0),
                (5, Played::Over, 0),
            ];
            assert_eq!(played, expected, "{dialect:?}");
        }
    }

    #[test]
    fn a_prompt_names_its_script_last_and_a_question_without_tools_is_beside_it() {
        let server = server(json!([{"answer": {"text": "Done."}}]));
        let (path, mut body) = request(Dialect::Chat, 0);
        body["tools"] = json!([]);
        assert!(post(&server, path, &body).contains("A scripted run"));
        body["messages"] = json!([{"role": "user", "content": "play:y, then play:x."}]);
        assert!(post(&server, path, &body).contains("400 Bad Request"));
        assert!(post(&server, "/v1/models", &body).contains("404 Not Found"));
        let played: Vec<Played> = server.turns().iter().map(|turn| turn.played).collect();
        assert_eq!(played, [Played::Aside]);
    }
}
