//! Lanes that cannot boot.

use premath_tests::{Ended, NO_CHANGE, Scratch, binaries, issue};
use serde_json::{Value, json};
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

/// Counts the runs of the verification.
const COUNTED: &str = r#"echo run >> "$HOME/runs""#;

fn runs(scratch: &Scratch) -> usize {
    let text = fs::read_to_string(scratch.home().join("runs"));
    text.map_or(0, |text| text.lines().count())
}

#[test]
fn a_base_that_fails_the_verification_refuses_the_batch_before_the_first_step() {
    let scratch = Scratch::with_issues(2, &[issue("a"), issue("b")]);
    let before = scratch.issue_bytes();
    let verify = format!("{COUNTED}; echo 'two is three' >&2; test -e src/$PREMATH_ISSUE_ID.txt");
    let work = "echo x > src/$PREMATH_ISSUE_ID.txt";
    let refused = scratch.default_batch(work, &verify).end().exits(3);
    let given_up = refused
        .events()
        .into_iter()
        .filter(|event| event["event"] == "lane.given_up");
    let given_up: Vec<Value> = given_up.collect();
    assert_eq!(given_up.len(), 2);
    for event in given_up {
        assert_eq!(event["failureClass"], "startup_check_failed");
        let hint = event["hint"].as_str().unwrap();
        assert!(
            hint.contains("set `startup = \"off\"` under [verify]"),
            "{hint}"
        );
    }
    assert_eq!(scratch.steps(), Vec::<Value>::new());
    assert!(before == scratch.issue_bytes(), "issue memory was touched");
    // Once for all lanes, and once more because a failure is repeated.
    assert_eq!(runs(&scratch), 2);

    let text = "[verify]\nstartup = \"off\"\n";
    fs::write(scratch.root.join("harness.toml"), text).unwrap();
    scratch.default_batch(work, &verify).end().exits(0);
    for id in ["a", "b"] {
        assert_eq!(scratch.issue(id)["status"], "closed");
    }
}

/// Returns the detail and the hint of the first lane that was given up.
#[track_caller]
fn given_up(ended: &Ended) -> (String, String) {
    let mut events = ended.events().into_iter();
    let event = events.find(|event| event["event"] == "lane.given_up");
    let event = event.expect("a lane is given up");
    let text = |key: &str| event[key].as_str().unwrap().to_owned();
    (text("detail"), text("hint"))
}

#[test]
fn a_red_base_is_reported_with_the_verify_command_and_its_last_line() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let verify = "echo one; echo base-is-red; exit 1";
    let refused = scratch.default_batch("true", verify).end().exits(3);
    let (detail, hint) = given_up(&refused);
    assert_eq!(detail, "the verify command failed: base-is-red");
    let output = hint.strip_prefix("output: ").unwrap();
    let (output, _) = output.split_once("; it fails before any work").unwrap();
    assert!(output.ends_with(".startup.stdout"), "{hint}");
    assert_eq!(fs::read_to_string(output).unwrap(), "one\nbase-is-red\n");
}

#[test]
fn a_startup_command_without_output_is_reported_by_its_exit_code() {
    let scratch = configured(1, "startup_cmd", "\"exit 4\"");
    let refused = scratch.batch("true", "true").end().exits(3);
    let (detail, hint) = given_up(&refused);
    assert_eq!(detail, "the startup command failed: exit code 4, no output");
    assert!(hint.starts_with("it fails before any work"), "{hint}");
}

#[test]
fn a_base_is_verified_once_for_all_lanes() {
    let scratch = Scratch::with_issues(2, &[issue("a"), issue("b")]);
    let verify = format!("[ -n \"$PREMATH_ISSUE_ID\" ] || {COUNTED}");
    let work = "echo x > src/$PREMATH_ISSUE_ID.txt";
    scratch.default_batch(work, &verify).end().exits(0);
    assert_eq!(runs(&scratch), 1);
    // Nothing is left to work on: nothing is verified.
    scratch.default_batch(work, &verify).end().exits(0);
    assert_eq!(runs(&scratch), 1);
}

#[test]
fn a_lane_shows_what_the_session_before_left_and_the_next_issue() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let work = r#"cp "$PREMATH_PROMPT_FILE" "$HOME/prompt-$PREMATH_ISSUE_ID"
[ $PREMATH_ISSUE_ID = b ] || echo x > src/a.txt"#;
    let batch = || {
        scratch
            .run(&binaries().coordinator)
            .args(["--override-reason", "test", "--landing", "none"])
            .args(["--work-cmd", work, "--verify-cmd", "true"])
            .args(NO_CHANGE)
            .arg("--worktree")
            .arg(&scratch.lanes[0])
    };
    let first = batch().args(["--rounds", "1"]);
    first.end().exits(0).says("; next issue: a");
    batch()
        .end()
        .exits(0)
        .says("; last session: closed a; next issue: b");
    let prompt =
        |id: &str| fs::read_to_string(scratch.home().join(format!("prompt-{id}"))).unwrap();
    let line = |session: &str| format!("The last session in this worktree: {session}\n");
    assert!(prompt("a").contains(&line("(none)")), "{}", prompt("a"));
    assert!(prompt("b").contains(&line("closed a")), "{}", prompt("b"));
}

#[test]
fn a_lane_names_only_an_issue_that_its_worker_may_claim() {
    let theirs = json!({"id": "a", "title": "a", "status": "open", "assignee": "somebody"});
    let scratch = Scratch::with_issues(1, &[theirs, issue("b")]);
    let next = || {
        let events = scratch.batch("true", "true").end().exits(0).events();
        let booted = events
            .into_iter()
            .find(|event| event["event"] == "lane.booted");
        booted.unwrap()["nextTarget"].clone()
    };
    assert_eq!(next(), "b");
    assert_eq!(next(), Value::Null);
    assert_eq!(scratch.issue("a")["status"], "open");
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
