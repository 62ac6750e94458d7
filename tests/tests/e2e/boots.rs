//! Lanes that cannot boot.

use premath_tests::{Scratch, issue};
use serde_json::Value;
use std::fs;

const FAILS_IN_THE_FIRST: &str = r#"'case "$PREMATH_WORKER_ID" in *.1) exit 1;; esac'"#;

fn configured(lanes: usize, key: &str, command: &str) -> Scratch {
    let rows: Vec<_> = (0..4).map(|n| issue(&format!("b-{n}"))).collect();
    let scratch = Scratch::with_issues(lanes, &rows);
    let text = format!("[batch]\n{key} = {command}\n");
    fs::write(scratch.root.join("harness.toml"), text).unwrap();
    scratch
}

#[track_caller]
fn the_other_lane_does_it_all(scratch: &Scratch, class: &str) {
    let ended = scratch.batch("true", "true").end().exits(1);
    let given_up = ended
        .events()
        .into_iter()
        .find(|event| event["event"] == "lane.given_up")
        .expect("a lane is given up");
    assert_eq!(given_up["failureClass"], class);
    let steps = scratch.steps();
    assert_eq!(steps.len(), 4);
    for row in steps {
        assert_eq!(row["workerId"], "worker.2");
        assert_eq!(row["resultClass"], "completed");
    }
}

#[test]
fn a_lane_whose_boot_command_fails_does_not_stop_the_others() {
    let scratch = configured(2, "boot_cmd", FAILS_IN_THE_FIRST);
    the_other_lane_does_it_all(&scratch, "hook_failed");
}

#[test]
fn a_lane_whose_startup_verification_fails_does_not_stop_the_others() {
    let scratch = configured(2, "startup_cmd", FAILS_IN_THE_FIRST);
    the_other_lane_does_it_all(&scratch, "startup_check_failed");
}

#[test]
fn a_startup_verification_that_fails_everywhere_refuses_the_batch() {
    let scratch = configured(2, "startup_cmd", "\"exit 1\"");
    let before = scratch.issue_bytes();
    scratch.batch("true", "true").end().exits(3);
    assert_eq!(scratch.steps(), Vec::<Value>::new());
    assert!(before == scratch.issue_bytes(), "issue memory was touched");
}

#[test]
fn a_worktree_without_a_commit_or_a_repository_is_refused() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let folder = scratch.folder().join("plain");
    fs::create_dir(&folder).unwrap();
    scratch.batch_on(&[folder], "true", "true").end().exits(2);
    assert_eq!(scratch.issue("a"), issue("a"));
}

#[test]
fn nothing_ready_is_a_batch_that_ended_well() {
    let mut row = issue("a");
    row["status"] = "deferred".into();
    let scratch = Scratch::with_issues(1, &[row.clone()]);
    scratch.batch("exit 1", "true").end().exits(0);
    assert_eq!(scratch.issue("a"), row);
}
