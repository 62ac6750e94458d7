//! Ctrl-C once, Ctrl-C twice, and TERM (`contracts.md` 10).

use premath_tests::{PATIENCE, Running, Scratch, issue, until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

/// The work says that it runs, leaves something, and ends when it is instructed
/// to.
const WORK: &str = r#"echo "$PREMATH_ISSUE_ID" > src/part.txt; touch "$HOME/started"
until [ -e "$HOME/go" ]; do sleep 0.05; done"#;

fn in_the_middle() -> (Scratch, Running) {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let batch = scratch.batch(WORK, "true").start();
    let started = scratch.home().join("started");
    until(PATIENCE, || started.exists().then_some(())).expect("the work starts");
    (scratch, batch)
}

/// Sends a signal and waits until the coordinator says that it heard it.
fn interrupt(batch: &Running, signal: Signal, level: &str) {
    batch.signal(signal);
    until(PATIENCE, || {
        let heard =
            |event: &Value| event["event"] == "batch.interrupted" && event["level"] == level;
        batch.events().iter().any(heard).then_some(())
    })
    .unwrap_or_else(|| panic!("no `{level}` was heard: {}", batch.stdout()));
}

fn release(scratch: &Scratch) {
    fs::write(scratch.home().join("go"), "").unwrap();
}

#[track_caller]
fn drains(signal: Signal, code: i32) {
    let (scratch, batch) = in_the_middle();
    interrupt(&batch, signal, "drain");
    release(&scratch);
    batch.wait().exits(code);
    assert_eq!(scratch.issue("a")["status"], "closed");
    assert_eq!(
        scratch.issue("b"),
        issue("b"),
        "nothing else was dispatched"
    );
    assert_eq!(scratch.steps().len(), 1);
    assert!(scratch.file_on("lane-1", "src/part.txt").is_some());
    scratch.no_process_left();
}

#[test]
fn the_first_interrupt_lets_the_running_step_finish_and_starts_no_other() {
    drains(Signal::INT, 130);
}

#[test]
fn a_termination_drains_like_an_interrupt_with_its_own_code() {
    drains(Signal::TERM, 143);
}

#[test]
fn the_second_interrupt_ends_the_running_step_and_keeps_what_it_left() {
    let (scratch, batch) = in_the_middle();
    interrupt(&batch, Signal::INT, "drain");
    interrupt(&batch, Signal::INT, "kill");
    batch.wait().exits(130);
    let row = scratch.issue("a");
    assert_eq!(row["status"], "open");
    assert!(row.get("lease").is_none(), "{row}");
    assert_eq!(
        scratch
            .file_on("harness/salvage/a/1", "src/part.txt")
            .as_deref(),
        Some("a\n")
    );
    assert!(!scratch.lanes[0].join("src/part.txt").exists());
    assert_eq!(scratch.steps().len(), 1);
    scratch.no_process_left();
}

#[test]
fn an_interrupted_batch_continues_when_it_is_started_again() {
    let (scratch, batch) = in_the_middle();
    interrupt(&batch, Signal::INT, "drain");
    interrupt(&batch, Signal::INT, "kill");
    batch.wait().exits(130);
    for row in scratch.steps() {
        let class = "lease_released_interrupted_transport_dispatched";
        assert_eq!(row["resultClass"], class);
        assert_eq!(row["nextStep"], "claim_next");
    }
    release(&scratch);
    scratch.batch(WORK, "true").end().exits(0);
    for id in ["a", "b"] {
        assert_eq!(scratch.issue(id)["status"], "closed");
    }
}

#[test]
fn an_interrupt_ends_a_single_worker_too() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let worker = scratch
        .worker(0, "w", WORK, "true")
        .args(["--max-steps", "9"])
        .start();
    let started = scratch.home().join("started");
    until(PATIENCE, || started.exists().then_some(())).expect("the work starts");
    worker.signal(Signal::INT);
    release(&scratch);
    let ended = worker.wait().exits(130);
    assert_eq!(scratch.steps().len(), 1, "{}", ended.stderr);
    assert_eq!(scratch.issue("a")["status"], "closed");
}

#[test]
fn a_retry_counts_for_the_batch_that_was_killed_before_it() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let settings = "[backoff]\nfixed_short = \"1ms\"\nexponential_short = \"1ms\"\n";
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    let work = r#"[ ! -e "$HOME/go" ] || { echo "$PREMATH_ISSUE_ID" > src/part.txt; exit 0; }
[ "$PREMATH_ISSUE_ID" = b ] || exit 1
touch "$HOME/started"; sleep 86400"#;
    let batch = scratch.batch(work, "true").start();
    let is_over = || {
        let given_up = |step: &Value| step["retry"]["decision"] == "escalate";
        let started = scratch.home().join("started").exists();
        (started && scratch.steps_of("a").iter().any(given_up)).then_some(())
    };
    until(PATIENCE, is_over).expect("the attempts of one are used up, and the other runs");
    batch.signal(Signal::KILL);
    batch.wait();
    release(&scratch);
    scratch.premath(["retry", "a"]).end().exits(0);
    scratch.batch(work, "true").end().exits(0);
    for id in ["a", "b"] {
        assert_eq!(scratch.issue(id)["status"], "closed", "{id}");
    }
    scratch.premath(["audit"]).end().exits(0);
}
