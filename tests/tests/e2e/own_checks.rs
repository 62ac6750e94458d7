//! Verifications of issues' own: an operator's is run after the batch's, and no
//! other one is.

use premath_tests::{Run, Scratch, issue};
use serde_json::{Value, json};
use std::fs;

const EDIT: &str = r#"echo "$PREMATH_ISSUE_ID" > "src/$PREMATH_ISSUE_ID.txt""#;

fn status(scratch: &Scratch, id: &str) -> Value {
    scratch.issue(id)["status"].clone()
}

/// Has an operator set the verification of an issue.
fn set(scratch: &Scratch, id: &str, command: &str) {
    let update = ["issue", "update", id, "--verification", command];
    scratch.premath(update).end().exits(0);
}

fn configure(scratch: &Scratch, text: &str) {
    fs::write(scratch.root.join("harness.toml"), text).unwrap();
}

/// Where a check leaves a trace that the test finds.
fn ran(scratch: &Scratch, name: &str) -> bool {
    scratch.home().join(name).exists()
}

fn default_batch(scratch: &Scratch, verify: &str) -> Run {
    scratch.default_batch(EDIT, verify)
}

#[test]
fn an_operators_verification_runs_after_the_batchs_and_both_must_pass() {
    let scratch = Scratch::with_issues(1, &["a", "b", "c"].map(issue));
    let section = "Do it.\n\nVerification:\n- `test -e src/other.txt`\n";
    let update = ["issue", "update", "a", "--description", section];
    scratch.premath(update).end().exits(0);
    set(
        &scratch,
        "b",
        r#"echo "it's $PREMATH_ISSUE_ID"; pwd > "$HOME/where"; [ -s src/b.txt ]"#,
    );
    set(&scratch, "c", r#"touch "$HOME/c-ran""#);
    let verify = "[ \"$PREMATH_ISSUE_ID\" != c ] || { echo 'c is bad' >&2; exit 3; }";
    default_batch(&scratch, verify).end().exits(1);
    assert_eq!(
        ["a", "b", "c"].map(|id| status(&scratch, id)),
        ["blocked", "closed", "blocked"]
    );
    for id in ["a", "c"] {
        let classes = &scratch.steps_of(id)[0]["failureClasses"];
        assert_eq!(*classes, json!(["check_failed"]), "{id}");
    }
    let said = scratch
        .premath(["issue", "show", "a"])
        .end()
        .exits(0)
        .stdout;
    assert!(
        said.contains("the issue's own verification failed with exit code 1"),
        "{said}"
    );
    assert!(
        !ran(&scratch, "c-ran"),
        "it ran although the batch's failed"
    );
    // In the checkout that only the harness writes, under the same profile.
    let lane = scratch.lanes[0].to_str().unwrap().to_owned();
    let seen = fs::read_to_string(scratch.home().join("where")).unwrap();
    assert_ne!(seen.trim(), lane);
    let witness = scratch
        .root
        .join("artifacts/ciwitness/worker.1.b.1.verify.json");
    let witness: Value = serde_json::from_slice(&fs::read(witness).unwrap()).unwrap();
    assert!(witness["sandboxRef"].is_string(), "{witness}");
    scratch.premath(["audit"]).end().exits(0);
}

#[test]
fn what_a_batch_may_run_is_recorded_when_it_is_authorised() {
    let scratch = Scratch::with_issues(1, &["a", "b"].map(issue));
    set(&scratch, "a", "true");
    default_batch(&scratch, "true").end().exits(0);
    let rows = scratch.trajectory();
    let start = rows
        .iter()
        .find(|row| row["action"] == "coordinator.batch_start");
    let start = start.unwrap();
    let step = start["stepId"].as_str().unwrap();
    let path = format!("artifacts/ciwitness/{step}.checks.json");
    let recorded = fs::read(scratch.root.join(path)).unwrap();
    let recorded: Value = serde_json::from_slice(&recorded).unwrap();
    assert_eq!(recorded["batchId"], start["batchId"]);
    let checks = recorded["checks"].as_object().unwrap();
    assert_eq!(checks.len(), 1);
    assert_eq!(checks["a"]["command"], "true");
    let digest = "sha256:b5bea41b6c623f7c09f1bf24dcae58ebab3c0cdd90ad966bc43a45b44867e12b";
    assert_eq!(checks["a"]["digest"], digest);
    let references = start["witnessRefs"].as_array().unwrap();
    let prefix = format!("ciwitness://{step}/checks/");
    assert!(
        references
            .iter()
            .any(|reference| reference.as_str().unwrap().starts_with(&prefix))
    );
}

#[test]
fn a_verification_that_no_operator_wrote_is_never_run() {
    let mut rows = ["a", "b"].map(issue);
    // An import, an editor: no transaction wrote it.
    rows[0]["description"] = r#"Verification: `touch "$HOME/imported"`"#.into();
    rows[0]["operator_override"] = json!({"operator": "root", "at": "2026-01-01T00:00:00Z"});
    rows[1]["metadata"] = json!({"verification": r#"touch "$HOME/metadata""#});
    let scratch = Scratch::with_issues(1, &rows);
    let edited = ["issue", "update", "a", "--priority", "1"];
    scratch.premath(edited).end().exits(0);
    // The agent files one.
    let request = json!({"title": "found", "description": "Verification: `touch \"$HOME/filed\"`"});
    let work =
        format!("{EDIT}; [ $PREMATH_ISSUE_ID != a ] || echo '{request}' >> \"$PREMATH_OUTBOX\"");
    let ended = scratch.default_batch(&work, "true").end().exits(0);
    let warnings = ended
        .events()
        .into_iter()
        .filter(|event| event["event"] == "batch.warning");
    let warned: Vec<String> = warnings.map(|event| event["detail"].to_string()).collect();
    let is_named = |text: &&String| {
        text.contains("no operator wrote the verification command in the row of a, b;")
    };
    assert!(warned.iter().any(|text| is_named(&text)), "{warned:?}");
    assert_eq!(scratch.issues().len(), 3);
    for (id, row) in scratch.issues() {
        assert_eq!(row["status"], "closed", "{id}");
    }
    for name in ["imported", "metadata", "filed"] {
        assert!(!ran(&scratch, name), "{name}");
    }
}

#[test]
fn what_an_operator_wrote_is_run_whatever_the_row_has_later() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    set(&scratch, "a", "test -e src/other.txt");
    // An editor takes it out of the row.
    let mut row = scratch.issue("a");
    row["metadata"] = json!({"verification": r#"touch "$HOME/forged""#});
    let mut text = scratch.issue_bytes();
    text.extend(format!("{row}\n").into_bytes());
    scratch.write_issues(&text);
    default_batch(&scratch, "true").end().exits(1);
    assert_eq!(status(&scratch, "a"), "blocked");
    assert!(!ran(&scratch, "forged"));
    // The operator takes it out: nothing but the batch's verification is left.
    set(&scratch, "a", "");
    let reopen = ["issue", "update", "a", "--status", "open"];
    scratch
        .premath(reopen)
        .args(["--override-reason", "test"])
        .end()
        .exits(0);
    default_batch(&scratch, "true").end().exits(0);
    assert_eq!(status(&scratch, "a"), "closed");
}

#[test]
fn the_settings_can_ignore_them_and_a_record_that_was_changed_refuses_the_batch() {
    let scratch = Scratch::with_issues(1, &["a", "b"].map(issue));
    set(&scratch, "a", "false");
    configure(&scratch, "[batch]\nissue_checks = \"ignore\"\n");
    default_batch(&scratch, "true")
        .args(["--rounds", "1"])
        .end()
        .exits(0);
    assert_eq!(status(&scratch, "a"), "closed");
    configure(&scratch, "");
    set(&scratch, "b", "false");
    let path = scratch.root.join(".premath/issues.jsonl.checks");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("false", "true")).unwrap();
    let refused = default_batch(&scratch, "true").end();
    assert!(matches!(refused.code, Some(2 | 4)), "{refused:?}");
    assert!(
        refused.stderr.contains("does not have its digest"),
        "{}",
        refused.stderr
    );
    assert_eq!(status(&scratch, "b"), "open");
}

#[test]
fn work_with_a_verification_of_its_own_is_not_verified_with_other_work() {
    let scratch = super::batched::seven("");
    set(&scratch, "c", r#"touch "$HOME/c-ran""#);
    super::batched::batch(&scratch, "none").end().exits(0);
    assert!(ran(&scratch, "c-ran"));
    let row = &scratch.steps_of("c")[0];
    assert_eq!(row["sharedVerification"], Value::Null, "{row}");
    for (id, row) in scratch.issues() {
        assert_eq!(row["status"], "closed", "{id}");
    }
    scratch.premath(["audit"]).end().exits(0);
}
