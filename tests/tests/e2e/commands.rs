//! Commands that are run from anywhere in a repository.

use premath_tests::{Scratch, issue};
use serde_json::json;
use std::fs;

#[test]
fn a_tracked_copy_of_issue_memory_in_a_linked_worktree_is_never_read() {
    let scratch = Scratch::with_issues(1, &[issue("true-one")]);
    let copy = scratch.lanes[0].join(".premath");
    fs::create_dir(&copy).unwrap();
    fs::write(copy.join("issues.jsonl"), format!("{}\n", issue("stale"))).unwrap();
    let listed = scratch
        .premath(["issue", "list", "--json"])
        .within(&scratch.lanes[0])
        .end()
        .exits(0)
        .json();
    let ids: Vec<_> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].clone())
        .collect();
    assert_eq!(ids, [json!("true-one")]);
}

#[test]
fn every_program_honours_the_path_of_issue_memory_in_the_environment() {
    let scratch = Scratch::with_issues(2, &[issue("not-me")]);
    let other = scratch.folder().join("other.jsonl");
    fs::write(&other, format!("{}\n{}\n", issue("me-1"), issue("me-2"))).unwrap();
    let run = |run: premath_tests::Run| run.env("PREMATH_ISSUES_PATH", &other).end().exits(0);
    let claimed = run(scratch.premath(["issue", "ready", "--json"])).json();
    assert_eq!(claimed["count"], 2);
    run(scratch.worker(0, "w", "true", "true"));
    run(scratch.batch("true", "true"));
    let rows = premath_tests::last_rows(premath_tests::parse_rows(&fs::read(&other).unwrap()));
    assert!(rows.values().all(|row| row["status"] == "closed"));
    assert_eq!(scratch.issue("not-me"), issue("not-me"));
}

#[test]
fn the_evidence_of_a_closed_step_is_judged_the_same_by_the_command() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    scratch.batch("true", "true").end().exits(0);
    let row = &scratch.steps()[0];
    let folder = scratch.root.join("artifacts/ciwitness");
    let turn = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().contains("turn"))
        .unwrap_or_else(|| panic!("no turn witness for {row}"));
    let witness: serde_json::Value = serde_json::from_slice(&fs::read(turn).unwrap()).unwrap();
    let input = scratch.folder().join("input.json");
    fs::write(&input, witness["input"].to_string()).unwrap();
    let judged = scratch
        .premath([
            "harness-join-check",
            "--json",
            "--require",
            "accepted",
            "--input",
        ])
        .arg(&input)
        .end()
        .exits(0)
        .json();
    assert_eq!(judged["result"], "accepted");
    assert_eq!(
        judged["witness"]["digests"],
        witness["joinCheck"]["witness"]["digests"]
    );
}
