//! `premath serve` by its HTTP: who may ask, what the pages say, and what they
//! change.

use premath_tests::{PATIENCE, Running, Scratch, issue, until};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The work says that it runs, and ends when it may.
const WORK: &str = r#"echo "$PREMATH_ISSUE_ID" > "src/$PREMATH_ISSUE_ID.txt"
[ "$PREMATH_ISSUE_ID" != bad ] || { echo "<b>no luck</b>" >&2; exit 1; }
touch "$HOME/started-$PREMATH_ISSUE_ID"
until [ -e "$HOME/go" ] || [ -e "$HOME/go-$PREMATH_ISSUE_ID" ]; do sleep 0.05; done"#;

/// A title with markup, a script, an attribute's end and a mark that turns the
/// direction of writing.
pub(crate) const HOSTILE: &str =
    "<img src=x onerror=alert(1)><script>document.title='owned'</script>\"'> \u{202e}gnp.exe";

/// A repository with a batch that runs, and its server.
pub(crate) struct Served {
    pub(crate) scratch: Scratch,
    batch: Option<Running>,
    server: Running,
    /// The address that was printed, with the token.
    pub(crate) url: String,
}

/// An answer of the server.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (given, value) = line.split_once(": ")?;
            given.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// Sends a request with these headers alone, and reads the answer to its end.
pub(crate) fn exchange(
    mut stream: impl Read + Write,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    let mut text = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        text.push_str("Content-Type: application/x-www-form-urlencoded\r\n");
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    stream
        .write_all(format!("{text}\r\n{body}").as_bytes())
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Reply {
        status,
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

impl Served {
    /// Starts a batch over issues on lanes, and a server with flags of its own.
    pub(crate) fn start(lanes: usize, issues: &[Value], flags: &[&str]) -> Self {
        let scratch = Scratch::with_issues(lanes, issues);
        let batch = scratch.batch(WORK, "true").start();
        let server = scratch.premath(["serve"]).args(flags).start();
        let url = until(PATIENCE, || {
            let line = server.stdout();
            line.ends_with('\n').then(|| line.trim().to_owned())
        });
        let url = url.unwrap_or_else(|| panic!("no address: {}", server.stderr()));
        Self {
            scratch,
            batch: Some(batch),
            server,
            url,
        }
    }

    /// Returns the address without the path.
    pub(crate) fn origin(&self) -> &str {
        self.url.split_once("/?").unwrap().0
    }

    fn host(&self) -> &str {
        self.origin().strip_prefix("http://").unwrap()
    }

    pub(crate) fn token(&self) -> &str {
        self.url.split_once("token=").unwrap().1
    }

    /// Returns the address that programs connect to.
    pub(crate) fn address(&self) -> String {
        let (_, port) = self.host().rsplit_once(':').unwrap();
        format!("127.0.0.1:{port}")
    }

    /// Returns the cookie that a browser gets at its first visit.
    fn cookie(&self) -> String {
        let path = format!("GET /?token={}", self.token());
        let first = self.send(&path, &[("Host", self.host())], "");
        let cookie = first.header("set-cookie").unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token())
    }

    /// Sends a request with these headers alone.
    pub(crate) fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        exchange(stream, line, headers, body)
    }

    /// Gets a page with the token.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Reply {
        let headers = [("Host", self.host()), ("Authorization", &self.bearer())];
        self.send(&format!("GET {path}"), &headers, "")
    }

    /// Sends a form with the cookie, as a page of the server does.
    fn post(&self, path: &str, body: &str) -> Reply {
        let headers = [
            ("Host", self.host()),
            ("Cookie", &self.cookie()),
            ("Origin", self.origin()),
            ("Sec-Fetch-Site", "same-origin"),
        ];
        self.send(&format!("POST {path}"), &headers, body)
    }

    /// Returns the value that the forms of the server bear.
    fn form_value(&self) -> String {
        let page = self.get("/control/pause?batch=x").body;
        let (_, rest) = page.split_once("name=\"form\" value=\"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    }

    /// Waits until the work of issues runs, and is published.
    #[track_caller]
    pub(crate) fn started(&self, ids: &[&str]) {
        for id in ids {
            let runs = until(PATIENCE, || {
                let status: Value = serde_json::from_str(&self.get("/status.json").body).ok()?;
                let lanes = status["batches"][0]["lanes"].as_array()?;
                let mut of_lanes = lanes.iter().map(|lane| &lane["attempt"]);
                let found = of_lanes.any(|a| a["issueId"] == *id && a["phase"] == "working");
                let started = self.scratch.home().join(format!("started-{id}"));
                (found && started.exists()).then_some(())
            });
            let batch = self.batch.as_ref().map(Running::stderr);
            runs.unwrap_or_else(|| panic!("{id} does not run: {batch:?}"));
        }
    }

    /// Lets the work of an issue end.
    pub(crate) fn release(&self, id: &str) {
        fs::write(self.scratch.home().join(format!("go-{id}")), "").unwrap();
    }

    /// Lets all work end, and waits for the end of the batch.
    #[track_caller]
    pub(crate) fn finish(&mut self) {
        fs::write(self.scratch.home().join("go"), "").unwrap();
        let ended = self.batch.take().unwrap().wait();
        assert!(ended.code.is_some(), "{ended:?}");
    }

    /// Waits until a page contains a text.
    #[track_caller]
    fn says(&self, path: &str, text: &str) -> String {
        let mut last = String::new();
        let said = until(PATIENCE, || {
            last = self.get(path).body;
            last.contains(text).then(|| last.clone())
        });
        said.unwrap_or_else(|| panic!("{path} does not say {text}: {last}"))
    }
}

pub(crate) fn titled(id: &str, title: &str) -> Value {
    let mut row = issue(id);
    row["title"] = title.into();
    row
}

#[test]
fn only_who_has_the_token_and_comes_from_here_gets_anything() {
    let mut served = Served::start(1, &[titled("a", "secret title")], &[]);
    let (host, bearer) = (served.host().to_owned(), served.bearer());
    let get =
        |path: &str, headers: &[(&str, &str)]| served.send(&format!("GET {path}"), headers, "");
    let nothing = |reply: Reply, status: u16| {
        assert_eq!(reply.status, status, "{reply:?}");
        assert!(
            !reply.body.contains('<') && !reply.body.contains("secret"),
            "{reply:?}"
        );
        assert!(reply.header("content-security-policy").is_some());
    };
    for path in [
        "/",
        "/events",
        "/status.json",
        "/page.js",
        "/log",
        "/issue?id=a",
        "/nowhere",
    ] {
        nothing(get(path, &[("Host", &host)]), 401);
    }
    nothing(
        get("/", &[("Host", &host), ("Authorization", "Bearer 00")]),
        401,
    );
    nothing(get("/?token=00", &[("Host", &host)]), 401);
    nothing(get("/", &[("Host", &host), ("Cookie", "premath=00")]), 401);
    for foreign in ["evil.example", "127.0.0.1", "localhost:1"] {
        nothing(
            get("/", &[("Host", foreign), ("Authorization", &bearer)]),
            403,
        );
    }
    nothing(get("/", &[("Authorization", &bearer)]), 403);
    for (name, value) in [
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
    ] {
        let headers = [("Host", &*host), ("Authorization", &*bearer), (name, value)];
        nothing(get("/", &headers), 403);
    }
    served.finish();
}

#[test]
fn the_first_visit_gives_a_cookie_and_an_address_without_the_token() {
    let mut served = Served::start(1, &[issue("a")], &[]);
    let host = served.host().to_owned();
    let path = format!("/log?token={}&issue=a", served.token());
    let first = served.send(&format!("GET {path}"), &[("Host", &host)], "");
    assert_eq!(first.status, 303);
    assert_eq!(first.header("location"), Some("/log?issue=a"));
    let cookie = first.header("set-cookie").unwrap();
    assert!(
        cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/"),
        "{cookie}"
    );
    assert!(!cookie.contains(served.token()));
    let cookie = cookie.split(';').next().unwrap();
    let page = served.send(
        "GET /log?issue=a",
        &[("Host", &host), ("Cookie", cookie)],
        "",
    );
    assert_eq!(page.status, 200);
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(page.header(name), Some(value));
    }
    let policy = page.header("content-security-policy").unwrap();
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    served.finish();
}

/// A browser gives a cookie of `127.0.0.1` to every server there, whatever its port.
#[test]
fn the_cookie_counts_at_the_servers_own_name_alone() {
    let mut served = Served::start(1, &[issue("a")], &["--control"]);
    let (own, cookie) = (served.host().to_owned(), served.cookie());
    assert!(
        own.split_once('.').unwrap().1.starts_with("localhost:"),
        "{own}"
    );
    let get = |host: &str| {
        let headers = [("Host", host), ("Cookie", &cookie)];
        served
            .send("GET /control/stop?batch=x", &headers, "")
            .status
    };
    assert_ne!(get(&own), 401);
    let address = served.address();
    let localhost = address.replace("127.0.0.1", "localhost");
    for other in [&address, &localhost] {
        assert_eq!(get(other), 401, "{other}");
        // Nor is it given out there.
        let path = format!("GET /?token={}", served.token());
        let first = served.send(&path, &[("Host", other)], "");
        assert_eq!((first.status, first.header("set-cookie")), (401, None));
        // Programs read by the address.
        let headers = [("Host", &**other), ("Authorization", &*served.bearer())];
        assert_eq!(served.send("GET /status.json", &headers, "").status, 200);
    }
    served.finish();
}

#[test]
fn silent_connections_keep_no_page_out() {
    /// More than the server has places for.
    const SILENT: usize = 600;
    let mut served = Served::start(1, &[issue("a")], &[]);
    let connect = || TcpStream::connect(served.address()).unwrap();
    // A client that was let in keeps its place.
    let stream = connect();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut reader = BufReader::new(stream);
    let bearer = served.bearer();
    let ask = format!(
        "GET /events HTTP/1.1\r\nHost: {}\r\nAuthorization: {bearer}\r\n\r\n",
        served.host()
    );
    reader.get_mut().write_all(ask.as_bytes()).unwrap();
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.contains("200"), "{line}");
    let silent: Vec<TcpStream> = (0..SILENT).map(|_| connect()).collect();
    let began = Instant::now();
    assert_eq!(served.get("/").status, 200);
    // A silent client is waited for 10 s.
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    served.release("a");
    let mut text = String::new();
    while !text.contains("closed") {
        text.clear();
        assert_ne!(
            reader.read_line(&mut text).unwrap(),
            0,
            "the stream was cut"
        );
    }
    drop(silent);
    served.finish();
}

#[test]
fn metrics_are_scraped_with_the_token_and_equal_the_status() {
    let mut served = Served::start(1, &[issue("a"), issue("b")], &[]);
    served.started(&["a"]);
    let refused = served.send("GET /metrics", &[("Host", served.host())], "");
    assert_eq!(refused.status, 401, "{refused:?}");
    let reply = served.get("/metrics");
    let kind = reply.header("content-type").unwrap_or_default();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    let sample = |name: &str| {
        let line = reply.body.lines().find(|line| line.starts_with(name));
        let figure = line.and_then(|line| line.rsplit(' ').next());
        figure.and_then(|figure| figure.parse::<f64>().ok())
    };
    let status: Value = serde_json::from_str(&served.get("/status.json").body).unwrap();
    assert_eq!(
        sample("premath_running_batches{"),
        Some(1.0),
        "{}",
        reply.body
    );
    let attempts = status["batches"][0]["totals"]["attempts"].as_f64();
    assert_eq!(sample("premath_batch_attempts_total{"), attempts);
    served.finish();
}

#[test]
fn the_page_and_the_command_say_the_same_numbers() {
    let mut waits = issue("d");
    waits["dependencies"] = json!([{"issue_id": "d", "depends_on_id": "a", "type": "blocks"}]);
    let issues = [issue("a"), issue("bad"), issue("c"), waits];
    let mut served = Served::start(2, &issues, &[]);
    served.started(&["a", "c"]);
    // They are published once a second: the same record is read by both at last.
    let same = until(PATIENCE, || {
        let page: Value = serde_json::from_str(&served.get("/status.json").body).ok()?;
        let html = served.get("/").body;
        let command = served.scratch.premath(["status", "--json"]).end().json();
        let of = |status: &Value| {
            let batch = &status["batches"][0];
            let lanes = batch["lanes"].as_array().into_iter().flatten();
            let lanes: Vec<Value> = lanes
                .map(|lane| json!([lane["workerId"], lane["attempt"]["issueId"]]))
                .collect();
            let mut queue = status["queue"].clone();
            queue["store"] = Value::Null;
            json!([
                batch["batchId"],
                batch["totals"],
                batch["outcomes"],
                queue,
                lanes
            ])
        };
        let settled =
            page["queue"]["inProgress"] == 2 && page["batches"][0]["totals"]["attempts"] != 0;
        (settled && of(&page) == of(&command)).then_some((page, html))
    });
    let (status, html) = same.expect("both see the same");
    let (queue, batch) = (&status["queue"], &status["batches"][0]);
    let (closed, total) = (&queue["closed"], &queue["total"]);
    for text in [
        format!("{closed} of {total} issues closed."),
        format!("<li>{} in progress</li>", queue["inProgress"]),
        format!("<li>{} ready</li>", queue["ready"]),
        format!("<li>{total} in all</li>"),
        format!("{} ended", batch["totals"]["attempts"]),
        format!(
            "2 of {} lanes at work",
            batch["lanes"].as_array().unwrap().len()
        ),
    ] {
        assert!(html.contains(&text), "{text} is not in {html}");
    }
    served.finish();
    let report = served.get("/report").body;
    let command = served
        .scratch
        .premath(["report", "--html"])
        .end()
        .exits(0)
        .stdout;
    let (_, content) = command.split_once("<main>").unwrap();
    let (_, content) = content.split_once("</h1>").unwrap();
    let (content, _) = content.split_once("</main>").unwrap();
    assert!(report.contains(content.trim()), "{report}\n{content}");
}

#[test]
fn hostile_text_is_text_on_every_page() {
    let mut row = titled("bad", HOSTILE);
    row["description"] = format!("{HOSTILE}\nsecond line").into();
    let mut served = Served::start(1, &[row, titled("a<b>", HOSTILE)], &[]);
    served.started(&["a<b>"]);
    let pages = [
        "/",
        "/graph",
        "/log",
        "/log?issue=%3Cscript%3E",
        "/issue?id=bad",
        "/issue?id=a%3Cb%3E",
        "/output?issue=bad",
        "/nowhere",
    ];
    for path in pages {
        let body = served.says(path, "</html>");
        for part in [
            "<img",
            "<script>",
            "onerror=alert(1)>",
            "\u{202e}",
            "a<b>",
            "<b>no luck",
        ] {
            assert!(!body.contains(part), "{part} is in {path}: {body}");
        }
    }
    let overview = served.says("/", "&lt;img");
    assert!(overview.contains("\\u{202e}"), "{overview}");
    let events = events(&served, 4);
    assert!(
        events.contains("&lt;img") && !events.contains("<img"),
        "{events}"
    );
    served.finish();
}

/// Returns the first events of the stream.
fn events(served: &Served, count: usize) -> String {
    let mut stream = TcpStream::connect(served.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "GET /events HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\n\r\n",
        served.host(),
        served.bearer()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    let mut lines = BufReader::new(stream).lines();
    while text.matches("event: ").count() <= count {
        text.push_str(&lines.next().unwrap().unwrap());
        text.push('\n');
    }
    text
}

#[test]
fn a_blocked_issue_shows_its_class_and_the_link_leads_to_its_evidence() {
    let mut served = Served::start(1, &[issue("bad"), issue("c")], &[]);
    served.started(&["c"]);
    let overview = served.says("/", "not closed");
    assert!(overview.contains("<code>work_failed</code>"), "{overview}");
    let page = served.get("/issue?id=bad").body;
    assert!(
        page.contains("work_failed") && page.contains("&lt;b&gt;no luck&lt;/b&gt;"),
        "{page}"
    );
    let (_, rest) = page
        .split_once("href=\"/evidence?file=")
        .expect("a link to its evidence");
    let file = rest.split_once('"').unwrap().0;
    let evidence = served.get(&format!("/evidence?file={file}"));
    assert_eq!(evidence.status, 200);
    assert!(
        evidence.body.contains("Verdict of the gate"),
        "{}",
        evidence.body
    );
    assert!(
        evidence
            .body
            .contains("Rules of the join that were judged ("),
        "{}",
        evidence.body
    );
    let log = served.get("/log?class=work_failed&issue=bad").body;
    assert!(
        log.contains("work_failed") && log.contains("/issue?id=bad"),
        "{log}"
    );
    assert!(
        served
            .get("/log?class=nothing")
            .body
            .contains("No row fits")
    );
    served.finish();
    for name in ["..%2Fissues.json", "%2Fetc%2Fpasswd", "x", ".json"] {
        assert_eq!(served.get(&format!("/evidence?file={name}")).status, 404);
    }
}

#[test]
fn nothing_can_be_changed_unless_control_is_asked_for() {
    let mut served = Served::start(1, &[issue("a")], &[]);
    served.started(&["a"]);
    for page in [served.get("/"), served.get("/issue?id=a")] {
        assert!(!page.body.contains("/control/"), "{}", page.body);
    }
    for wish in ["pause", "resume", "drain", "stop", "cancel", "retry"] {
        assert_eq!(
            served
                .get(&format!("/control/{wish}?issue=a&batch=b"))
                .status,
            404
        );
        assert_eq!(
            served.post(&format!("/control/{wish}"), "issue=a").status,
            404
        );
    }
    assert_eq!(served.post("/", "x=1").status, 405);
    served.finish();
    assert_eq!(served.scratch.issue("a")["status"], "closed");
}

/// The token only reads, and the cookie controls from the page's own
/// origin alone.
fn refuses_other_origins(served: &Served, form: &str) {
    let (bearer, cookie) = (served.bearer(), served.cookie());
    let body = format!("form={form}&issue=a");
    let asks = [
        (("Authorization", &*bearer), Some(served.origin())),
        (("Cookie", &*cookie), None),
        (("Cookie", &*cookie), Some("http://evil.example")),
        (("Cookie", &*cookie), Some("null")),
    ];
    for (identity, origin) in asks {
        let mut headers = vec![("Host", served.host()), identity];
        headers.extend(origin.map(|origin| ("Origin", origin)));
        let answer = served.send("POST /control/cancel", &headers, &body);
        assert_eq!(answer.status, 403, "{answer:?}");
    }
}

#[test]
fn a_request_of_a_page_is_carried_out_as_the_command_does() {
    let mut served = Served::start(2, &[issue("a"), issue("b")], &["--control"]);
    served.started(&["a", "b"]);
    let form = served.form_value();
    let cancel = |form: &str| {
        let reason = "wrong+%3Cb%3Etask";
        served.post(
            "/control/cancel",
            &format!("form={form}&issue=a&then=deferred&reason={reason}"),
        )
    };
    assert_eq!(cancel("00").status, 403);
    refuses_other_origins(&served, &form);
    assert_eq!(served.scratch.issue("a")["status"], "in_progress");
    let question = served.get("/control/cancel?issue=a");
    assert!(question.body.contains("method=\"post\"") && question.body.contains("Go back"));
    let done = cancel(&form);
    assert_eq!(done.status, 200, "{done:?}");
    assert!(done.body.contains("it is deferred"), "{}", done.body);
    let row = served.scratch.issue("a");
    assert_eq!(row["status"], "deferred");
    let again = cancel(&form);
    assert_eq!(again.status, 409, "{again:?}");
    let retry = format!("form={form}&issue=a&note=mind+the+gap");
    let retried = served.post("/control/retry", &retry);
    assert_eq!(retried.status, 200, "{retried:?}");
    let notes = served.scratch.issue("a")["notes"].clone();
    assert!(notes.to_string().contains("mind the gap"), "{notes}");
    let batch = served.says("/", "/control/pause?batch=");
    let (_, rest) = batch.split_once("/control/pause?batch=").unwrap();
    let batch = rest.split_once('"').unwrap().0;
    let pause = served.post("/control/pause", &format!("form={form}&batch={batch}"));
    assert_eq!(pause.status, 200, "{pause:?}");
    served.says("/", "<b>Paused</b>");
    let resume = served.post("/control/resume", &format!("form={form}&batch={batch}"));
    assert_eq!(resume.status, 200, "{resume:?}");
    served.finish();
    let rows = served.scratch.trajectory();
    let asked: Vec<&Value> = rows
        .iter()
        .filter(|row| row["action"] == "operator.control")
        .collect();
    assert!(
        asked
            .iter()
            .any(|row| row["control"]["reason"] == "wrong <b>task"),
        "{asked:?}"
    );
}

#[test]
fn an_address_that_others_reach_is_refused() {
    let scratch = Scratch::new(1);
    let refused = scratch.premath(["serve", "--bind", "0.0.0.0"]).end();
    refused
        .exits(2)
        .says("without TLS the address is 127.0.0.1 or ::1");
}

#[test]
fn the_server_of_a_repository_without_a_batch_has_words() {
    let scratch = Scratch::with_issues(1, &[]);
    let server = scratch.premath(["serve"]).start();
    let url = until(PATIENCE, || {
        let line = server.stdout();
        line.ends_with('\n').then(|| line.trim().to_owned())
    });
    let served = Served {
        url: url.expect("an address"),
        scratch,
        batch: None,
        server,
    };
    for (path, words) in [
        ("/", "No batch ran in this repository yet."),
        ("/", "The issue store has no issues."),
        ("/graph", "The issue store has no issues."),
        ("/log", "The run log has no rows yet."),
        ("/report", "No batch did work yet."),
    ] {
        let page = served.get(path);
        assert_eq!(page.status, 200, "{page:?}");
        assert!(page.body.contains(words), "{path}: {}", page.body);
    }
    assert!(served.server.stderr().contains("serving"));
}
