//! Verifications that fail are repeated on the same tree: one that passes then
//! is flaky, and is not charged.

use super::landing::{OWN, every_close_is_on_the_target};
use premath_tests::{Scratch, issue};
use serde_json::{Value, json};
use std::fs;

/// Fails the first verification of each issue.
const FLAKY: &str = r#"[ -n "$PREMATH_ISSUE_ID" ] || exit 0
echo "$PREMATH_ISSUE_ID" >> "$HOME/verifications"
[ -e "$HOME/seen-$PREMATH_ISSUE_ID" ] || { touch "$HOME/seen-$PREMATH_ISSUE_ID"; exit 1; }"#;

fn verifications(scratch: &Scratch) -> usize {
    let found = fs::read_to_string(scratch.home().join("verifications")).unwrap();
    found.lines().count()
}

fn settings(scratch: &Scratch, text: &str) {
    fs::write(scratch.root.join("harness.toml"), text).unwrap();
}

#[test]
fn a_failure_that_passes_when_repeated_is_recorded_and_not_charged() {
    let scratch = Scratch::with_issues(1, &["a", "b"].map(issue));
    scratch.landing_batch(OWN, FLAKY).end().exits(0);
    assert_eq!(verifications(&scratch), 4);
    for id in ["a", "b"] {
        let steps = scratch.steps_of(id);
        assert_eq!(steps.len(), 1, "{steps:#?}");
        let step = steps[0]["stepId"].as_str().unwrap();
        let flaky: Vec<&str> = steps[0]["flakyRefs"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert_eq!(flaky.len(), 1, "{flaky:?}");
        assert!(flaky[0].starts_with(&format!("ciwitness://{step}/verify/")));
        let passed = &steps[0]["verification"]["witnessRef"];
        let of_repetition = format!("ciwitness://{step}/verify-2/");
        assert!(passed.as_str().unwrap().starts_with(&of_repetition));
    }
    every_close_is_on_the_target(&scratch);
    scratch.premath(["audit"]).end().exits(0);
    let made = scratch.premath(["report", "--json"]).end().exits(0).json();
    assert_eq!(made["totals"]["flaky"], 2, "{made}");
    let report = scratch.kept_report();
    let line = "verification flaky in 2 issue(s), failed and passed on one tree: a, b";
    assert!(report.contains(line), "{report}");
}

#[test]
fn a_row_that_hides_a_flaky_verification_is_a_contradiction() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    scratch.landing_batch(OWN, FLAKY).end().exits(0);
    let step = scratch.steps_of("a").remove(0);
    let path = scratch.trajectory_path();
    let text = fs::read_to_string(&path).unwrap();
    let flaky = serde_json::to_string(&step["flakyRefs"]).unwrap();
    let hidden = text.replace(&format!("\"flakyRefs\":{flaky},"), "");
    assert_ne!(hidden, text);
    fs::write(&path, hidden).unwrap();
    let audit = scratch.premath(["audit", "--all", "--json"]).end();
    assert_ne!(audit.code, Some(0));
    assert!(audit.stdout.contains("flaky_disagrees"), "{}", audit.stdout);
}

#[test]
fn work_that_fails_again_is_charged_once() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let red = r#"[ -z "$PREMATH_ISSUE_ID" ] || { echo x >> "$HOME/verifications"; exit 1; }"#;
    settings(&scratch, "[verify]\nflaky_reruns = 3\n");
    scratch.landing_batch(OWN, red).end().exits(1);
    let steps = scratch.steps_of("a");
    assert_eq!(verifications(&scratch), 4 * steps.len());
    for step in &steps {
        assert_eq!(step["failureClasses"], json!(["check_failed"]));
        assert_eq!(step.get("flakyRefs"), None);
    }
}

#[test]
fn without_repetitions_the_first_failure_is_charged() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    settings(
        &scratch,
        "[verify]\nflaky_reruns = 0\n[landing]\nspeculation = 0\n",
    );
    scratch.landing_batch(OWN, FLAKY).end();
    let steps = scratch.steps_of("a");
    assert_eq!(steps[0]["failureClasses"], json!(["check_failed"]));
}

#[test]
fn work_that_does_not_land_is_verified_again_too() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    settings(&scratch, "[landing]\nmode = \"none\"\n");
    let run = scratch.landing_batch("echo a > src/a.txt", FLAKY);
    run.end().exits(0);
    assert_eq!(verifications(&scratch), 2);
    assert_eq!(
        scratch.steps_of("a")[0]["flakyRefs"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}
