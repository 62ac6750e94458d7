//! What an attempt prints and changes, from another terminal, while it runs and
//! afterwards.

use premath_tests::{PATIENCE, Running, Scratch, issue, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

/// The work prints and leaves what is hostile, says that it runs, and ends when
/// it may.
const WORK: &str = r#"printf 'begun \033[2J\n'; echo warned >&2
printf 'a\nb\033[31m\n' > src/part.txt; printf x > "$(printf 'src/evil\033[2J\n.txt')"
mkfifo src/pipe; ln -s /etc/passwd src/link; mkdir -p target && echo x > target/ignored
touch "$HOME/started"
until [ -e "$HOME/go" ]; do sleep 0.05; done
rm -f src/pipe src/link src/evil*; echo "--- verify stdout"; echo last"#;

const VERIFY: &str = "echo verified";

fn held() -> (Scratch, Running) {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let batch = scratch.landing_batch(WORK, VERIFY).start();
    let started = scratch.home().join("started");
    until(PATIENCE, || started.exists().then_some(())).expect("the work starts");
    let printed = || {
        let logs = scratch.premath(["logs", "a"]).end();
        (logs.stdout.contains("begun") && logs.stdout.contains("warned")).then_some(())
    };
    until(PATIENCE, printed).expect("what it printed is there");
    (scratch, batch)
}

fn release(scratch: &Scratch, batch: Running) {
    fs::write(scratch.home().join("go"), "").unwrap();
    batch.wait().exits(0);
    scratch.no_process_left();
}

fn answer(scratch: &Scratch, arguments: &[&str]) -> Value {
    let run = scratch.premath(arguments.iter().copied()).arg("--json");
    run.end().exits(0).json()
}

#[test]
fn the_output_of_an_attempt_is_shown_by_issue_and_by_lane_and_is_escaped() {
    let (scratch, batch) = held();
    for name in ["a", "worker.1"] {
        let shown = scratch.premath(["logs", name]).end().exits(0).stdout;
        assert!(
            shown.contains("--- work stdout\n| begun \\u{1b}[2J\n"),
            "{shown}"
        );
        assert!(shown.contains("--- work stderr\n| warned\n"), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }
    let one = answer(&scratch, &["logs", "a", "--stream", "stderr"]);
    let line = json!({"phase": "work", "stream": "stderr", "kind": "output", "text": "warned"});
    assert_eq!(one["lines"], json!([line]));
    assert_eq!(
        (&one["running"], &one["workerId"]),
        (&json!(true), &json!("worker.1"))
    );
    let last = answer(&scratch, &["logs", "a", "--lines", "1"]);
    assert_eq!(last["lines"].as_array().unwrap().len(), 1);
    assert_eq!(last["skippedLines"], 1);
    scratch.premath(["logs", "nowhere"]).end().exits(1);
    let waiting = scratch.premath(["logs", "b"]).end().exits(1);
    waiting.says("has no attempt yet");
    release(&scratch, batch);
}

/// Its row is written by the next batch.
#[test]
fn an_attempt_whose_harness_died_is_shown() {
    let (scratch, batch) = held();
    batch.signal(Signal::KILL);
    batch.wait();
    scratch.no_process_left();
    for name in ["a", "worker.1"] {
        let logs = answer(&scratch, &["logs", name]);
        assert_eq!(logs["running"], false, "{logs}");
        assert!(logs["lines"].to_string().contains("begun"), "{logs}");
        let diff = answer(&scratch, &["diff", name]).to_string();
        assert!(diff.contains("src/part.txt"), "{diff}");
    }
    scratch
        .premath(["logs", "b"])
        .end()
        .exits(1)
        .says("has no attempt yet");
}

#[test]
fn a_followed_attempt_is_printed_over_its_commands_until_it_ends() {
    let (scratch, batch) = held();
    let follow = scratch.premath(["logs", "a", "--follow"]).start();
    until(PATIENCE, || {
        follow.stdout().contains("warned").then_some(())
    })
    .unwrap_or_else(|| panic!("nothing is followed: {}", follow.stdout()));
    release(&scratch, batch);
    let said = follow.wait().exits(0).stdout;
    let at = |text: &str| {
        said.find(text)
            .unwrap_or_else(|| panic!("no {text}: {said}"))
    };
    assert!(at("begun") < at("last") && at("last") < at("--- verify stdout\n| verified\n"));
    // The head that the work printed does not read as one.
    let heads = said.lines().filter(|line| *line == "--- verify stdout");
    assert_eq!(heads.count(), 1, "{said}");
    assert!(said.contains("\n| --- verify stdout\n| last\n"), "{said}");
    for once in ["begun", "warned", "last", "verified"] {
        assert_eq!(said.matches(once).count(), 1, "{once}: {said}");
    }
    // What is over is printed, and not waited for.
    let over = scratch.premath(["logs", "a", "--follow"]).end().exits(0);
    assert!(over.stdout.contains("verified"), "{}", over.stdout);
}

#[test]
fn the_changes_of_a_running_attempt_are_shown_and_nothing_of_it_is_followed() {
    let (scratch, batch) = held();
    let diff = answer(&scratch, &["diff", "a"]);
    assert_eq!(diff["source"], "running");
    let files = diff["files"].as_array().unwrap();
    let named = |name: &str| {
        let mut found = files.iter();
        found
            .find(|file| file["path"] == name)
            .unwrap_or(&Value::Null)
    };
    let part = named("src/part.txt");
    assert_eq!(
        (&part["status"], &part["added"]),
        (&json!("added"), &json!(2))
    );
    assert_eq!(part["hunks"][0]["lines"], json!(["+a", "+b\u{1b}[31m"]));
    assert_eq!(named("src/evil\u{1b}[2J\n.txt")["added"], 1);
    assert_eq!(named("src/pipe")["leftOut"], "unreadable");
    assert_eq!(named("src/link")["newMode"], "120000");
    assert!(!diff.to_string().contains("root:"), "{diff}");
    let text = scratch.premath(["diff", "a"]).end().exits(0).stdout;
    assert!(
        text.contains("+++ b/src/part.txt\n@@ -0,0 +1,2 @@\n+a\n+b\\u{1b}[31m\n"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text}");
    let stat = scratch.premath(["diff", "a", "--stat"]).end().exits(0);
    assert!(stat.stdout.contains("A src/part.txt"), "{}", stat.stdout);
    release(&scratch, batch);
    // It landed: the same, by its commit.
    let landed = answer(&scratch, &["diff", "a"]);
    assert_eq!(landed["source"], "commit");
    assert_eq!(landed["files"][0]["path"], "src/part.txt");
}

#[test]
fn the_work_of_an_attempt_that_failed_is_shown_by_its_salvage_branch() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b"), issue("c")]);
    let work = "case $PREMATH_ISSUE_ID in a) echo x > src/a.txt;; c) ln -s /etc src/out;; esac; \
                exit 1";
    scratch.landing_batch(work, "true").end().exits(1);
    let diff = answer(&scratch, &["diff", "a"]);
    assert_eq!(diff["source"], "salvage");
    assert_eq!(diff["of"], "harness/salvage/a/1");
    assert_eq!(diff["files"][0]["path"], "src/a.txt");
    let none = scratch.premath(["diff", "b"]).end().exits(1);
    none.says("left no commit and no salvage branch");
    // What git cannot hold is named by its folder.
    let aside = scratch.premath(["diff", "c"]).end().exits(1);
    aside.says("what it left is in").says("premath-salvage/c/1");
}

#[test]
fn closed_work_that_did_not_land_is_shown_by_its_commit() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let work = "[ $PREMATH_ISSUE_ID = b ] || echo x > src/a.txt";
    scratch.batch(work, "true").end().exits(0);
    let diff = answer(&scratch, &["diff", "a"]);
    let close = scratch
        .root
        .join("artifacts/ciwitness/worker.1.a.1.mutation.json");
    let close: Value = serde_json::from_slice(&fs::read(close).unwrap()).unwrap();
    assert!(close["commit"].is_string(), "{close}");
    assert_eq!(
        (&diff["source"], &diff["of"]),
        (&json!("commit"), &close["commit"])
    );
    assert_eq!(diff["files"][0]["path"], "src/a.txt");
    let none = answer(&scratch, &["diff", "b"]);
    assert_eq!(
        (&none["of"], &none["files"]),
        (&Value::Null, &json!([])),
        "{none}"
    );
    let said = scratch.premath(["diff", "b"]).end().exits(0);
    assert_eq!(said.stdout, "no changes\n");
    assert!(
        said.stderr.contains("b closed without changes"),
        "{}",
        said.stderr
    );
}

#[test]
fn an_agents_stream_is_read_for_a_person_and_raw_on_request() {
    let (scratch, batch) = super::status::hanging("hang-tool");
    let called = || {
        let logs = scratch.premath(["logs", "a", "--json"]).end();
        let logs: Value = serde_json::from_str(&logs.stdout).ok()?;
        let mut lines = logs["lines"].as_array()?.iter();
        let call = lines.find(|line| line["kind"] == "call")?;
        Some(call["text"].as_str()?.to_owned())
    };
    let call = until(PATIENCE, called).expect("a call is shown");
    let text = scratch.premath(["logs", "a"]).end().exits(0).stdout;
    assert!(text.contains(&format!("call    {call}")), "{text}");
    assert!(!text.contains("\"type\""), "{text}");
    let raw = scratch
        .premath(["logs", "a", "--raw"])
        .end()
        .exits(0)
        .stdout;
    let first = raw.lines().nth(1).unwrap_or_default();
    assert!(serde_json::from_str::<Value>(first).is_ok(), "{raw}");
    batch.signal(Signal::INT);
    let drains =
        || (answer(&scratch, &["status"])["batches"][0]["state"] == "draining").then_some(());
    until(PATIENCE, drains).expect("the batch drains");
    batch.signal(Signal::INT);
    batch.wait().exits(130);
    scratch.no_process_left();
}
