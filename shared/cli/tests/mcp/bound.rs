//! A server that is bound to the lease of a step.

use crate::client::{Client, Project, changes};
use serde_json::{Value, json};
use std::fs;

/// A project with issue `a` leased to `w`, generation 1.
fn leased() -> Project {
    let project = Project::claiming(&["all"]);
    project.answer(&["issue", "claim", "a", "--assignee", "w"]);
    project
}

fn in_step(project: &Project, args: &[&str]) -> Client {
    let mut command = project.command(&[&["mcp-serve"], args].concat());
    command
        .env("PREMATH_STEP_ID", "w.a.1")
        .env("PREMATH_ISSUE_ID", "a")
        .env("PREMATH_LEASE_ID", "lease1_a_w")
        .env("PREMATH_LEASE_GENERATION", "1")
        .env("PREMATH_OUTBOX", project.root.join("outbox.jsonl"));
    Client::start(command)
}

#[test]
fn a_step_reads_asks_for_follow_up_work_and_changes_nothing() {
    let project = leased();
    let before = project.bytes();
    // An instruction that claims everything makes no difference.
    let path = project.instruction().display().to_string();
    let mut client = in_step(&project, &["--instruction", &path]);
    assert_eq!(client.accepted("issue_list", json!({}))["count"], 4);
    let wish = json!({"parent": "a", "title": " Found ", "labels": ["x"], "priority": 1});
    let queued = client.accepted("issue_discover", wish);
    assert_eq!(queued["queued"], true);
    assert_eq!(queued["stepId"], "w.a.1");
    let outbox = fs::read_to_string(project.root.join("outbox.jsonl")).unwrap();
    let request: Value = serde_json::from_str(&outbox).unwrap();
    assert_eq!(request, queued["request"]);
    assert_eq!(request["title"], "Found");
    assert_eq!(
        request["askedUnder"],
        json!({"stepId": "w.a.1", "leaseId": "lease1_a_w", "generation": 1})
    );
    for (tool, arguments) in changes() {
        if tool != "issue_discover" {
            client.refused(tool, arguments, "mutation.use_evidence_missing");
        }
    }
    for (tool, arguments) in [
        ("issue_discover", json!({"parent": "b", "title": "Found"})),
        ("issue_update", json!({"id": "b", "title": "Mine"})),
    ] {
        let refused = client.refused(tool, arguments, "mutation.use_evidence_missing");
        assert!(refused["error"].as_str().unwrap().contains("not of"));
    }
    assert_eq!(before, project.bytes());
    let again = fs::read_to_string(project.root.join("outbox.jsonl")).unwrap();
    assert_eq!(outbox, again);
}

#[test]
fn a_lease_that_is_lost_asks_for_nothing() {
    let project = leased();
    let mut client = in_step(&project, &[]);
    let wish = json!({"parent": "a", "title": "Found"});
    client.accepted("issue_discover", wish.clone());
    project.answer(&["issue", "release", "a"]);
    client.refused("issue_discover", wish.clone(), "lease_missing");
    project.answer(&["issue", "claim", "a", "--assignee", "w"]);
    client.refused("issue_discover", wish, "lease_generation_mismatch");
}

#[test]
fn a_lease_can_be_named_outside_of_a_step() {
    let project = leased();
    let mut client = project.serve(&["--lease", "a:lease1_a_w:1:w"]);
    let update = json!({"id": "a", "title": "Mine"});
    client.refused("issue_update", update, "mutation.use_evidence_missing");
    let wish = json!({"parent": "a", "title": "Found"});
    client.refused("issue_discover", wish.clone(), "outbox_invalid");
    let mut other = project.serve(&["--lease", "a:lease1_a_w:1:somebody"]);
    other.refused("issue_discover", wish, "lease_owner_mismatch");
}

#[test]
fn a_step_is_bound_to_its_own_lease_or_not_served() {
    let project = leased();
    let mut command = project.command(&["mcp-serve"]);
    command.env("PREMATH_STEP_ID", "w.a.1");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    // A client that clears its servers' environment does not lift the binding.
    let step = project.root.join(".premath/step");
    fs::create_dir(&step).unwrap();
    let output = project.premath(&["mcp-serve"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("a step runs in this worktree"), "{said}");
    fs::remove_dir(&step).unwrap();
    let mut command = project.command(&["mcp-serve", "--lease", "b:l:1:w"]);
    command
        .env("PREMATH_STEP_ID", "w.a.1")
        .env("PREMATH_ISSUE_ID", "a")
        .env("PREMATH_LEASE_ID", "lease1_a_w")
        .env("PREMATH_LEASE_GENERATION", "1");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("--lease is"), "{said}");
}
