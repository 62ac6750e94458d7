//! What changes of issues rest on: the rights of turns, named in rows, and the
//! witnesses of those turns.

use premath_kernel::record::audit::digest_of;
use premath_tests::{Ended, PATIENCE, Scratch, binaries, issue, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

/// Blocking and discovering rest on turns of their own: the rows name the
/// rights, and the escalation's turn has a witness that can be judged again.
#[test]
fn what_blocks_and_what_files_an_issue_names_its_right_and_its_turn() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let premath = binaries().premath.display().to_string();
    let work =
        format!(r#"[ "$PREMATH_ISSUE_ID" = a ] || '{premath}' issue discover b "more to do""#);
    let verify = r#"[ "$PREMATH_ISSUE_ID" != a ]"#;
    scratch.batch(&work, verify).end().exits(1);
    assert_eq!(scratch.issue("a")["status"], "blocked");
    let rights = |row: &Value, list: &str, prefix: &str| -> Vec<String> {
        let refs = row[list].as_array().unwrap().iter();
        let texts = refs.filter_map(Value::as_str).map(str::to_owned);
        texts.filter(|text| text.starts_with(prefix)).collect()
    };
    let step = &scratch.steps_of("a")[0];
    let blocked = rights(step, "witnessRefs", "mutation-ready://a/block/");
    assert_eq!(blocked.len(), 1, "{step:#}");
    assert_eq!(scratch.issue("a")["mutation_refs"], json!(blocked));
    let turn = rights(step, "witnessRefs", "ciwitness://worker.1.a.1/escalation/");
    assert_eq!(turn.len(), 1, "{step:#}");
    let file = scratch
        .root
        .join("artifacts/ciwitness/worker.1.a.1.escalation.json");
    let text = fs::read(&file).unwrap();
    let witness: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(witness["witnessKind"], "premath.harness.turn_witness.v1");
    assert_eq!(witness["admitted"], json!(["block", "discover"]));
    assert_eq!(witness["closeFailureClasses"], json!(["check_failed"]));
    let digest = digest_of(&witness);
    assert!(turn[0].ends_with(&digest), "{turn:?} {digest}");
    let check = ["harness-join-check", "--input", &file.display().to_string()];
    let judged = scratch.premath(check).end().exits(0);
    assert!(
        judged.stdout.contains("join      closed"),
        "{}",
        judged.stdout
    );

    let step = &scratch.steps_of("b")[0];
    let filed = rights(step, "witnessRefs", "mutation-ready://b/discover/");
    assert_eq!(filed.len(), 1, "{step:#}");
    let found = scratch.issues();
    let mut found = found.values().filter(|row| row["title"] == "more to do");
    let found = found.next().unwrap();
    assert_eq!(
        found["discovered_by"]["mutation_ref"], filed[0],
        "{found:#}"
    );
}

/// Waits until a batch has stopped itself, changes the issue store, and lets
/// the batch go on.
fn changed_behind(scratch: &Scratch, at: &str, change: impl FnOnce(&str) -> String) -> Ended {
    let work = r#"[ "$PREMATH_ISSUE_ID" != a ] || echo x > src/a.txt"#;
    let verify = "[ -e src/a.txt ]";
    let batch = scratch.landing_batch(work, verify);
    let batch = batch.env("PREMATH_STOP_AT", at).start();
    let stat = format!("/proc/{}/stat", batch.pid().as_raw_nonzero());
    let stopped = || fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T "));
    until(PATIENCE, || stopped().then_some(())).expect("the batch stops itself");
    let text = String::from_utf8(scratch.issue_bytes()).unwrap();
    scratch.write_issues(change(&text).as_bytes());
    batch.signal(Signal::CONT);
    batch.wait()
}

/// Closing is not done until memory shows it: the landing is taken back.
#[test]
fn a_close_that_reads_back_differently_is_a_failure() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let ended = changed_behind(&scratch, "issue-closed", |text| {
        format!("{text}{}\n", issue("a"))
    });
    let step = &scratch.steps_of("a")[0];
    let class = "mutation_read_back_mismatch";
    assert_eq!(
        step["failureClasses"][0], class,
        "{step:#}\n{}",
        ended.stderr
    );
    assert_ne!(step["resultClass"], "completed");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(scratch.file_on("main", "src/a.txt"), None);
    let witness = scratch
        .root
        .join("artifacts/ciwitness/worker.1.a.1.mutation.json");
    let witness: Value = serde_json::from_slice(&fs::read(witness).unwrap()).unwrap();
    assert_eq!(witness["holds"], false);
}

#[test]
fn a_block_that_reads_back_differently_is_a_failure() {
    let scratch = Scratch::with_issues(1, &[issue("b")]);
    let ended = changed_behind(&scratch, "issue-blocked", |text| {
        format!("{text}{}\n", issue("b"))
    });
    let step = &scratch.steps_of("b")[0];
    let classes = step["failureClasses"].as_array().unwrap();
    let class = json!("mutation_read_back_mismatch");
    assert!(classes.contains(&class), "{step:#}\n{}", ended.stderr);
    assert_eq!(scratch.issue("b")["status"], "open");
}
