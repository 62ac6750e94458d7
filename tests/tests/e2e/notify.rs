//! The operator's notification command: what it gets, and that it delays nothing.

mod budget;
mod templates;
mod tls;

use premath_tests::{PATIENCE, Posted, Run, Scratch, issue, receiver, until};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::process::Stdio;

/// Keeps what it gets: the document of stdin, then the text, a line each.
const KEEPS: &str =
    r#"cat >> "$HOME/documents"; printf "%s\n" "$PREMATH_NOTIFY_TEXT" >> "$HOME/texts""#;

fn notified(ids: &[&str], settings: &str) -> Scratch {
    let rows: Vec<Value> = ids.iter().map(|id| issue(id)).collect();
    let scratch = Scratch::with_issues(1, &rows);
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    scratch
}

fn keeping(more: &str) -> String {
    format!("[notify]\ncommand = '''{KEEPS}'''\n{more}")
}

fn documents(scratch: &Scratch) -> Vec<Value> {
    let text = fs::read(scratch.home().join("documents")).unwrap_or_default();
    premath_tests::parse_rows(&text)
}

fn events(scratch: &Scratch) -> Vec<String> {
    let documents = documents(scratch).into_iter();
    documents
        .map(|document| document["event"].as_str().unwrap().to_owned())
        .collect()
}

/// Documents of real notifications, with their kinds.
pub(super) fn documents_of_a_batch() -> Vec<Value> {
    let scratch = notified(&["a"], &keeping(""));
    scratch.batch("true", "false").end().exits(1);
    documents(&scratch)
}

#[test]
fn each_event_is_notified_once_with_its_document_and_its_text() {
    let mut hostile = issue("b");
    hostile["title"] = json!("x\u{1b}[2J\n$(touch ~/ran)`touch ~/ran`'; touch ~/ran");
    let scratch = notified(&[], &keeping(""));
    scratch.write_issues(format!("{}\n{hostile}\n", issue("a")).as_bytes());
    let ended = scratch
        .batch("true", "[ $PREMATH_ISSUE_ID = a ]")
        .end()
        .exits(1);
    assert_eq!(events(&scratch), ["blocked", "done"]);
    let documents = documents(&scratch);
    let batch = &ended.events()[0]["batchId"];
    assert!(
        documents
            .iter()
            .all(|document| document["batchId"] == *batch)
    );
    assert_eq!(documents[0]["issueId"], "b");
    assert_eq!(documents[0]["failureClasses"], json!(["check_failed"]));
    assert_eq!(documents[1]["exitCode"], 1);
    let texts = fs::read_to_string(scratch.home().join("texts")).unwrap();
    assert_eq!(texts.lines().count(), 2, "{texts}");
    assert!(!texts.contains('\u{1b}') && texts.contains("b blocked: check_failed: x\\u{1b}[2J\\n"));
    assert!(
        texts.ends_with("1 of 2 attempted issues closed, exit code 1\n"),
        "{texts}"
    );
    assert!(!scratch.home().join("ran").exists());
    scratch.no_process_left();
}

#[test]
fn only_the_selected_events_are_notified() {
    let scratch = notified(&["a"], &keeping("events = [\"done\"]\n"));
    scratch.batch("true", "false").end().exits(1);
    assert_eq!(events(&scratch), ["done"]);
    let wrong = notified(&["a"], &keeping("events = [\"over\"]\n"));
    wrong
        .batch("true", "true")
        .end()
        .exits(2)
        .says("unknown event `over`");
}

#[test]
fn a_parked_provider_is_notified() {
    let work = r#"[ -e "$HOME/once" ] || { touch "$HOME/once"
echo "usage_limit: resets at $(( $(date +%s) + 1 ))" >&2; exit 1; }"#;
    let scratch = notified(&["a"], &keeping("[agent]\nlimit_lines = \"park\"\n"));
    scratch.batch(work, "true").end().exits(0);
    assert_eq!(events(&scratch), ["parked", "done"]);
}

#[test]
fn a_failed_landing_check_is_notified() {
    let settings = keeping("[landing]\ncheck_cmd = 'test ! -e src/a.txt'\n");
    let scratch = notified(&["a"], &settings);
    let work = "echo x > src/$PREMATH_ISSUE_ID.txt";
    scratch.landing_batch(work, "true").end().exits(1);
    let events = events(&scratch);
    assert!(events.contains(&"failed_check".to_owned()), "{events:?}");
    assert_eq!(events.last().map(String::as_str), Some("done"));
}

#[test]
fn a_verification_that_fails_without_any_work_is_notified() {
    let settings = keeping("[breaker]\npause = \"1s\"\n");
    let scratch = notified(&["a", "b", "c", "d"], &settings);
    scratch.landing_batch("true", "false").end().exits(1);
    let events = events(&scratch);
    let red = events.iter().filter(|event| **event == "red_baseline");
    assert_eq!(red.count(), 1, "{events:?}");
}

/// A batch of two issues that are blocked, without what a terminal shows.
fn blocked(scratch: &Scratch) -> Run {
    scratch.batch("true", "false")
}

#[test]
fn a_command_that_hangs_delays_no_attempt_and_no_report() {
    let settings = "[notify]\ncommand = '''until [ -e \"$HOME/go\" ]; do sleep 0.05; done'''\n\
                    timeout = \"60s\"\n";
    let scratch = notified(&["a", "b"], settings);
    let batch = blocked(&scratch).start();
    let over = until(PATIENCE, || {
        let events = batch.events();
        let is_over = events.last()?["event"] == "batch.ended";
        is_over.then_some(events)
    });
    let events = over.expect("the report comes while the first notification hangs");
    let ended = events.iter().filter(|event| event["event"] == "step.ended");
    assert_eq!(ended.count(), 2);
    fs::write(scratch.home().join("go"), "").unwrap();
    let ended = batch.wait().exits(1);
    assert!(
        !ended.stderr.contains("a notification failed"),
        "{}",
        ended.stderr
    );
    scratch.no_process_left();
}

#[test]
fn a_command_that_fails_or_takes_too_long_is_reported_and_changes_nothing() {
    for (command, why) in [
        ("echo no account >&2; exit 7", "exit code 7: no account"),
        ("sleep 600", "took too long"),
    ] {
        let settings =
            format!("[notify]\ncommand = '{command}'\nevents = [\"done\"]\ntimeout = \"1s\"\n");
        let scratch = notified(&["a"], &settings);
        let ended = scratch.batch("true", "true").end().exits(0);
        let said = "the notification `done` failed: ";
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
        assert_eq!(ended.events().last().unwrap()["event"], "batch.ended");
        assert_eq!(scratch.issue("a")["status"], "closed");
        scratch.no_process_left();
    }
}

fn header<'a>(posted: &'a Posted, name: &str) -> Option<&'a str> {
    let mut lines = posted.0.lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// Has the receiver of the guide judge a delivery at a time; `None` without python.
fn judged(posted: &Posted, secret: &str, now: i64) -> Option<bool> {
    let receiver = templates::block("## Webhook", "python");
    let ends = "import json, sys
given = json.load(sys.stdin)
print(is_genuine(given['headers'], given['body'].encode(), given['secret'].encode(), given['now']))";
    let headers = ["x-premath-timestamp", "x-premath-signature-256"];
    let headers = headers.map(|name| (name, header(posted, name).unwrap_or_default()));
    let given = json!({
        "headers": Value::from_iter(headers), "secret": secret, "now": now,
        "body": String::from_utf8(posted.1.clone()).unwrap(),
    });
    let mut python = premath_tests::command(std::path::Path::new("python3"))
        .args(["-c", &format!("{receiver}\n{ends}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut stdin = python.stdin.take().unwrap();
    stdin.write_all(given.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = python.wait_with_output().unwrap();
    match &*String::from_utf8(output.stdout).unwrap() {
        "True\n" => Some(true),
        "False\n" => Some(false),
        other => panic!("the receiver of the guide printed {other}"),
    }
}

#[test]
fn a_webhook_gets_the_document_of_the_command_and_its_signature() {
    let (url, posted) = receiver(&["503 Busy", "200 OK"]);
    let settings = format!(
        "{}webhook = \"{url}/hook\"\nwebhook_secret_env = \"E2E_SECRET\"\nevents = [\"done\"]\n",
        keeping("")
    );
    let scratch = notified(&["a"], &settings);
    let work = "env > \"$HOME/environment\"";
    let batch = scratch.batch(work, "true").env("E2E_SECRET", "k\u{e9}y");
    batch.end().exits(0);
    let (first, second) = (posted.recv().unwrap(), posted.recv().unwrap());
    assert_eq!(first, second, "another try is the same");
    assert!(posted.try_recv().is_err());
    assert!(second.0.starts_with("post /hook http/1.1"), "{}", second.0);
    let body = String::from_utf8(second.1.clone()).unwrap();
    let document: Value = serde_json::from_str(&body).unwrap();
    assert_eq!([document], documents(&scratch)[..]);
    assert_eq!(header(&second, "x-premath-event"), Some("done"));
    assert_eq!(header(&second, "content-type"), Some("application/json"));
    let sent: i64 = header(&second, "x-premath-timestamp")
        .unwrap()
        .parse()
        .unwrap();
    let age = jiff::Timestamp::now().as_second() - sent;
    assert!((0..=300).contains(&age), "{age}");
    let mut forged = second.clone();
    forged.1 = body.replace("done", "dome").into_bytes();
    let mut later = second.clone();
    later.0 = second
        .0
        .replace(&sent.to_string(), &(sent + 600).to_string());
    for (delivery, secret, after, is_genuine) in [
        (&second, "k\u{e9}y", 0, true),
        (&second, "k\u{e9}y", 300, true),
        // A recorded one, whose time stamp is old, or was changed.
        (&second, "k\u{e9}y", 301, false),
        (&later, "k\u{e9}y", 600, false),
        (&forged, "k\u{e9}y", 0, false),
        (&second, "key", 0, false),
    ] {
        match judged(delivery, secret, sent + after) {
            Some(judged) => assert_eq!(judged, is_genuine, "{after} {delivery:?}"),
            None => {
                premath_tests::skipped("the signature of a webhook", "python3 is not installed");
            }
        }
    }
    let environment = fs::read_to_string(scratch.home().join("environment")).unwrap();
    assert!(!environment.contains("E2E_SECRET"), "{environment}");
}

#[test]
fn a_webhook_that_refuses_or_has_no_secret_is_reported_and_delays_nothing() {
    let (url, posted) = receiver(&["302 Found"]);
    let scratch = notified(&["a"], &format!("[notify]\nwebhook = \"{url}\"\n"));
    let ended = scratch.batch("true", "false").end().exits(1);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(
        said.contains("webhook: the receiver answered 302"),
        "{said}"
    );
    let heads: Vec<Posted> = posted.try_iter().collect();
    // Neither a redirect nor a refusal is followed by another request.
    assert_eq!(heads.len(), 2, "{heads:?}");
    assert!(
        heads
            .iter()
            .all(|posted| header(posted, "x-premath-signature-256").is_none())
    );
    let (url, posted) = receiver(&["200 OK"]);
    let unset = format!("[notify]\nwebhook = \"{url}\"\nwebhook_secret_env = \"E2E_SECRET\"\n");
    let scratch = notified(&["a"], &unset);
    let ended = scratch.batch("true", "true").end().exits(0);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(said.contains("webhook: E2E_SECRET is not set"), "{said}");
    assert!(posted.try_recv().is_err(), "nothing is sent unsigned");
}
