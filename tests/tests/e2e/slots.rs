//! Verification slots: a lane begins its next issue in a spare worktree while
//! the work of its last one is in the landing queue.

use super::landing::{OWN, every_close_is_on_the_target, refs_are_accounted_for};
use premath_tests::{PATIENCE, Scratch, issue, until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

fn scratch(issues: &[&str], settings: &str) -> Scratch {
    let rows: Vec<Value> = issues.iter().map(|id| issue(id)).collect();
    let scratch = Scratch::with_issues(0, &rows);
    configure(&scratch, settings);
    scratch
}

fn configure(scratch: &Scratch, settings: &str) {
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
}

fn worker_of(scratch: &Scratch, id: &str) -> String {
    let steps = scratch.steps_of(id);
    assert_eq!(steps.len(), 1, "{steps:#?}");
    steps[0]["workerId"].as_str().unwrap().to_owned()
}

/// The verification of `a` ends once the work of `b` is done.
const A_WAITS_FOR_B: &str = r#"[ "$PREMATH_ISSUE_ID" = a ] || exit 0
touch "$HOME/verifying-a"
until [ -e "$HOME/worked-b" ]; do sleep 0.01; done"#;

fn working() -> String {
    format!("{OWN}\ntouch \"$HOME/worked-$PREMATH_ISSUE_ID\"")
}

#[test]
fn a_lane_begins_the_next_issue_while_its_last_work_is_verified() {
    let scratch = scratch(&["a", "b"], "[verify]\nslots = 1\n");
    scratch
        .landing_batch(&working(), A_WAITS_FOR_B)
        .args(["--lanes", "1"])
        .end()
        .exits(0);
    assert_eq!(worker_of(&scratch, "a"), "worker.1");
    assert_eq!(worker_of(&scratch, "b"), "worker.2");
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
    scratch.premath(["audit"]).end().exits(0);
    // It stays for the next batch, until it is not wanted any more.
    let spare = scratch.folder().join("repo-lanes/lane-02");
    assert!(spare.exists());
    configure(&scratch, "[verify]\nslots = 0\n");
    scratch
        .landing_batch(&working(), "true")
        .args(["--lanes", "1"])
        .end()
        .says("lane-02: removed, not needed");
    assert!(!spare.exists());
}

#[test]
fn no_more_issues_are_worked_on_than_there_are_lanes_nor_verified_than_slots() {
    let ids = ["a", "b", "c", "d", "e", "f"];
    let scratch = scratch(&ids, "[verify]\nslots = 2\n");
    // Each place is a folder, which only one command can make.
    let work = format!(
        "mkdir \"$HOME/lane\" || {{ touch \"$HOME/two-at-work\"; exit 1; }}\n{OWN}\nrmdir \"$HOME/lane\""
    );
    let verify = r#"[ -n "$PREMATH_ISSUE_ID" ] || exit 0
for slot in 1 2; do
  if mkdir "$HOME/slot-$slot" 2>/dev/null; then sleep 0.2; rmdir "$HOME/slot-$slot"; exit 0; fi
done
touch "$HOME/over-the-slots"
exit 1"#;
    scratch
        .landing_batch(&work, verify)
        .args(["--lanes", "1"])
        .end()
        .exits(0);
    for broken in ["two-at-work", "over-the-slots"] {
        assert!(!scratch.home().join(broken).exists(), "{broken}");
    }
    let mut workers: Vec<String> = ids.iter().map(|id| worker_of(&scratch, id)).collect();
    workers.sort();
    workers.dedup();
    assert!(workers.len() > 1, "{workers:?}");
    every_close_is_on_the_target(&scratch);
    scratch.premath(["audit"]).end().exits(0);
}

#[test]
fn work_that_was_in_a_spare_worktree_at_a_kill_is_taken_up_by_the_next_batch() {
    let scratch = scratch(&["a", "b"], "[verify]\nslots = 1\n");
    let verify = r#"[ "$PREMATH_ISSUE_ID" = a ] || exit 0
touch "$HOME/verifying-a"
until [ -e "$HOME/go-on" ]; do sleep 0.01; done"#;
    let batch = || {
        scratch
            .landing_batch(&working(), verify)
            .args(["--lanes", "1"])
    };
    let mut running = batch().start();
    let is_worked = || scratch.home().join("worked-b").exists().then_some(());
    until(PATIENCE, is_worked).expect("b was worked on");
    assert!(!running.is_over());
    running.signal(Signal::KILL);
    running.wait();
    scratch.no_process_within(PATIENCE);
    fs::write(scratch.home().join("go-on"), "").unwrap();
    // Without the key a spare worktree is there only for what was cut in it.
    configure(&scratch, "");
    batch().end().exits(0);
    for id in ["a", "b"] {
        assert_eq!(scratch.issue(id)["status"], "closed", "{id}");
    }
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
    scratch.premath(["audit"]).end().exits(0);
}
