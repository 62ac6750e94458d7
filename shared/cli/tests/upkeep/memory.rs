//! Issue memory, trajectory, leases and batches.

use crate::answer::Answer;
use crate::scratch::{Scratch, closed, commit};
use serde_json::json;
use std::fs;
use std::process::Command;

#[test]
fn a_batch_that_can_be_resumed_is_not_a_fault_and_its_leases_wait_for_it() {
    let scratch = Scratch::new();
    let expired = "2026-03-05T10:00:00Z";
    let lease = json!({"lease_id": "l", "owner": "w", "acquired_at": expired,
        "expires_at": expired, "generation": 1});
    let held = json!({"id": "a", "title": "a", "status": "in_progress", "assignee": "w",
        "lease": lease, "lease_generation": 1});
    scratch.issues(&[held, closed("b")]);
    let document = scratch.run(&["doctor", "--json"]).json();
    assert_eq!(document["findingCount"], 2);
    assert_eq!(document["items"][0]["failureClass"], "lease_stale");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let host = rustix_host();
    scratch.trajectory(&[json!({"schema": 1, "stepKind": "premath.harness.step.v1",
        "stepId": "coordinator.hb1_x.start", "action": "coordinator.batch_start",
        "resultClass": "ok", "batchId": "hb1_x", "finishedAt": expired,
        "batch": {"settingsDigest": "s", "holder": {"host": host, "bootId": format!("not {boot}"),
            "pid": 1, "started": 1}}})]);
    let said = scratch.doctor_is_content();
    assert!(said.contains("the same command resumes it"), "{said}");
    assert!(said.contains("the lease of w is over"), "{said}");
    assert!(said.contains("w.b.1 has no trajectory row"), "{said}");
}

fn rustix_host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname")
        .unwrap()
        .trim()
        .to_owned()
}

#[test]
fn a_last_line_that_is_cut_is_found_and_keeps_nothing_from_going() {
    let scratch = Scratch::new();
    let memory = scratch.root.join(".premath/issues.jsonl");
    fs::write(&memory, "{\"id\":\"a\",\"title\":\"a\"}\n{\"id\":").unwrap();
    let finding = scratch.doctor_finds("torn", "issues.jsonl:2");
    assert_eq!(
        finding["reason"],
        "the last line is incomplete and was skipped"
    );
    assert_eq!(scratch.run(&["clean"]).code, 0);
    assert!(fs::read_to_string(&memory).unwrap().ends_with("{\"id\":"));
}

#[test]
fn a_corrupt_line_is_shown_and_left_out_of_a_new_file() {
    let scratch = Scratch::new();
    let memory = scratch.root.join(".premath/issues.jsonl");
    let text = "{\"id\":\"a\",\"title\":\"a\"}\n{\"id\":\n{\"id\":\"b\",\"title\":\"b\"}\n";
    fs::write(&memory, text).unwrap();
    scratch.branch(
        "harness/c/1",
        commit(&scratch.git, None, &[scratch.first], 20),
    );
    let finding = scratch.doctor_finds("memory", "issues.jsonl:2:6");
    assert_eq!(finding["failureClass"], "issue_memory_corrupt");
    let refused = scratch.run(&["clean"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("issues.jsonl:2:6: "),
        "{}",
        refused.stderr
    );

    let repaired = scratch.run(&["doctor", "--repair-into", "mended.jsonl", "--json"]);
    assert_eq!(repaired.code, 1);
    let document = repaired.json();
    assert_eq!(document["repair"]["rowCount"], 2);
    assert_eq!(document["repair"]["leftOut"], json!([2]));
    assert_eq!(fs::read_to_string(&memory).unwrap(), text);
    let again = scratch.run(&["doctor", "--repair-into", "mended.jsonl"]);
    assert_eq!(again.code, 1);
    assert!(
        again.stderr.contains("cannot make mended.jsonl"),
        "{}",
        again.stderr
    );
    let over = scratch.run(&["doctor", "--repair-into", ".premath/issues.jsonl"]);
    assert!(over.stderr.contains("cannot make"), "{}", over.stderr);
    fs::rename(scratch.root.join("mended.jsonl"), &memory).unwrap();
    // Now it is certain that there is no issue `c`.
    scratch.doctor_finds("step_branch", "harness/c/1");
}

#[test]
fn issue_memory_is_looked_for_where_the_environment_says() {
    let scratch = Scratch::new();
    let elsewhere = scratch.file("elsewhere.jsonl", "[1]\n", 0);
    #[expect(
        clippy::disallowed_methods,
        reason = "the test plays the shell that runs premath"
    )]
    let mut command = Command::new(env!("CARGO_BIN_EXE_premath"));
    let command = command.arg("doctor").current_dir(&scratch.root);
    let command = command.env("PREMATH_ISSUES_PATH", &elsewhere);
    let answer = Answer::of(command.output().unwrap());
    assert_eq!(answer.code, 1);
    assert!(
        answer.stdout.contains("elsewhere.jsonl:1:1"),
        "{}",
        answer.stdout
    );
}

#[test]
fn a_corrupt_trajectory_is_shown_and_stops_a_clean_up() {
    let scratch = Scratch::new();
    scratch.trajectory(&[json!({"schema": 2})]);
    let finding = scratch.doctor_finds("memory", "harness_trajectory.jsonl:1:1");
    assert_eq!(finding["failureClass"], "trajectory_corrupt");
    assert_eq!(scratch.run(&["clean"]).code, 2);
}
