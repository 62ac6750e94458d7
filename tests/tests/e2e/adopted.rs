//! Landings whose harness died before their issue closed: the next one adopts
//! them, where they are still on the target.

use crate::landing::{
    OWN, TARGET, every_close_is_on_the_target, first_parents, refs_are_accounted_for,
};
use crate::landing_settings::{Remote, checks_once, settings, theirs};
use premath_tests::{Scratch, issue};
use std::path::Path;

/// Has a harness die at a boundary.
pub(super) fn dies_at(scratch: &Scratch, boundary: &str) {
    let batch = scratch.landing_batch(OWN, "true");
    let killed = batch.env("PREMATH_KILL_AT", boundary).end();
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    scratch.no_process_left();
}

/// Has a harness land the last issue and die before it closes.
fn dies_after_landing(scratch: &Scratch, number: usize) {
    dies_at(scratch, &format!("target-advanced:{number}"));
}

/// Asserts that `a` is closed and its work is on the target.
#[track_caller]
pub(super) fn a_is_closed_and_landed(scratch: &Scratch) {
    assert_eq!(scratch.issue("a")["status"], "closed");
    assert_eq!(scratch.file_on(TARGET, "src/a.txt").as_deref(), Some("x\n"));
    every_close_is_on_the_target(scratch);
    refs_are_accounted_for(scratch);
}

#[test]
fn a_landing_that_goes_while_it_is_adopted_closes_nothing() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    dies_after_landing(&scratch, 1);
    let landed = first_parents(&scratch)[0];
    let git = scratch.git();
    let before = git.find_commit(landed).unwrap().parent_id(0).unwrap();
    // As another process takes it back that has the right to land.
    let verify = format!(
        "[ -e \"$HOME/gone\" ] || {{ touch \"$HOME/gone\"; git -C '{}' update-ref \
         refs/heads/{TARGET} {before}; }}",
        scratch.root.display()
    );
    let batch = || {
        let batch = scratch.landing_batch(OWN, &verify);
        batch.args(["--sandbox", "none"]).end()
    };
    batch();
    assert!(scratch.home().join("gone").exists());
    if scratch.issue("a")["status"] != "closed" {
        batch().exits(0);
    }
    a_is_closed_and_landed(&scratch);
}

#[test]
fn what_was_reverted_before_a_death_is_worked_on_again() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    // Another commit builds on the landed work before its check fails, once.
    let script = format!(
        "[ ! -e \"$HOME/checked\" ] || exit 0\ntouch \"$HOME/checked\"\n{}\nexit 1\n",
        theirs(&scratch)
    );
    checks_once(&scratch, &script);
    let batch = || {
        let batch = scratch.landing_batch(OWN, "true");
        batch.args(["--sandbox", "none"])
    };
    let killed = batch().env("PREMATH_KILL_AT", "landing-undone:1").end();
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    scratch.no_process_left();
    assert_eq!(scratch.file_on(TARGET, "src/a.txt"), None);
    batch().end().exits(0);
    a_is_closed_and_landed(&scratch);
}

#[test]
fn what_may_be_pushed_is_reverted_where_it_does_not_pass_again() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let remote = Remote::of(&scratch);
    settings(&scratch, "[landing]\npush = \"origin\"\n");
    dies_after_landing(&scratch, 2);
    assert_eq!(scratch.issue("a")["status"], "closed");
    let ended = scratch.landing_batch(OWN, "[ ! -e src/b.txt ]").end();
    ended.exits(1);
    assert_eq!(scratch.issue("b")["status"], "blocked");
    assert_eq!(scratch.file_on(TARGET, "src/b.txt"), None);
    assert_eq!(remote.tip(), first_parents(&scratch)[0].to_string());
    // Nothing that was pushed is gone, so that the next push is no other than any.
    scratch.premath(["issue", "add", "c"]).end().exits(0);
    scratch.landing_batch(OWN, "true").end().exits(0);
    assert_eq!(remote.tip(), first_parents(&scratch)[0].to_string());
    refs_are_accounted_for(&scratch);
}

#[test]
fn a_landing_is_not_charged_for_work_on_top_of_it_that_is_taken_off_meanwhile() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    dies_after_landing(&scratch, 1);
    let landed = first_parents(&scratch)[0];
    // The verification fails by another commit, which is taken off before it ends.
    let verify = format!(
        "[ ! -e src/theirs.txt ] || {{ git -C '{}' update-ref refs/heads/{TARGET} {landed}; exit 1; }}",
        scratch.root.display()
    );
    let batch = |verify: &str| {
        let batch = scratch.landing_batch(OWN, verify);
        batch.args(["--sandbox", "none"]).end()
    };
    let put = scratch.run(Path::new("sh")).args(["-c", &theirs(&scratch)]);
    put.end().exits(0);
    batch(&verify);
    for step in scratch.steps_of("a") {
        let classes = step["failureClasses"].to_string();
        assert!(!classes.contains("check_failed"), "{step}");
    }
    if scratch.issue("a")["status"] != "closed" {
        batch("true").exits(0);
    }
    assert_eq!(scratch.issue("a")["status"], "closed");
    assert_eq!(first_parents(&scratch)[0], landed);
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
}
