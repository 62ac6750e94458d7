//! What a person does to the target and to issues between attempts and during them:
//! commits, checkouts, reverts, reopened issues.

use crate::adopted::{a_is_closed_and_landed, dies_at};
use crate::landing::{
    OWN, TARGET, every_close_is_on_the_target, first_parents, refs_are_accounted_for,
};
use crate::landing_settings::{checks_once, theirs};
use premath_tests::{PATIENCE, Scratch, issue, until};
use std::fs;
use std::path::Path;

/// A person's commit that contains what a step is to do.
fn the_same(scratch: &Scratch) -> String {
    theirs(scratch).replace("echo theirs >> src/theirs.txt", "echo same > src/same.txt")
}

/// Returns the messages of the commits on the target, the newest first.
fn messages(scratch: &Scratch) -> Vec<String> {
    let git = scratch.git();
    let commits = first_parents(scratch).into_iter();
    let message = |id| git.find_commit(id).unwrap().message().unwrap().to_owned();
    commits.map(message).collect()
}

/// Has a person run a line of shell in their own checkout.
fn by_hand(scratch: &Scratch, line: &str) {
    let run = scratch.run(Path::new("sh")).args(["-c", line]);
    run.end().exits(0);
}

#[test]
fn work_that_a_commit_of_theirs_holds_waits_while_the_target_is_checked_out() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let root = scratch.root.display().to_string();
    let commit = the_same(&scratch);
    let work = format!("{commit}\ngit -C '{root}' checkout -q {TARGET}; echo same > src/same.txt");
    let batch = scratch.landing_batch(&work, "true");
    let batch = batch.args(["--sandbox", "none"]).start();
    let waits = || batch.stderr().contains("work waits for that to end");
    until(PATIENCE, || waits().then_some(())).expect("work waits");
    by_hand(&scratch, &format!("git -C '{root}' checkout -q main"));
    batch.wait().exits(0);
    let steps = scratch.steps();
    assert_eq!(steps.len(), 1, "{steps:#?}");
    assert_eq!(messages(&scratch), ["theirs\n"]);
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
}

#[test]
fn a_commit_of_theirs_in_which_work_was_found_stays_where_what_is_below_fails() {
    let scratch = Scratch::with_issues(2, &["a", "b"].map(issue));
    let commit = the_same(&scratch);
    // `b` is found in a person's commit on the landing of `a`, whose check fails then.
    let work = format!(
        r#"case $PREMATH_ISSUE_ID in
a) echo a > src/a.txt ;;
b) [ -e "$HOME/theirs" ] || {{ until [ -e "$HOME/checks-a" ]; do sleep 0.02; done
     {commit}
     touch "$HOME/theirs"; }}
   echo same > src/same.txt ;;
esac"#
    );
    checks_once(
        &scratch,
        r#"touch "$HOME/checks-$PREMATH_ISSUE_ID"
[ $PREMATH_ISSUE_ID = a ] || exit 0
until [ -e "$HOME/checks-b" ]; do sleep 0.02; done; exit 1
"#,
    );
    let batch = scratch.landing_batch(&work, "true");
    batch.args(["--sandbox", "none"]).end().exits(1);
    let messages = messages(&scratch);
    assert!(messages.contains(&"theirs\n".to_owned()), "{messages:#?}");
    let same = scratch.file_on(TARGET, "src/same.txt");
    assert_eq!(same.as_deref(), Some("same\n"), "{messages:#?}");
    assert_eq!(scratch.file_on(TARGET, "src/a.txt"), None);
    assert_eq!(scratch.issue("b")["status"], "closed");
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
}

#[test]
fn landed_work_that_they_reverted_is_not_adopted() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    dies_at(&scratch, "target-advanced:1");
    let revert = "echo theirs >> src/theirs.txt && git add -A && git commit -qm theirs";
    let revert = theirs(&scratch).replace(revert, "git revert --no-edit HEAD");
    by_hand(&scratch, &revert);
    assert_eq!(scratch.file_on(TARGET, "src/a.txt"), None);
    scratch.landing_batch(OWN, "true").end().exits(0);
    a_is_closed_and_landed(&scratch);
}

#[test]
fn landed_work_whose_revert_they_reverted_is_adopted() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    dies_at(&scratch, "target-advanced:1");
    let commit = "echo theirs >> src/theirs.txt && git add -A && git commit -qm theirs";
    let reverts = "git revert --no-edit HEAD && git revert --no-edit HEAD";
    by_hand(&scratch, &theirs(&scratch).replace(commit, reverts));
    // The work is not done again.
    scratch.landing_batch("exit 1", "true").end().exits(0);
    a_is_closed_and_landed(&scratch);
}

#[test]
fn a_landing_that_is_taken_back_under_their_checkout_names_the_worktree() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let root = scratch.root.display();
    checks_once(
        &scratch,
        &format!("git -C '{root}' checkout -q {TARGET}\nexit 1\n"),
    );
    let work = format!("git -C '{root}' checkout -qf main; {OWN}");
    let batch = scratch.landing_batch(&work, "true");
    let ended = batch.args(["--sandbox", "none"]).end().exits(1);
    let events = ended.events();
    let step = events.iter().find(|event| event["event"] == "step.ended");
    let said = step.unwrap()["said"].to_string();
    assert!(said.contains("whose files still have that work"), "{said}");
    assert!(said.contains(&root.to_string()), "{said}");
    by_hand(&scratch, &format!("git -C '{root}' checkout -qf main"));
}

/// Asserts that an issue that closed and was reopened is worked on again.
fn is_worked_on_again(scratch: &Scratch) {
    let again = "echo again > src/again.txt";
    scratch.landing_batch(again, "true").end().exits(0);
    assert_eq!(scratch.issue("a")["status"], "closed");
    let found = scratch.file_on(TARGET, "src/again.txt");
    assert_eq!(found.as_deref(), Some("again\n"));
    // What it closed with before stays, and that close has its row, the first one.
    assert_eq!(scratch.file_on(TARGET, "src/a.txt").as_deref(), Some("x\n"));
    let steps = scratch.steps_of("a");
    assert_eq!(steps.len(), 2, "{steps:#?}");
    for (step, generation) in steps.iter().zip(1..) {
        assert_eq!(step["generation"], generation, "{steps:#?}");
        assert!(step["landing"]["commit"].is_string(), "{steps:#?}");
    }
    every_close_is_on_the_target(scratch);
    refs_are_accounted_for(scratch);
}

#[test]
fn an_issue_reopened_after_a_death_behind_its_close_is_worked_on_again() {
    let boundaries = ["issue-closed:1", "row-written:1"].into_iter();
    for (boundary, is_checked) in boundaries.flat_map(|at| [(at, false), (at, true)]) {
        let scratch = Scratch::with_issues(1, &[issue("a")]);
        if is_checked {
            checks_once(&scratch, "exit 0\n");
        }
        dies_at(&scratch, boundary);
        assert_eq!(scratch.issue("a")["status"], "closed", "{boundary}");
        scratch.premath(["issue", "reopen", "a"]).end().exits(0);
        is_worked_on_again(&scratch);
    }
}

#[test]
fn a_checked_landing_stays_where_its_issue_is_deleted_after_a_death() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    checks_once(&scratch, "exit 0\n");
    dies_at(&scratch, "issue-closed:1");
    let delete = ["issue", "delete", "a", "--reason", "test"];
    scratch.premath(delete).end().exits(0);
    scratch.landing_batch(OWN, "true").end().exits(0);
    for id in ["a", "b"] {
        let found = scratch.file_on(TARGET, &format!("src/{id}.txt"));
        assert_eq!(found.as_deref(), Some("x\n"), "{id}");
    }
    assert_eq!(first_parents(&scratch).len(), 2);
    refs_are_accounted_for(&scratch);
}

#[test]
fn an_issue_reopened_while_the_batch_continues_is_worked_on_again() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    checks_once(&scratch, "exit 0\n");
    dies_at(&scratch, "issue-closed:1");
    let work = r#"touch "$HOME/at-$PREMATH_ISSUE_ID"
[ $PREMATH_ISSUE_ID != b ] || until [ -e "$HOME/go" ]; do sleep 0.02; done
echo again > "src/again-$PREMATH_ISSUE_ID.txt""#;
    let batch = scratch.landing_batch(work, "true").start();
    let works = || scratch.home().join("at-b").exists().then_some(());
    until(PATIENCE, works).expect("b is worked on");
    scratch.premath(["issue", "reopen", "a"]).end().exits(0);
    fs::write(scratch.home().join("go"), "").unwrap();
    batch.wait().exits(0);
    assert_eq!(scratch.issue("a")["status"], "closed");
    let found = scratch.file_on(TARGET, "src/again-a.txt");
    assert_eq!(found.as_deref(), Some("again\n"));
    assert_eq!(scratch.file_on(TARGET, "src/a.txt").as_deref(), Some("x\n"));
    let steps = scratch.steps_of("a");
    assert_eq!(steps.len(), 2, "{steps:#?}");
    assert_eq!(steps[0]["generation"], 1, "{steps:#?}");
    assert!(steps[0]["landing"]["commit"].is_string(), "{steps:#?}");
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
}

#[test]
fn a_target_that_is_set_back_after_each_landing_is_given_up() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let root = scratch.root.display();
    let back = format!("git -C '{root}' update-ref refs/heads/{TARGET} main\n");
    checks_once(&scratch, &back);
    let batch = scratch.landing_batch(OWN, "true");
    let ended = batch.args(["--sandbox", "none"]).end().exits(1);
    // What others took off is not said to be taken back.
    assert!(!ended.stderr.contains("was reset"), "{}", ended.stderr);
    let steps = scratch.steps_of("a");
    let (moved, failed) = steps.split_at(8);
    for step in moved {
        let interrupted = serde_json::json!(["step_interrupted"]);
        assert_eq!(step["failureClasses"], interrupted, "{step:#}");
    }
    assert!(!failed.is_empty());
    for step in failed {
        let unusable = serde_json::json!(["landing_target_unusable"]);
        assert_eq!(step["failureClasses"], unusable, "{step:#}");
    }
    assert_eq!(scratch.file_on(TARGET, "src/a.txt"), None);
    refs_are_accounted_for(&scratch);
}
