//! Two coordinators on one repository.

use crate::landing::{OWN, every_close_is_on_the_target, first_parents};
use premath_tests::{PATIENCE, Run, Scratch, issue, until};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// Runs two coordinators at once, each on two lanes of four; both end well.
pub(super) fn run_two(scratch: &Scratch, batch: impl Fn(&[PathBuf]) -> Run) {
    let [first, second] = [(0..2, "a"), (2..4, "b")].map(|(lanes, prefix)| {
        let run = batch(&scratch.lanes[lanes]);
        run.args(["--worker-prefix", prefix]).start()
    });
    first.wait().exits(0);
    second.wait().exits(0);
}

#[test]
fn two_coordinators_on_their_own_worktrees_close_every_issue_once() {
    let rows: Vec<_> = (0..24).map(|n| issue(&format!("t-{n:02}"))).collect();
    let scratch = Scratch::with_issues(4, &rows);
    let work = r#"echo x > "src/$PREMATH_ISSUE_ID.txt""#;
    run_two(&scratch, |lanes| scratch.batch_on(lanes, work, "true"));
    let steps = scratch.steps();
    assert_eq!(steps.len(), 24);
    let distinct: BTreeSet<_> = steps
        .iter()
        .map(|row| row["issueId"].as_str().unwrap())
        .collect();
    assert_eq!(distinct.len(), 24);
    for (id, row) in scratch.issues() {
        assert_eq!(row["status"], "closed");
        assert_eq!(row["lease_generation"], 1, "{id} was claimed twice");
    }
    let messages: Vec<String> = (1..=4)
        .flat_map(|lane| scratch.messages_on(&format!("lane-{lane}")))
        .collect();
    assert_eq!(messages.len(), 24);
    scratch.no_process_left();
}

#[test]
fn a_worktree_that_another_coordinator_works_in_is_left_to_it() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let work = r#"touch "$HOME/started"; until [ -e "$HOME/go" ]; do sleep 0.05; done"#;
    let first = scratch.batch(work, "true").start();
    let started = scratch.home().join("started");
    until(PATIENCE, || started.exists().then_some(())).expect("the work starts");
    let second = scratch
        .batch("echo second > src/second.txt", "true")
        .end()
        .exits(1);
    let busy = second
        .events()
        .into_iter()
        .find(|event| event["event"] == "lane.given_up")
        .expect("the lane is given up");
    assert_eq!(busy["failureClass"], "worktree_busy");
    fs::write(scratch.home().join("go"), "").unwrap();
    first.wait().exits(0);
    assert!(!scratch.lanes[0].join("src/second.txt").exists());
    for id in ["a", "b"] {
        assert_eq!(scratch.issue(id)["lease_generation"], 1);
        assert_eq!(scratch.issue(id)["status"], "closed");
    }
}

#[test]
fn two_coordinators_land_on_one_target_and_no_issue_pays_for_the_other_queue() {
    let rows: Vec<_> = (0..24).map(|n| issue(&format!("t-{n:02}"))).collect();
    let scratch = Scratch::with_issues(4, &rows);
    run_two(&scratch, |lanes| {
        scratch.landing_batch_on(lanes, OWN, "sleep 0.1")
    });
    assert_eq!(first_parents(&scratch).len(), 24);
    every_close_is_on_the_target(&scratch);
    let steps = scratch.steps();
    for row in &steps {
        assert_eq!(row["resultClass"], "completed", "{row:#}");
    }
    let workers = steps.iter().map(|row| row["workerId"].as_str().unwrap());
    let prefixes: BTreeSet<_> = workers.map(|name| &name[..1]).collect();
    assert_eq!(prefixes.len(), 2, "only one of them worked");
    for (id, row) in scratch.issues() {
        assert_eq!(row["lease_generation"], 1, "{id} was worked on twice");
    }
}
