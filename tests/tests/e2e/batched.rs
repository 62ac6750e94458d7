//! Work that is verified as one (`batch`): only the last of a run has a
//! verification, and a failure is still charged to its own issue only.

use super::landing::{
    OWN, TARGET, every_close_is_on_the_target, first_parents, refs_are_accounted_for,
};
use premath_kernel::record::trailers::LandingTrailers;
use premath_tests::{Ended, Run, Scratch, issue};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

const IDS: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

/// All begin at one tip. The others are done while `a` is verified.
const WORK: &str = r#"touch "$HOME/at-$PREMATH_ISSUE_ID"
for id in a b c d e f g; do until [ -e "$HOME/at-$id" ]; do sleep 0.01; done; done
[ $PREMATH_ISSUE_ID = a ] || until [ -e "$HOME/verifying-a" ]; do sleep 0.01; done
touch "$HOME/done-$PREMATH_ISSUE_ID""#;

/// Leaves a line for each verification. That of `a` ends when the others are in
/// the queue: they join right after their work.
const VERIFY: &str = r#"[ -n "$PREMATH_ISSUE_ID" ] || exit 0
echo "$PREMATH_ISSUE_ID" >> "$HOME/verifications"
if [ $PREMATH_ISSUE_ID = a ] && [ ! -e "$HOME/verifying-a" ]; then
  touch "$HOME/verifying-a"
  for id in b c d e f g; do until [ -e "$HOME/done-$id" ]; do sleep 0.01; done; done
  sleep 5
fi
[ ! -e src/red ]"#;

/// Makes seven issues, of which the last six become ready at once.
pub(super) fn seven(settings: &str) -> Scratch {
    let scratch = Scratch::with_issues(7, &IDS.map(issue));
    let text = format!(
        "[landing]\nbatch = 3\n{settings}[verify]\nslots = 1\nflaky_reruns = 0\n[backoff]\nexponential_short = \"1ms\"\n"
    );
    fs::write(scratch.root.join("harness.toml"), text).unwrap();
    scratch
}

/// Makes the batch, in which the work of an issue is red.
pub(super) fn batch(scratch: &Scratch, red: &str) -> Run {
    let work = format!("{WORK}\n{OWN}\n[ $PREMATH_ISSUE_ID != '{red}' ] || touch src/red");
    scratch.landing_batch(&work, VERIFY)
}

fn verifications(scratch: &Scratch) -> Vec<String> {
    let found = fs::read_to_string(scratch.home().join("verifications")).unwrap();
    found.lines().map(str::to_owned).collect()
}

/// The issues that landed, the oldest first, with their trailers and the tree of
/// their commit.
fn landed(scratch: &Scratch) -> Vec<(String, LandingTrailers, String)> {
    let git = scratch.git();
    let commits = first_parents(scratch).into_iter().rev();
    let read = commits.map(|id| {
        let commit = git.find_commit(id).unwrap();
        let trailers = LandingTrailers::parse(commit.message().unwrap());
        let trailers = trailers.unwrap().unwrap();
        let tree = commit.tree_id().to_string();
        (trailers.issue.to_string(), trailers, tree)
    });
    read.collect()
}

/// Asserts that each commit is a tree that was verified, or names that of the
/// next one that was; returns the issues of the others.
fn resting_on_others(scratch: &Scratch) -> Vec<String> {
    let landed = landed(scratch);
    let mut found = Vec::new();
    for (at, (id, trailers, tree)) in landed.iter().enumerate() {
        let step = trailers.step.as_str();
        match &trailers.verified_in {
            None => assert_eq!(trailers.verified_tree.as_ref(), Some(tree)),
            Some(within) => {
                let mut after = landed[at..].iter();
                let leader = after.find(|(_, trailers, _)| trailers.verified_in.is_none());
                assert_eq!(&leader.unwrap().2, within);
                assert_ne!(tree, within);
                assert_eq!(trailers.verified_tree, None);
                let witness = trailers.witness.as_ref().unwrap();
                assert!(witness.starts_with(&format!("ciwitness://{step}/shared/")));
                found.push(id.clone());
            }
        }
    }
    found
}

fn every_issue_closed(scratch: &Scratch) {
    for (id, row) in scratch.issues() {
        assert_eq!(row["status"], "closed", "{id}");
    }
    every_close_is_on_the_target(scratch);
    refs_are_accounted_for(scratch);
    scratch.premath(["audit"]).end().exits(0);
}

/// The issues that the events of a batch report as verified with other work.
fn reported(ended: &Ended) -> Vec<String> {
    let last = ended.events().pop().unwrap();
    let issues = last["issues"].as_array().unwrap().iter();
    let mut shared: Vec<String> = issues
        .filter(|issue| issue["sharedVerification"].is_object())
        .map(|issue| issue["issueId"].as_str().unwrap().to_owned())
        .collect();
    shared.sort();
    shared
}

#[test]
fn green_work_is_verified_once_for_three_and_lands_as_one_commit_each() {
    let scratch = seven("");
    let ended = batch(&scratch, "").end().exits(0);
    assert_eq!(verifications(&scratch), ["a", "d", "g"]);
    let order: Vec<String> = landed(&scratch).into_iter().map(|one| one.0).collect();
    assert_eq!(order, IDS);
    let shared = ["b", "c", "e", "f"];
    assert_eq!(resting_on_others(&scratch), shared);
    assert_eq!(reported(&ended), shared);
    for id in IDS {
        let steps = scratch.steps_of(id);
        assert_eq!(steps.len(), 1, "{steps:#?}");
        assert_eq!(
            steps[0]["sharedVerification"].is_object(),
            shared.contains(&id)
        );
    }
    every_issue_closed(&scratch);
    let report = scratch.kept_report();
    assert!(
        report.contains("4 issue(s) verified only together with later work (`batch`): b, c, e, f"),
        "{report}"
    );
}

#[test]
fn a_check_runs_for_the_last_of_a_run_only() {
    let check = r#"check_cmd = 'echo $PREMATH_ISSUE_ID >> "$HOME/checks"'"#;
    let scratch = seven(&format!("{check}\n"));
    batch(&scratch, "").end().exits(0);
    // Those of two runs overlap.
    let checks = fs::read_to_string(scratch.home().join("checks")).unwrap();
    let mut checks: Vec<&str> = checks.lines().collect();
    checks.sort_unstable();
    assert_eq!(checks, ["a", "d", "g"]);
    every_issue_closed(&scratch);
}

#[test]
fn a_run_that_fails_its_check_is_taken_back_and_lands_one_by_one() {
    // The check fails on the work of `c`, which no verification sees.
    let check = r#"check_cmd = '[ ! -e src/c.txt ]'"#;
    let scratch = seven(&format!("{check}\n"));
    batch(&scratch, "").end().exits(1);
    for id in IDS {
        let steps = scratch.steps_of(id);
        let status = scratch.issue(id)["status"].clone();
        let classes: Vec<Value> = steps
            .iter()
            .map(|row| row["failureClasses"].clone())
            .collect();
        match id {
            "c" => assert!(
                status == "blocked"
                    && classes
                        .iter()
                        .all(|of| *of == json!(["landing_check_failed"])),
                "{classes:?}"
            ),
            _ => assert!(
                status == "closed" && classes == [Value::Null],
                "{id}: {classes:?}"
            ),
        }
    }
    assert_eq!(scratch.file_on(TARGET, "src/c.txt"), None);
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
    scratch.premath(["audit"]).end().exits(0);
}

#[test]
fn one_red_work_among_others_is_the_only_one_that_is_charged() {
    for red in ["b", "d", "f"] {
        let scratch = seven("");
        batch(&scratch, red).end().exits(1);
        for id in IDS {
            let row = scratch.issue(id);
            let steps = scratch.steps_of(id);
            if id == red {
                assert_eq!(row["status"], "blocked");
                for step in steps {
                    assert_eq!(step["failureClasses"], json!(["check_failed"]));
                }
                continue;
            }
            assert_eq!(row["status"], "closed", "{id}");
            assert_eq!(steps.len(), 1, "{id} was charged: {steps:#?}");
        }
        assert_eq!(scratch.file_on(TARGET, "src/red"), None);
        resting_on_others(&scratch);
        every_close_is_on_the_target(&scratch);
        refs_are_accounted_for(&scratch);
        scratch.premath(["audit"]).end().exits(0);
    }
}

#[test]
fn a_death_between_the_landings_of_a_run_converges() {
    for at in [
        // `a`, two that ride, the one whose tree passed; then its issue closes.
        "target-advanced:2",
        "target-advanced:3",
        "target-advanced:4",
        "issue-closed:2",
        "issue-closed:3",
        "row-written:2",
    ] {
        let scratch = seven("");
        batch(&scratch, "").env("PREMATH_KILL_AT", at).end();
        let before: BTreeMap<String, Value> = scratch.issues().into_iter().collect();
        assert!(before.values().any(|row| row["status"] != "closed"), "{at}");
        // What closed rests on what is on the target.
        let is_closed = |id: &str| before[id]["status"] == "closed";
        assert!(
            is_closed("d") || !(is_closed("b") || is_closed("c")),
            "{at}"
        );
        batch(&scratch, "").end().exits(0);
        every_issue_closed(&scratch);
    }
}

#[test]
fn what_a_death_left_of_a_run_is_taken_back_without_batches_too() {
    let scratch = seven("");
    batch(&scratch, "")
        .env("PREMATH_KILL_AT", "target-advanced:3")
        .end();
    assert_eq!(first_parents(&scratch).len(), 3);
    fs::write(scratch.root.join("harness.toml"), "").unwrap();
    batch(&scratch, "").end().exits(0);
    assert_eq!(resting_on_others(&scratch), Vec::<String>::new());
    every_issue_closed(&scratch);
}
