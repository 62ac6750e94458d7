//! The check after a landing, while other work lands on top.

use crate::landing::{
    OWN, TARGET, every_close_is_on_the_target, first_parents, refs_are_accounted_for,
};
use crate::together::run_two;
use premath_tests::{PATIENCE, Run, Scratch, issue, until};
use serde_json::{Value, json};
use std::fs;

/// Says that the check of an issue runs, and waits for a sign.
const CHECK: &str = r#"touch "$HOME/checks-$PREMATH_ISSUE_ID"
until [ -e "$HOME/go" ]; do sleep 0.02; done"#;

fn scratch(check: &str) -> Scratch {
    let scratch = Scratch::with_issues(3, &[issue("a"), issue("b"), issue("c")]);
    let text = format!("[landing]\ncheck_cmd = '''{check}'''\n");
    fs::write(scratch.root.join("harness.toml"), text).unwrap();
    scratch
}

fn batch(scratch: &Scratch) -> Run {
    scratch.landing_batch(OWN, "true")
}

fn is_there(scratch: &Scratch, name: &str) -> bool {
    scratch.home().join(name).exists()
}

/// Waits until the checks of all issues run.
fn all_are_checked(scratch: &Scratch) {
    let names = ["checks-a", "checks-b", "checks-c"];
    let run = || {
        names
            .iter()
            .all(|name| is_there(scratch, name))
            .then_some(())
    };
    until(PATIENCE, run).expect("all checks run at once");
}

fn every_issue_closed(scratch: &Scratch) {
    for (id, row) in scratch.issues() {
        assert_eq!(row["status"], "closed", "{id}");
    }
    every_close_is_on_the_target(scratch);
    refs_are_accounted_for(scratch);
}

#[test]
fn other_work_lands_while_a_check_runs_and_closes_after_it() {
    let scratch = scratch(CHECK);
    let running = batch(&scratch).start();
    all_are_checked(&scratch);
    assert_eq!(first_parents(&scratch).len(), 3);
    for (id, row) in scratch.issues() {
        assert_ne!(row["status"], "closed", "{id} closed before its check");
    }
    let audit = scratch.premath(["audit"]).end().exits(0);
    audit.says("has not closed its issue yet");
    fs::write(scratch.home().join("go"), "").unwrap();
    running.wait().exits(0);
    every_issue_closed(&scratch);
    // Issues close in the order in which they landed.
    let closed = scratch.steps().into_iter();
    let closed: Vec<Value> = closed
        .map(|step| step["landing"]["commit"].clone())
        .collect();
    assert_eq!(first_parents(&scratch).len(), 3);
    assert_eq!(closed.len(), 3);
    let closes: Vec<String> = {
        let mut rows: Vec<_> = scratch.issues().into_values().collect();
        rows.sort_by_key(|row| row["closed_at"].as_str().unwrap().to_owned());
        let id = |row: Value| row["id"].as_str().unwrap().to_owned();
        rows.into_iter().map(id).collect()
    };
    let landed: Vec<String> = first_parents(&scratch)
        .into_iter()
        .rev()
        .map(|commit| {
            let git = scratch.git();
            let commit = git.find_commit(commit).unwrap();
            let summary = commit.summary().unwrap().unwrap();
            summary.split(':').next().unwrap().to_owned()
        })
        .collect();
    assert_eq!(closes, landed);
}

#[test]
fn a_check_that_passes_when_repeated_is_flaky_and_takes_nothing_back() {
    let scratch = scratch(
        r#"[ -e "$HOME/seen-$PREMATH_ISSUE_ID" ] || { touch "$HOME/seen-$PREMATH_ISSUE_ID"; exit 1; }"#,
    );
    batch(&scratch).end().exits(0);
    every_issue_closed(&scratch);
    for id in ["a", "b", "c"] {
        let steps = scratch.steps_of(id);
        assert_eq!(steps.len(), 1, "{steps:#?}");
        let step = steps[0]["stepId"].as_str().unwrap();
        let flaky = steps[0]["flakyRefs"].as_array().unwrap();
        assert_eq!(flaky.len(), 1, "{flaky:?}");
        let of_check = format!("ciwitness://{step}/landed/");
        assert!(flaky[0].as_str().unwrap().starts_with(&of_check));
    }
    scratch.premath(["audit"]).end().exits(0);
}

#[test]
fn no_more_checks_and_verifications_run_than_there_are_slots() {
    let counted = r#"mkdir "$HOME/runs-$$" && set -- "$HOME"/runs-*
[ $# -le 1 ] || touch "$HOME/together"
sleep 0.1; rmdir "$HOME/runs-$$""#;
    let scratch = scratch(counted);
    let file = scratch.root.join("harness.toml");
    let text = fs::read_to_string(&file).unwrap() + "[verify]\nslots = 1\n";
    fs::write(file, text).unwrap();
    let verify = format!("[ -z \"$PREMATH_ISSUE_ID\" ] || {{ {counted}; }}");
    scratch.landing_batch(OWN, &verify).end().exits(0);
    every_issue_closed(&scratch);
    assert!(!is_there(&scratch, "together"));
}

#[test]
fn without_speculation_nothing_lands_while_a_check_runs() {
    let check = r#"[ ! -e "$HOME/checks" ] || exit 1
touch "$HOME/checks"; sleep 0.3; rm "$HOME/checks""#;
    let scratch = scratch(check);
    let file = scratch.root.join("harness.toml");
    let text = fs::read_to_string(&file).unwrap() + "speculation = 0\n";
    fs::write(file, text).unwrap();
    batch(&scratch).end().exits(0);
    every_issue_closed(&scratch);
}

#[test]
fn what_landed_on_work_that_fails_its_check_lands_again_and_is_not_charged() {
    // What contains the work of `a` fails, once everything has landed.
    let check = format!("{CHECK}\n[ ! -e src/a.txt ]");
    let scratch = scratch(&check);
    let work = format!(
        "[ $PREMATH_ISSUE_ID = a ] || until [ -e \"$HOME/checks-a\" ]; do sleep 0.02; done\n{OWN}"
    );
    let running = scratch.landing_batch(&work, "true").start();
    all_are_checked(&scratch);
    assert_eq!(first_parents(&scratch).len(), 3);
    fs::write(scratch.home().join("go"), "").unwrap();
    let ended = running.wait().exits(1);
    assert_eq!(scratch.issue("a")["status"], "blocked");
    for step in scratch.steps_of("a") {
        assert_eq!(step["failureClasses"], json!(["landing_check_failed"]));
    }
    for id in ["b", "c"] {
        assert_eq!(scratch.issue(id)["status"], "closed");
        let steps = scratch.steps_of(id);
        assert_eq!(steps.len(), 1, "{id} was charged: {steps:?}");
    }
    assert!(ended.stdout.contains("was reset to the commit before it"));
    assert_eq!(scratch.file_on(TARGET, "src/a.txt"), None);
    assert_eq!(first_parents(&scratch).len(), 2);
    let salvage = scratch.file_on("harness/salvage/a/1", "src/a.txt");
    assert_eq!(salvage.as_deref(), Some("x\n"));
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
}

#[test]
fn time_in_which_the_check_of_other_work_is_waited_for_counts_once() {
    let check = "[ $PREMATH_ISSUE_ID != a ] || { touch \"$HOME/checks-a\"; \
                 until [ -e \"$HOME/go\" ]; do sleep 0.02; done; }\n\
                 touch \"$HOME/checked-$PREMATH_ISSUE_ID\"; [ ! -e src/a.txt ]";
    let scratch = Scratch::with_issues(2, &["a", "b"].map(issue));
    let text = format!("[landing]\ncheck_cmd = '''\n{check}'''\n[verify]\nflaky_reruns = 0\n");
    fs::write(scratch.root.join("harness.toml"), text).unwrap();
    let work = format!(
        "[ $PREMATH_ISSUE_ID = a ] || until [ -e \"$HOME/checks-a\" ]; do sleep 0.02; done\n{OWN}"
    );
    let running = scratch.landing_batch(&work, "true").start();
    let is_there = || scratch.home().join("checked-b").exists().then_some(());
    until(PATIENCE, is_there).expect("b is not checked");
    // It waits for longer than it does anything else.
    std::thread::sleep(std::time::Duration::from_secs(3));
    fs::write(scratch.home().join("go"), "").unwrap();
    running.wait().exits(1);
    let steps = scratch.steps_of("b");
    assert_eq!(steps.len(), 1, "{steps:#?}");
    let at = |name: &str| {
        let text = steps[0][name].as_str().unwrap();
        text.parse::<jiff::Timestamp>().unwrap().as_millisecond()
    };
    let waited = steps[0]["waitedMs"].as_i64().unwrap();
    let took = at("finishedAt") - at("startedAt");
    assert!((2_000..=took).contains(&waited), "{waited} ms of {took} ms");
}

#[test]
fn landings_that_a_death_left_unchecked_converge() {
    for at in [
        "target-advanced:2",
        "target-advanced:3",
        "landing-checked:1",
    ] {
        let scratch = scratch(CHECK);
        let killed = batch(&scratch).env("PREMATH_KILL_AT", at).start();
        if at.starts_with("landing") {
            all_are_checked(&scratch);
            fs::write(scratch.home().join("go"), "").unwrap();
        }
        let killed = killed.wait();
        assert_eq!(killed.signal, Some(9), "{at}: {killed:?}");
        scratch.no_process_left();
        let issues = scratch.issues().into_iter();
        let open: Vec<String> = issues
            .filter(|(_, row)| row["status"] != "closed")
            .map(|(id, _)| id)
            .collect();
        fs::write(scratch.home().join("go"), "").unwrap();
        batch(&scratch).end().exits(0);
        every_issue_closed(&scratch);
        // What was taken back is kept, as all work of attempts that were cut.
        for id in open {
            let salvage =
                scratch.file_on(&format!("harness/salvage/{id}/1"), &format!("src/{id}.txt"));
            assert_eq!(salvage.as_deref(), Some("x\n"), "{at}: {id}");
        }
        let messages: Vec<String> = scratch.messages_on(TARGET);
        assert_eq!(messages.len(), 3, "{at}: {messages:?}");
    }
}

#[test]
fn a_killed_batch_charges_no_issue_for_work_that_landed_below_it() {
    // Nothing passes that contains the work of `a`.
    let check = format!("{CHECK}\n[ ! -e src/a.txt ]");
    let scratch = scratch(&check);
    let work = format!(
        "[ $PREMATH_ISSUE_ID = a ] || until [ -e \"$HOME/checks-a\" ]; do sleep 0.02; done\n{OWN}"
    );
    let run = || scratch.landing_batch(&work, "true");
    let killed = run().env("PREMATH_KILL_AT", "target-advanced:3").end();
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    scratch.no_process_left();
    fs::write(scratch.home().join("go"), "").unwrap();
    run().end().exits(1);
    assert_eq!(scratch.issue("a")["status"], "blocked");
    for id in ["b", "c"] {
        assert_eq!(scratch.issue(id)["status"], "closed");
        for step in scratch.steps_of(id) {
            let classes = &step["failureClasses"];
            assert_ne!(*classes, json!(["landing_check_failed"]), "{step}");
        }
    }
    assert_eq!(scratch.file_on(TARGET, "src/a.txt"), None);
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
}

#[test]
fn work_of_a_dead_process_is_taken_back_before_another_one_lands() {
    let scratch = Scratch::with_issues(2, &["a", "b"].map(issue));
    // Nothing passes that contains the work of `a`.
    let text = "[landing]\ncheck_cmd = \"[ ! -e src/a.txt ]\"\n[verify]\nflaky_reruns = 0\n";
    fs::write(scratch.root.join("harness.toml"), text).unwrap();
    let work = format!(
        "touch \"$HOME/begun-$PREMATH_ISSUE_ID\"\n\
         other=\"$HOME/$([ $PREMATH_ISSUE_ID = a ] && echo begun-b || echo dead)\"\n\
         until [ -e \"$other\" ]; do sleep 0.02; done\n{OWN}"
    );
    let on = |lane: usize, prefix: &str| {
        let run = scratch.landing_batch_on(&scratch.lanes[lane..=lane], &work, "true");
        run.args(["--worker-prefix", prefix])
    };
    let first = on(0, "a").env("PREMATH_KILL_AT", "target-advanced:1");
    let first = first.start();
    let has_begun = || is_there(&scratch, "begun-a").then_some(());
    until(PATIENCE, has_begun).expect("the work of a begins");
    let second = on(1, "b").start();
    assert_eq!(first.wait().signal, Some(9));
    assert_eq!(first_parents(&scratch).len(), 1);
    fs::write(scratch.home().join("dead"), "").unwrap();
    second.wait().exits(1);
    let steps = scratch.steps_of("b");
    assert_eq!(steps.len(), 1, "{steps:#?}");
    assert_eq!(steps[0]["resultClass"], "completed", "{steps:#?}");
    assert_eq!(scratch.issue("a")["status"], "blocked");
    every_close_is_on_the_target(&scratch);
}

#[test]
fn what_an_operator_closes_is_not_built_upon_before_its_check() {
    let scratch = scratch(&format!("{CHECK}\n[ ! -e src/a.txt ]"));
    let file = scratch.root.join("harness.toml");
    let text = fs::read_to_string(&file).unwrap();
    let backoff = "[backoff]\nfixed_short = \"1ms\"\nexponential_short = \"1ms\"\n";
    fs::write(file, text + backoff).unwrap();
    // The second attempt at `b` begins when `a` was closed.
    let work = format!(
        r#"case $PREMATH_ISSUE_ID in
b) if [ ! -e "$HOME/b-tried" ]; then
    touch "$HOME/b-tried"; until [ -e "$HOME/closed" ]; do sleep 0.02; done; exit 75
  fi
  [ ! -e src/a.txt ] || touch "$HOME/b-has-a"
  touch "$HOME/b-works" ;;
esac
{OWN}"#
    );
    let running = scratch.landing_batch(&work, "true").start();
    let wait = |name: &str| {
        until(PATIENCE, || is_there(&scratch, name).then_some(())).expect(name);
    };
    wait("checks-a");
    wait("b-tried");
    let close = ["issue", "close", "a", "--reason", "done by hand"];
    scratch.premath(close).end().exits(0);
    fs::write(scratch.home().join("closed"), "").unwrap();
    wait("b-works");
    fs::write(scratch.home().join("go"), "").unwrap();
    running.wait();
    assert!(!is_there(&scratch, "b-has-a"));
    assert_eq!(scratch.issue("b")["status"], "closed");
    assert_eq!(scratch.file_on(TARGET, "src/a.txt"), None);
    assert_eq!(scratch.file_on(TARGET, "src/b.txt").as_deref(), Some("x\n"));
}

#[test]
fn two_coordinators_with_checks_let_each_other_land() {
    let rows: Vec<_> = (0..12).map(|n| issue(&format!("t-{n:02}"))).collect();
    let scratch = Scratch::with_issues(4, &rows);
    let text = "[landing]\ncheck_cmd = \"sleep 0.2\"\n";
    fs::write(scratch.root.join("harness.toml"), text).unwrap();
    run_two(&scratch, |lanes| {
        scratch.landing_batch_on(lanes, OWN, "true")
    });
    assert_eq!(first_parents(&scratch).len(), 12);
    every_issue_closed(&scratch);
}
