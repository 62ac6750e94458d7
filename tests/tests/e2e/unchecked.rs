//! Landings that a harness left unchecked when it died: no other issue is
//! charged for them, and none is pushed.

use crate::landing::{OWN, TARGET, every_close_is_on_the_target, refs_are_accounted_for};
use crate::landing_settings::{Remote, settings, theirs};
use premath_tests::{PATIENCE, Run, Scratch, issue, until};
use std::fs;
use std::path::{Path, PathBuf};

/// Nothing passes that contains the work of `a`.
const WITHOUT_A: &str = "[landing]\ncheck_cmd = '''\n\
     touch \"$HOME/checks-$PREMATH_ISSUE_ID\"\n\
     [ -e \"$HOME/dead\" ] || sleep 60\n\
     [ ! -e src/a.txt ]'''\n[verify]\nflaky_reruns = 0\n";

/// Where the landing of `a` is adopted after a death, its verification waits until `b`
/// is checked.
const AFTER_B: &str = "[ $PREMATH_ISSUE_ID = a ] && [ -e \"$HOME/dead\" ] || exit 0\n\
     [ ! -e \"$HOME/adopts\" ] || exit 0\n\
     touch \"$HOME/adopts\"\n\
     for i in $(seq 600); do [ ! -e \"$HOME/checks-b\" ] || exit 0; sleep 0.05; done";

/// After the death, `b` ends when the landing of `a` is adopted, or its work begins again.
const WITH_A: &str = "touch \"$HOME/begun-$PREMATH_ISSUE_ID\"\n\
     case $PREMATH_ISSUE_ID in\n\
     b) until [ -e \"$HOME/adopts\" ]; do sleep 0.02; done ;;\n\
     a) [ ! -e \"$HOME/dead\" ] || touch \"$HOME/adopts\" ;;\n\
     esac\n";

fn work() -> String {
    format!("{WITH_A}{OWN}")
}

fn is_there(scratch: &Scratch, name: &str) -> Option<()> {
    scratch.home().join(name).exists().then_some(())
}

fn await_file(scratch: &Scratch, name: &str) {
    until(PATIENCE, || is_there(scratch, name)).unwrap_or_else(|| panic!("no {name}"));
}

fn touch(scratch: &Scratch, name: &str) {
    fs::write(scratch.home().join(name), "").unwrap();
}

/// Has a harness land `a` and die before the check; returns the run of the next one.
fn left_unchecked(scratch: &Scratch) -> Run {
    let run = || scratch.landing_batch(&work(), AFTER_B);
    let killed = run().env("PREMATH_KILL_AT", "target-advanced:1").end();
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    scratch.no_process_left();
    touch(scratch, "dead");
    run()
}

/// Asserts that `b` landed and was charged for nothing, and that `a` did not land.
#[track_caller]
fn only_a_is_charged(scratch: &Scratch) {
    not_charged(scratch, "b");
    let last = scratch.steps_of("b").pop().expect("b is worked on");
    assert_eq!(last["resultClass"], "completed", "{last:#?}");
    assert_eq!(scratch.issue("a")["status"], "blocked");
    assert_eq!(scratch.file_on(TARGET, "src/a.txt"), None);
    every_close_is_on_the_target(scratch);
}

/// Asserts that no attempt failed by what another issue landed.
#[track_caller]
fn not_charged(scratch: &Scratch, id: &str) {
    for step in scratch.steps_of(id) {
        let classes = step["failureClasses"].to_string();
        assert!(!classes.contains("landing_check_failed"), "{step:#?}");
    }
}

#[test]
fn a_landing_that_another_lane_adopts_is_taken_back_before_others_land() {
    let scratch = Scratch::with_issues(3, &["a", "b"].map(issue));
    settings(&scratch, WITHOUT_A);
    let (lanes, others) = scratch.lanes.split_at(1);
    let on = |lanes: &[PathBuf], work: &str, prefix: &str| {
        let run = scratch.landing_batch_on(lanes, work, AFTER_B);
        run.args(["--worker-prefix", prefix])
    };
    // It dies when the other one has begun with `b`.
    let until_b = "until [ -e \"$HOME/begun-b\" ]; do sleep 0.02; done\n";
    let first = on(lanes, &format!("{until_b}{OWN}"), "first");
    let first = first.env("PREMATH_KILL_AT", "target-advanced:1").start();
    until(PATIENCE, || {
        (scratch.issue("a")["status"] == "in_progress").then_some(())
    })
    .expect("a is claimed");
    let second = on(others, &work(), "second").start();
    assert_eq!(first.wait().signal, Some(9));
    touch(&scratch, "dead");
    second.wait().exits(1);
    only_a_is_charged(&scratch);
    assert_eq!(scratch.steps_of("b").len(), 1);
}

#[test]
fn a_landing_below_a_persons_commit_is_reverted_before_others_land() {
    let scratch = Scratch::with_issues(2, &["a", "b"].map(issue));
    settings(&scratch, WITHOUT_A);
    let next = left_unchecked(&scratch);
    let put = scratch.run(Path::new("sh"));
    put.args(["-c", &theirs(&scratch)]).end().exits(0);
    next.end().exits(1);
    let theirs = scratch.file_on(TARGET, "src/theirs.txt");
    assert_eq!(theirs.as_deref(), Some("theirs\n"));
    let messages = scratch.messages_on(TARGET);
    let says = |message: &&String| message.contains(", which was left unchecked.");
    assert_eq!(messages.iter().filter(says).count(), 1, "{messages:#?}");
    refs_are_accounted_for(&scratch);
    only_a_is_charged(&scratch);
}

#[test]
fn one_that_cannot_be_reverted_ends_the_batch_before_others_land() {
    let scratch = Scratch::with_issues(2, &["a", "b"].map(issue));
    settings(&scratch, WITHOUT_A);
    let next = left_unchecked(&scratch);
    let theirs = theirs(&scratch).replace("theirs.txt", "a.txt");
    scratch
        .run(Path::new("sh"))
        .args(["-c", &theirs])
        .end()
        .exits(0);
    let ended = next.end().exits(1);
    assert!(
        ended.stderr.contains("was left unchecked, and stays"),
        "{ended:?}"
    );
    assert_eq!(scratch.file_on(TARGET, "src/b.txt"), None);
    not_charged(&scratch, "b");
}

#[test]
fn what_an_operator_closes_unchecked_is_taken_back_and_not_pushed() {
    let scratch = Scratch::with_issues(2, &["a", "b", "c"].map(issue));
    settings(
        &scratch,
        &WITHOUT_A.replace("[landing]", "[landing]\npush = \"origin\""),
    );
    let remote = Remote::of(&scratch);
    // `b` lands on top of `a`.
    let work = format!(
        "[ $PREMATH_ISSUE_ID = a ] || until [ -e \"$HOME/checks-a\" ]; do sleep 0.02; done\n{OWN}"
    );
    let run = || scratch.landing_batch(&work, "true");
    let killed = run().env("PREMATH_KILL_AT", "target-advanced:2").end();
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    scratch.no_process_left();
    touch(&scratch, "dead");
    let close = ["issue", "close", "b", "--reason", "done by hand"];
    scratch.premath(close).end().exits(0);
    run().end().exits(1);
    await_file(&scratch, "checks-c");
    let git = scratch.git();
    for tip in remote.tips() {
        let tree = git.revparse_single(&format!("{tip}^{{tree}}")).unwrap();
        let tree = tree.into_tree().unwrap();
        assert!(tree.get_path(Path::new("src/a.txt")).is_err(), "{tip}");
    }
    not_charged(&scratch, "c");
    assert_eq!(scratch.issue("c")["status"], "closed");
    // A close by hand proves nothing of the work; that is kept.
    for name in ["src/a.txt", "src/b.txt"] {
        assert_eq!(scratch.file_on(TARGET, name), None);
    }
    assert_eq!(scratch.issue("b")["status"], "closed");
    let kept = scratch.file_on("harness/salvage/b/1", "src/b.txt");
    assert_eq!(kept.as_deref(), Some("x\n"));
}

#[test]
fn what_a_person_takes_off_the_target_during_its_check_does_not_close() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let check = "[landing]\ncheck_cmd = '''\ntouch \"$HOME/checks\"\n\
                 until [ -e \"$HOME/go\" ]; do sleep 0.02; done'''\n";
    settings(&scratch, check);
    let batch = scratch.landing_batch(OWN, "true").start();
    await_file(&scratch, "checks");
    let target = format!("refs/heads/{TARGET}");
    let reset = scratch.git_command(["update-ref", &target, "refs/heads/main"]);
    reset.end().exits(0);
    touch(&scratch, "go");
    batch.wait();
    // It is worked on again, in this batch or in the next one, and not charged.
    scratch.landing_batch(OWN, "true").end().exits(0);
    assert_eq!(scratch.issue("a")["status"], "closed");
    assert_eq!(scratch.file_on(TARGET, "src/a.txt").as_deref(), Some("x\n"));
    for step in scratch.steps_of("a") {
        let charged = step["retry"]["attempt"].as_u64().unwrap_or(1);
        assert_eq!(charged, 1, "{step:#?}");
    }
    every_close_is_on_the_target(&scratch);
}

#[test]
fn what_a_person_reverts_during_its_check_does_not_close() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let check = "[landing]\ncheck_cmd = '''\ntouch \"$HOME/checks\"\n\
                 until [ -e \"$HOME/go\" ]; do sleep 0.02; done'''\n";
    settings(&scratch, check);
    let batch = scratch.landing_batch(OWN, "true").start();
    await_file(&scratch, "checks");
    on_the_target(&scratch, "git revert --no-edit HEAD");
    assert_eq!(scratch.file_on(TARGET, "src/a.txt"), None);
    // What they make of it themselves is theirs, and stays.
    let own = "echo theirs > src/theirs.txt && git add -A && git commit -qm own";
    on_the_target(&scratch, own);
    touch(&scratch, "go");
    batch.wait();
    scratch.landing_batch(OWN, "true").end().exits(0);
    assert_eq!(scratch.issue("a")["status"], "closed");
    assert_eq!(scratch.file_on(TARGET, "src/a.txt").as_deref(), Some("x\n"));
    assert!(scratch.file_on(TARGET, "src/theirs.txt").is_some());
    let said = scratch
        .git_command(["log", "--format=%B", TARGET])
        .end()
        .exits(0);
    assert!(!said.stdout.contains("failed the check"), "{}", said.stdout);
    not_charged(&scratch, "a");
}

/// A commit of a person keeps a landing on the target that was cancelled below it. What
/// landed between the two is not charged for the check that fails then.
#[test]
fn work_above_a_cancelled_landing_that_stays_is_not_charged() {
    let scratch = Scratch::with_issues(3, &["a", "b", "c"].map(issue));
    let check = "[landing]\ncheck_cmd = '''\ntouch \"$HOME/checks-$PREMATH_ISSUE_ID\"\n\
                 until [ -e \"$HOME/go\" ]; do sleep 0.02; done; [ ! -e src/a.txt ]'''\n\
                 [verify]\nflaky_reruns = 0\n";
    settings(&scratch, check);
    let work = format!(
        "case $PREMATH_ISSUE_ID in b) until [ -e \"$HOME/checks-a\" ]; do sleep 0.02; done;; \
         c) until [ -e \"$HOME/c-goes\" ]; do sleep 0.02; done;; esac\n{OWN}"
    );
    let batch = scratch.landing_batch(&work, "true").start();
    await_file(&scratch, "checks-a");
    await_file(&scratch, "checks-b");
    on_the_target(
        &scratch,
        "echo theirs >> src/b.txt && git commit -qam theirs",
    );
    let cancel = ["cancel", "a", "--reason", "not wanted"];
    scratch.premath(cancel).end().exits(0);
    for name in ["c-goes", "go"] {
        touch(&scratch, name);
    }
    let ended = batch.wait().exits(1);
    assert_eq!(ended.events().last().unwrap()["endedBy"], "broken_target");
    for id in ["b", "c"] {
        not_charged(&scratch, id);
        assert_ne!(scratch.issue(id)["status"], "blocked", "{id}");
    }
}

/// Commits on the target, as a person does in a worktree of their own.
fn on_the_target(scratch: &Scratch, script: &str) {
    let other = scratch.folder().join("other");
    let at = other.to_str().unwrap();
    let git = |arguments: &[&str]| scratch.git_command(arguments.iter().copied());
    git(&["worktree", "add", "-q", "--detach", at, TARGET])
        .end()
        .exits(0);
    let alias = format!("alias.theirs=!{script}");
    git(&["-c", &alias, "theirs"]).within(&other).end().exits(0);
    let target = format!("refs/heads/{TARGET}");
    git(&["update-ref", &target, "HEAD"])
        .within(&other)
        .end()
        .exits(0);
    git(&["worktree", "remove", "--force", at]).end().exits(0);
}
