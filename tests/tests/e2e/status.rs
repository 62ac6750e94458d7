//! `premath status` of a batch that runs, that ended, and that was cut.

use super::misbehaviour::{command_line, titled};
use premath_evidence::Agent;
use premath_tests::{NO_STARTUP, PATIENCE, Running, Scratch, binaries, issue, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

/// The work says that it runs, and ends when it is instructed to.
const WORK: &str = r#"echo "$PREMATH_ISSUE_ID" > src/part.txt; touch "$HOME/started"
until [ -e "$HOME/go" ]; do sleep 0.05; done"#;

fn status(scratch: &Scratch) -> Value {
    scratch.premath(["status", "--json"]).end().exits(0).json()
}

/// Waits until the status is as it should be.
#[track_caller]
fn awaited(scratch: &Scratch, is_so: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    let seen = until(PATIENCE, || {
        last = status(scratch);
        is_so(&last).then(|| last.clone())
    });
    seen.unwrap_or_else(|| panic!("the status is {last:#}"))
}

fn attempt(status: &Value) -> &Value {
    &status["batches"][0]["lanes"][0]["attempt"]
}

fn in_the_middle() -> (Scratch, Running) {
    let mut last = issue("c");
    last["dependencies"] = json!([{"issue_id": "c", "depends_on_id": "a", "type": "blocks"}]);
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b"), last]);
    let batch = scratch.batch(WORK, "true").start();
    let started = scratch.home().join("started");
    until(PATIENCE, || started.exists().then_some(())).expect("the work starts");
    (scratch, batch)
}

#[test]
fn a_running_batch_says_what_its_lanes_do_and_an_ended_one_how_it_ended() {
    let (scratch, batch) = in_the_middle();
    let seen = awaited(&scratch, |status| {
        attempt(status)["command"] == "work" && status["queue"]["inProgress"] == 1
    });
    assert_eq!(seen["running"], true);
    let lane = &seen["batches"][0]["lanes"][0];
    assert_eq!(lane["state"], "working");
    let attempt = attempt(&seen);
    assert_eq!(attempt["issueId"], "a");
    assert_eq!(attempt["phase"], "working");
    assert_eq!(attempt["number"], 1);
    // What a plain command uses is not known.
    assert_eq!(attempt["calls"], Value::Null);
    assert_eq!(
        attempt["used"],
        json!({"tokens": null, "costNanoUsd": null})
    );
    let queue = &seen["queue"];
    assert_eq!((&queue["ready"], &queue["waiting"]), (&json!(1), &json!(1)));
    assert_eq!(queue["blockers"], json!([{"issueId": "a", "holds": 1}]));
    let text = scratch.premath(["status", "--width", "80"]).end().exits(0);
    assert!(
        text.stdout.contains("worker.1  a      working"),
        "{}",
        text.stdout
    );
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80));
    fs::write(scratch.home().join("go"), "").unwrap();
    batch.wait().exits(0);
    let ended = status(&scratch);
    assert_eq!(ended["running"], false);
    let batch = &ended["batches"][0];
    assert_eq!(
        (&batch["state"], &batch["exitCode"]),
        (&json!("ended"), &json!(0))
    );
    assert_eq!(batch["totals"]["closed"], 3);
    assert_eq!(batch["outcomes"].as_array().unwrap().len(), 3);
    assert_eq!(ended["queue"]["closed"], 3);
    assert_eq!(ended["queue"]["total"], 3);
    // Another store is counted again.
    scratch.premath(["issue", "add", "another"]).end().exits(0);
    assert_eq!(status(&scratch)["queue"]["ready"], 1);
}

#[test]
fn a_batch_that_ended_says_what_it_gave_up_and_what_the_next_one_takes() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let work = r#"[ "$PREMATH_ISSUE_ID" != a ]"#;
    scratch.batch(work, "true").end().exits(1);
    let ended = status(&scratch);
    assert_eq!(ended["batches"][0]["totals"]["givenUp"], 1, "{ended:#}");
    let queue = &ended["queue"];
    assert_eq!(queue["closed"], 1, "{queue:#}");
    assert_eq!(queue["leftOut"], 0, "{queue:#}");
    assert!(queue["ready"].as_u64() >= Some(1), "{queue:#}");
}

#[test]
fn a_batch_whose_process_was_killed_is_cut_and_one_that_continues_it_runs() {
    let (scratch, batch) = in_the_middle();
    awaited(&scratch, |status| attempt(status)["command"] == "work");
    batch.signal(Signal::KILL);
    let _ = batch.wait();
    let cut = status(&scratch);
    assert_eq!(
        (&cut["running"], &cut["batches"][0]["state"]),
        (&json!(false), &json!("cut"))
    );
    fs::write(scratch.home().join("go"), "").unwrap();
    scratch.batch(WORK, "true").end().exits(0);
    let ended = status(&scratch);
    assert_eq!(ended["batches"][0]["batchId"], cut["batches"][0]["batchId"]);
    assert_eq!(ended["batches"][0]["state"], "ended");
    scratch.no_process_left();
}

/// A batch whose agent, in the format of Claude Code, hangs in a call.
pub(crate) fn hanging(title: &str) -> (Scratch, Running) {
    let scratch = Scratch::with_issues(1, &[titled("a", title, 1)]);
    let settings = format!(
        "[agent]\nuse = [\"claude\"]\nclaude_cmd = '''{}'''\n[supervision]\ngrace = \"1s\"\n",
        command_line(Agent::Claude, "")
    );
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    let batch = scratch
        .run(&binaries().coordinator)
        .args([
            "--json",
            "--override-reason",
            "test",
            "--verify-cmd",
            "true",
        ])
        .args(NO_STARTUP)
        .arg("--worktree")
        .arg(&scratch.lanes[0])
        .start();
    (scratch, batch)
}

#[test]
fn an_agent_is_seen_in_its_call() {
    let (scratch, batch) = hanging("hang-tool \u{1b}[2J");
    let seen = awaited(&scratch, |status| attempt(status)["agent"] == "calling");
    let attempt = attempt(&seen);
    assert!(attempt["calls"].as_u64().unwrap() >= 1, "{attempt}");
    assert!(attempt["lastTool"].is_string(), "{attempt}");
    assert!(attempt["silentMs"].is_u64(), "{attempt}");
    assert_eq!(attempt["provider"], "claude");
    let text = scratch.premath(["status"]).end().exits(0).stdout;
    assert!(
        !text.contains('\u{1b}') && text.contains("\\u{1b}[2J"),
        "{text}"
    );
    batch.signal(Signal::INT);
    awaited(&scratch, |status| {
        status["batches"][0]["state"] == "draining"
    });
    batch.signal(Signal::INT);
    batch.wait().exits(130);
    scratch.no_process_left();
}

fn kinds(scratch: &Scratch, id: &str) -> Vec<String> {
    let why = scratch.premath(["why", id, "--json"]).end().exits(0).json();
    let reasons = why["reasons"].as_array().unwrap().iter();
    reasons
        .map(|reason| reason["kind"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn why_names_what_an_issue_waits_for_and_how_its_last_attempt_failed() {
    let (scratch, batch) = in_the_middle();
    awaited(&scratch, |status| attempt(status)["command"] == "work");
    assert_eq!(kinds(&scratch, "a"), ["running"]);
    assert_eq!(kinds(&scratch, "b"), ["ready"]);
    assert_eq!(kinds(&scratch, "c"), ["held"]);
    batch.signal(Signal::INT);
    awaited(&scratch, |status| {
        status["batches"][0]["state"] == "draining"
    });
    assert_eq!(kinds(&scratch, "b"), ["draining"]);
    fs::write(scratch.home().join("go"), "").unwrap();
    batch.wait().exits(130);
    assert_eq!(kinds(&scratch, "a"), ["closed"]);
    assert_eq!(kinds(&scratch, "b"), ["no_batch"]);
    scratch.batch("echo no >&2; false", "true").end().exits(1);
    let text = scratch.premath(["why", "b"]).end().exits(0).stdout;
    assert!(
        text.contains("its last attempt failed\n  work_failed: "),
        "{text}"
    );
    scratch.premath(["why", "nowhere"]).end().exits(1);
}
