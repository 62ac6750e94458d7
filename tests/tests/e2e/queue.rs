//! The landing queue: work is verified on the state that the work ahead of it
//! makes, and a failure is charged to its own issue only.

use super::landing::{OWN, TARGET, every_close_is_on_the_target, first_parents};
use premath_tests::{PATIENCE, Scratch, issue, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

/// Waits until the work of each of four issues has begun, from the same tip.
const ALL_FOUR: &str = r#"touch "$HOME/at-$PREMATH_ISSUE_ID"
for id in a b c d; do until [ -e "$HOME/at-$id" ]; do sleep 0.01; done; done"#;

/// Leaves a line for each verification of a step.
const COUNTED: &str =
    r#"[ -z "$PREMATH_ISSUE_ID" ] || echo "$PREMATH_ISSUE_ID" >> "$HOME/verifications""#;

fn verifications(scratch: &Scratch) -> Vec<String> {
    let found = fs::read_to_string(scratch.home().join("verifications")).unwrap();
    let mut found: Vec<String> = found.lines().map(str::to_owned).collect();
    found.sort();
    found
}

fn four_at_once() -> (Scratch, String) {
    let scratch = Scratch::with_issues(4, &["a", "b", "c", "d"].map(issue));
    (scratch, format!("{ALL_FOUR}\n{OWN}"))
}

#[test]
fn work_that_is_done_at_once_is_verified_once_each() {
    let (scratch, work) = four_at_once();
    scratch.landing_batch(&work, COUNTED).end().exits(0);
    assert_eq!(verifications(&scratch), ["a", "b", "c", "d"]);
    assert_eq!(first_parents(&scratch).len(), 4);
    every_close_is_on_the_target(&scratch);
    scratch.premath(["audit"]).end().exits(0);
}

#[test]
fn without_speculation_work_is_verified_by_itself_and_on_the_tip() {
    let (scratch, work) = four_at_once();
    fs::write(
        scratch.root.join("harness.toml"),
        "[landing]\nspeculation = 0\n",
    )
    .unwrap();
    scratch.landing_batch(&work, COUNTED).end().exits(0);
    // The one that lands first finds the tip where it began.
    assert_eq!(verifications(&scratch).len(), 7);
    assert_eq!(first_parents(&scratch).len(), 4);
}

#[test]
fn a_failure_ends_the_verifications_that_contain_it_and_is_charged_to_its_own_issue() {
    let scratch = Scratch::with_issues(2, &["a", "b"].map(issue));
    let work = r#"case $PREMATH_ISSUE_ID in
a) touch src/a.bad ;;
b) until [ -e "$HOME/verifying-a" ]; do sleep 0.01; done; touch src/b.txt ;;
esac"#;
    // The verification of `a` fails once that of both has begun, which never
    // ends by itself.
    let verify = r#"[ -e src/a.bad ] || exit 0
touch "$HOME/verifying-a"
[ ! -e "$HOME/b-on-a" ] || exit 1
if [ -e src/b.txt ]; then touch "$HOME/b-on-a"; sleep 86400; fi
until [ -e "$HOME/b-on-a" ]; do sleep 0.01; done
exit 1"#;
    scratch.landing_batch(work, verify).end().exits(1);
    assert_eq!(scratch.issue("a")["status"], "blocked");
    assert_eq!(scratch.issue("b")["status"], "closed");
    let steps = scratch.steps_of("b");
    assert_eq!(steps.len(), 1, "{steps:#?}");
    assert_eq!(steps[0].get("failureClasses"), None);
    let step = steps[0]["stepId"].as_str().unwrap();
    let classes = |phase: &str| {
        let path = format!("artifacts/ciwitness/{step}.{phase}.json");
        let witness = fs::read(scratch.root.join(path)).unwrap();
        let witness: Value = serde_json::from_slice(&witness).unwrap();
        witness["failureClasses"].clone()
    };
    assert_eq!(classes("verify"), json!(["verification_superseded"]));
    assert_eq!(classes("verify-2"), json!([]));
    assert_eq!(scratch.file_on(TARGET, "src/a.bad"), None);
    every_close_is_on_the_target(&scratch);
    scratch.premath(["audit"]).end().exits(0);
}

#[test]
fn time_in_which_others_are_waited_for_is_not_held_against_an_issue() {
    let scratch = Scratch::with_issues(2, &["a", "b"].map(issue));
    let settings = "[budget]\nissue_time = \"5s\"\n";
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    // The verification of `b` fails at once. It can be charged when `a` has landed,
    // whose verification takes longer than the budget.
    let work = r#"case $PREMATH_ISSUE_ID in
a) touch src/a.txt ;;
b) until [ -e "$HOME/verifying-a" ]; do sleep 0.01; done; touch src/b.txt ;;
esac"#;
    let verify = r#"[ ! -e src/b.txt ] || { touch "$HOME/failed-b"; exit 1; }
[ -e src/a.txt ] || exit 0
touch "$HOME/verifying-a"
until [ -e "$HOME/failed-b" ]; do sleep 0.01; done
sleep 7"#;
    scratch.landing_batch(work, verify).end().exits(1);
    let steps = scratch.steps_of("b");
    assert_eq!(steps.len(), 1, "{steps:#?}");
    assert_eq!(steps[0]["failureClasses"], json!(["check_failed"]));
    let waited = steps[0]["waitedMs"].as_u64().unwrap();
    assert!(waited >= 5_000, "{}", steps[0]);
}

#[test]
fn the_last_attempt_after_a_conflict_lands_before_what_became_ready_meanwhile() {
    let scratch = Scratch::with_issues(2, &["a", "b", "c"].map(issue));
    // `a` conflicts with `b`. While its last attempt works, `c` is verified,
    // with which it would conflict again.
    let work = r#"begun="$HOME/begun-$PREMATH_ISSUE_ID"
case $PREMATH_ISSUE_ID in
a) if [ -e "$begun" ]; then touch "$HOME/last-of-a"
     until [ -e "$HOME/verified-c" ]; do sleep 0.01; done; sleep 1
   else touch "$begun"; until [ -e "$HOME/verified-b" ]; do sleep 0.01; done; fi ;;
b) until [ -e "$HOME/begun-a" ]; do sleep 0.01; done ;;
c) until [ -e "$HOME/last-of-a" ]; do sleep 0.01; done ;;
esac
echo "$PREMATH_ISSUE_ID" > src/shared.txt"#;
    let verify = r#"touch "$HOME/verified-$PREMATH_ISSUE_ID""#;
    scratch.landing_batch(work, verify).end().exits(0);
    let classes = |id: &str| -> Vec<Value> {
        let steps = scratch.steps_of(id);
        let classes = steps.iter().map(|row| row["failureClasses"].clone());
        classes.collect()
    };
    let conflict = json!(["landing_conflict"]);
    assert_eq!(classes("a"), [conflict.clone(), Value::Null]);
    assert_eq!(classes("b"), [Value::Null]);
    assert_eq!(classes("c"), [conflict, Value::Null]);
    every_close_is_on_the_target(&scratch);
}

#[test]
fn a_command_cannot_claim_what_only_the_harness_finds() {
    let classes = ["landing_conflict", "landing_target_unusable", "work_unfit"];
    let scratch = Scratch::with_issues(1, &classes.map(issue));
    let work = "echo \"$PREMATH_ISSUE_ID: give way\" >&2; exit 1";
    scratch.landing_batch(work, "true").end().exits(1);
    for class in classes {
        let steps = scratch.steps_of(class);
        assert_eq!(steps.len(), 1, "{steps:#?}");
        assert_eq!(
            steps[0]["failureClasses"],
            json!(["work_failed"]),
            "{class}"
        );
    }
}

#[test]
fn the_first_conflict_is_followed_by_another_attempt_whatever_failed_before() {
    let scratch = Scratch::with_issues(2, &["a", "b"].map(issue));
    let settings = "[backoff]\nexponential_short = \"1ms\"\n";
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    // `a` fails once by itself, then conflicts with `b`.
    let work = r#"case $PREMATH_ISSUE_ID in
a) echo >> "$HOME/attempts"
   case $(wc -l < "$HOME/attempts") in
   1) exit 75 ;;
   2) touch "$HOME/second-of-a"; until [ -e "$HOME/verified-b" ]; do sleep 0.01; done ;;
   esac ;;
b) until [ -e "$HOME/second-of-a" ]; do sleep 0.01; done ;;
esac
echo "$PREMATH_ISSUE_ID" > src/shared.txt"#;
    let verify = r#"touch "$HOME/verified-$PREMATH_ISSUE_ID""#;
    scratch.landing_batch(work, verify).end().exits(0);
    let steps = scratch.steps_of("a");
    let classes: Vec<Value> = steps
        .iter()
        .map(|row| row["failureClasses"].clone())
        .collect();
    assert_eq!(
        classes,
        [
            json!(["flaky_execution"]),
            json!(["landing_conflict"]),
            Value::Null
        ]
    );
    let retry = &steps[1]["retry"];
    assert_eq!(
        (&retry["attempt"], &retry["maxAttempts"]),
        (&json!(2), &json!(3))
    );
    every_close_is_on_the_target(&scratch);
}

#[test]
fn what_waits_for_a_reservation_does_not_begin_while_a_batch_drains() {
    let scratch = Scratch::with_issues(3, &["a", "b", "c"].map(issue));
    // `a` and `b` conflict with `c`. The last attempt of one of them works while
    // that of the other one waits for its turn.
    let work = r#"begun="$HOME/begun-$PREMATH_ISSUE_ID"
case $PREMATH_ISSUE_ID in
c) until [ -e "$HOME/begun-a" ] && [ -e "$HOME/begun-b" ]; do sleep 0.01; done ;;
*) if [ -e "$begun" ]; then echo last >> "$HOME/last"
     until [ -e "$HOME/go" ]; do sleep 0.01; done
   else touch "$begun"; until [ -e "$HOME/verified-c" ]; do sleep 0.01; done; fi ;;
esac
echo "$PREMATH_ISSUE_ID" > src/shared.txt"#;
    let verify = r#"touch "$HOME/verified-$PREMATH_ISSUE_ID""#;
    let running = scratch.landing_batch(work, verify).start();
    let both_claimed = || {
        let is_second = |id: &str| scratch.issue(id)["lease_generation"] == 2;
        let works = scratch.home().join("last").exists();
        (works && is_second("a") && is_second("b")).then_some(())
    };
    until(PATIENCE, both_claimed).expect("both have their last attempt");
    running.signal(Signal::INT);
    fs::write(scratch.home().join("go"), "").unwrap();
    running.wait();
    let last = fs::read_to_string(scratch.home().join("last")).unwrap();
    assert_eq!(last, "last\n");
    let statuses = ["a", "b"].map(|id| scratch.issue(id)["status"].clone());
    assert!(statuses.contains(&json!("open")) && statuses.contains(&json!("closed")));
    every_close_is_on_the_target(&scratch);
}

#[test]
fn work_that_waited_for_a_reservation_lands_as_it_passed_where_the_reserved_work_fails() {
    let scratch = Scratch::with_issues(2, &["a", "b", "c"].map(issue));
    // `a` conflicts with `b`, and its last attempt fails. `c` passed before, and
    // is verified again on the work of `a`.
    let work = r#"begun="$HOME/begun-$PREMATH_ISSUE_ID"
case $PREMATH_ISSUE_ID in
a) if [ -e "$begun" ]; then touch "$HOME/last-of-a" src/bad
     until [ -e "$HOME/verified-c" ]; do sleep 0.01; done; sleep 0.5
   else touch "$begun"; until [ -e "$HOME/verified-b" ]; do sleep 0.01; done
     echo a > src/shared.txt; fi ;;
b) until [ -e "$HOME/begun-a" ]; do sleep 0.01; done; echo b > src/shared.txt ;;
c) until [ -e "$HOME/last-of-a" ]; do sleep 0.01; done; echo c > src/c.txt ;;
esac"#;
    let verify = r#"touch "$HOME/verified-$PREMATH_ISSUE_ID"; sleep 0.2; [ ! -e src/bad ]"#;
    scratch.landing_batch(work, verify).end().exits(1);
    assert_eq!(scratch.issue("a")["status"], "blocked");
    let steps = scratch.steps_of("c");
    assert_eq!(steps.len(), 1, "{steps:#?}");
    // Its witnesses are of two states, and the row names the one that landed.
    let witnesses = steps[0]["witnessRefs"].to_string();
    assert!(witnesses.contains("/land/"), "{witnesses}");
    every_close_is_on_the_target(&scratch);
    scratch.premath(["audit"]).end().exits(0);
}

#[test]
fn work_that_the_target_holds_already_closes_without_a_commit_of_its_own() {
    let scratch = Scratch::with_issues(2, &["a", "b"].map(issue));
    let work = r#"touch "$HOME/at-$PREMATH_ISSUE_ID"
for id in a b; do until [ -e "$HOME/at-$id" ]; do sleep 0.01; done; done
echo same > src/same.txt"#;
    scratch.landing_batch(work, "true").end().exits(0);
    assert_eq!(first_parents(&scratch).len(), 1);
    every_close_is_on_the_target(&scratch);
    scratch.premath(["audit"]).end().exits(0);
}
