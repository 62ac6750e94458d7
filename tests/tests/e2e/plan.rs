//! `harness-coordinator --dry-run` and `premath plan`: the schedule of a batch that is
//! not begun, and the batch that follows it.

use premath_tests::{NO_STARTUP, Run, Scratch, binaries, issue};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const EDIT: &str = "echo x > src/$PREMATH_ISSUE_ID.txt";

fn with(id: &str, more: &Value) -> Value {
    let mut row = issue(id);
    for (key, value) in more.as_object().into_iter().flatten() {
        row[key] = value.clone();
    }
    row
}

fn on(id: &str, others: &[&str]) -> Value {
    let edge = |other: &&str| json!({"issue_id": id, "depends_on_id": other, "type": "blocks"});
    let edges: Vec<Value> = others.iter().map(edge).collect();
    with(id, &json!({"dependencies": edges}))
}

/// Issues of every kind that never runs, and some that do.
fn rows() -> Vec<Value> {
    let lease = json!({
        "lease_id": "l", "owner": "elsewhere.1", "acquired_at": "2026-03-01T00:00:00Z",
        "expires_at": "2999-01-01T00:00:00Z", "generation": 1, "assignee_before": "",
    });
    vec![
        on("run-3", &["run-2"]),
        with("run-2", &json!({"priority": 3})),
        with("run-1", &json!({"priority": 1})),
        on("run-4", &["run-1", "run-3"]),
        with(
            "child",
            &json!({"dependencies": [
            {"issue_id": "child", "depends_on_id": "parent", "type": "parent-child"}]}),
        ),
        with("parent", &json!({"issue_type": "epic"})),
        with("assigned", &json!({"assignee": "eve"})),
        with("blocked", &json!({"status": "blocked"})),
        on("behind", &["blocked"]),
        with("deferred", &json!({"status": "deferred"})),
        with("late", &json!({"retry_at": "2998-01-01T00:00:00Z"})),
        with(
            "leased",
            &json!({
            "status": "in_progress", "assignee": "elsewhere.1", "lease_generation": 1,
            "lease": lease}),
        ),
        with(
            "manual",
            &json!({"status": "in_progress", "assignee": "eve"}),
        ),
        on("missing", &["nowhere"]),
        with("other-label", &json!({"labels": ["docs"]})),
        with("done", &json!({"status": "closed"})),
    ]
}

/// The arguments of the batch, of `premath plan` too.
fn arguments(run: Run, scratch: &Scratch) -> Run {
    run.args(["--override-reason", "test", "--work-cmd", EDIT])
        .args(["--verify-cmd", "true", "--landing", "none"])
        .args(NO_STARTUP)
        .arg("--worktree")
        .arg(&scratch.lanes[0])
}

fn dry_run(scratch: &Scratch) -> Run {
    let run = scratch.run(&binaries().coordinator).arg("--dry-run");
    arguments(run, scratch)
}

/// Returns what is below a folder: by path, the kind, times and bytes.
fn state(folder: &Path) -> BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let bytes = match metadata.is_file() {
                true => fs::read(&path).unwrap(),
                false => Vec::new(),
            };
            if metadata.is_dir() {
                folders.push(path.clone());
            }
            let times = (metadata.mtime(), metadata.mtime_nsec());
            found.insert(path, (metadata.mode(), times.0, times.1, bytes));
        }
    }
    found
}

fn ids(plan: &Value, list: &str) -> Vec<String> {
    let issues = plan[list].as_array().unwrap().iter();
    issues
        .map(|issue| issue["issueId"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns the first reason of each issue that never runs.
fn kinds(plan: &Value) -> BTreeMap<String, String> {
    let never = plan["never"].as_array().unwrap().iter();
    never
        .map(|never| {
            let kind = never["reasons"][0]["kind"].as_str().unwrap();
            (
                never["issueId"].as_str().unwrap().to_owned(),
                kind.to_owned(),
            )
        })
        .collect()
}

#[test]
fn a_plan_changes_nothing_and_a_batch_dispatches_in_its_order() {
    let scratch = Scratch::with_issues(1, &rows());
    let before = state(&scratch.root);
    let lanes_before = state(&scratch.lanes[0]);
    let plan = dry_run(&scratch).arg("--json").end().exits(0).json();
    let other = arguments(scratch.premath(["plan", "--json"]), &scratch);
    let mut other = other.end().exits(0).json();
    let text = dry_run(&scratch).end().exits(0).stdout;
    let same = arguments(scratch.premath(["plan"]), &scratch)
        .end()
        .exits(0);
    assert_eq!(state(&scratch.root), before);
    assert_eq!(state(&scratch.lanes[0]), lanes_before);

    other["at"] = plan["at"].clone();
    assert_eq!(plan, other);
    assert_eq!(text, same.stdout);
    let order = ["run-1", "child", "other-label", "run-2", "run-3", "run-4"];
    assert_eq!(ids(&plan, "order"), order);
    let expected = [
        ("assigned", "assigned"),
        ("behind", "held"),
        ("blocked", "blocked"),
        ("deferred", "set_aside"),
        ("late", "retry"),
        ("leased", "leased"),
        ("manual", "manual"),
        ("missing", "held_by_missing"),
        // An epic, whatever holds it.
        ("parent", "not_selected"),
    ];
    let expected = expected.map(|(id, kind)| (id.to_owned(), kind.to_owned()));
    assert_eq!(kinds(&plan), expected.into_iter().collect());
    assert_eq!(plan["never"][1]["root"], "blocked");
    assert_eq!(plan["lanes"][0]["firstIssue"], "run-1");
    assert_eq!(plan["estimate"]["timeMs"], Value::Null);
    assert_eq!(plan["terms"]["verifyCommand"], "true");
    assert!(text.contains("time unknown"), "{text}");

    let batch = scratch.run(&binaries().coordinator).arg("--json");
    let ended = arguments(batch, &scratch).end().exits(0);
    let dispatched: Vec<Value> = ended.events();
    let dispatched = dispatched
        .iter()
        .filter(|event| event["event"] == "issue.dispatched");
    let dispatched: Vec<&Value> = dispatched.map(|event| &event["issueId"]).collect();
    assert_eq!(dispatched, order);

    // What ran says how long the next ones take.
    scratch.premath(["issue", "add", "next"]).end().exits(0);
    let plan = dry_run(&scratch).arg("--json").end().exits(0).json();
    assert_eq!(plan["estimate"]["closedAttempts"], 6);
    assert!(plan["estimate"]["timeMs"].as_u64().is_some(), "{plan}");
}

#[test]
fn a_plan_goes_by_the_flags_and_the_settings_of_the_batch() {
    let scratch = Scratch::with_issues(1, &rows());
    let settings = "[coordinator]\nrounds = 1\n[batch]\nlabels = [\"docs\", \"ci\"]\n";
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    let before = state(&scratch.folder().join("repo"));
    let lanes = |run: Run| {
        run.args(["--override-reason", "test", "--work-cmd", EDIT])
            .args(["--verify-cmd", "true", "--lanes", "3", "--json"])
            .args(["--dry-run", "--worker-prefix", "night"])
    };
    let plan = lanes(scratch.run(&binaries().coordinator))
        .end()
        .exits(0)
        .json();
    assert_eq!(ids(&plan, "order"), ["other-label"]);
    assert_eq!(kinds(&plan)["run-1"], "not_selected");
    let planned = plan["lanes"].as_array().unwrap();
    assert_eq!(planned.len(), 3);
    assert_eq!(planned[2]["workerId"], "night.3");
    assert_eq!(planned[2]["exists"], false);
    assert_eq!(plan["terms"]["rounds"], 1);
    assert_eq!(plan["terms"]["landing"]["target"], "harness/integration");
    // No lane was made.
    assert!(!scratch.folder().join("repo-lanes").exists());
    assert_eq!(state(&scratch.folder().join("repo")), before);

    let labels = ["--labels", "none-has-it"];
    let none = lanes(scratch.run(&binaries().coordinator))
        .args(labels)
        .end();
    assert_eq!(ids(&none.exits(0).json(), "order"), [""; 0]);
}

#[test]
fn a_plan_says_that_the_batch_would_be_refused() {
    let scratch = Scratch::with_issues(1, &[on("a", &["b"]), on("b", &["a"]), issue("c")]);
    let plan = dry_run(&scratch).arg("--json").end().exits(3).json();
    assert_eq!(plan["refusals"][0]["failureClass"], "dependency_cycle");
    assert_eq!(kinds(&plan)["a"], "cycle");
    arguments(scratch.premath(["plan"]), &scratch)
        .end()
        .exits(1)
        .says("the batch would be refused: dependency_cycle: ");
    // Without a command there is nothing to plan, and nothing is recorded of it.
    scratch
        .run(&binaries().coordinator)
        .args(["--dry-run", "--override-reason", "test"])
        .end()
        .exits(2);
    assert_eq!(scratch.trajectory(), [Value::Null; 0]);
    arguments(scratch.run(&binaries().coordinator), &scratch)
        .end()
        .exits(3);
}
