//! What a person reads in the morning: the report at the end, and what
//! commands say of it later.

use premath_tests::{Scratch, issue};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const EDIT: &str = "echo x > src/$PREMATH_ISSUE_ID.txt";

/// The latest report, as `premath report` tells it.
fn report(scratch: &Scratch) -> String {
    scratch.premath(["report"]).end().exits(0).stdout
}

fn issues(ids: &[&str]) -> Vec<Value> {
    ids.iter().map(|id| issue(id)).collect()
}

#[test]
fn a_batchs_report_can_be_read_again() {
    let scratch = Scratch::with_issues(1, &issues(&["a"]));
    scratch
        .premath(["report"])
        .end()
        .exits(1)
        .says("there is no report in ")
        .says("`harness-coordinator` leaves one at the end of each batch");
    scratch.batch(EDIT, "true").end().exits(0);
    let told = report(&scratch);
    let listed = scratch.premath(["report", "--list", "--json"]).end();
    let listed = listed.exits(0).json();
    assert_eq!(listed["count"], 1, "{listed}");
    let batch = listed["items"][0]["batchId"].as_str().unwrap();
    let path = listed["items"][0]["path"].as_str().unwrap();
    assert!(
        told.starts_with(&format!("batch {batch}, ended ")),
        "{told}"
    );
    assert!(told.contains("1 of 1 worked on closed in "), "{told}");
    let last = told.lines().last().unwrap();
    let end = format!("this report is kept in {path}; `premath report` shows it");
    assert_eq!(last, end);
    assert_eq!(fs::read_to_string(path).unwrap(), told);
    let mode = fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let named = scratch
        .premath(["report", "--batch", batch, "--json"])
        .end();
    assert_eq!(named.exits(0).json()["text"], told);
    scratch
        .premath(["report", "--batch", "hb1_none"])
        .end()
        .exits(1)
        .says("there is no report of batch hb1_none");
    // It is nothing that a commit takes along.
    let status = scratch.git_command(["status", "--porcelain", "--", "artifacts/reports"]);
    assert_eq!(status.end().exits(0).stdout, "");
}
