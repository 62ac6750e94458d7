//! The example batch: its issues build on each other's code, and what it closed
//! is on its target.

use crate::landing::{
    every_close_is_on_the_target, first_parents, passes_at, refs_are_accounted_for,
};
use premath_tests::{Rows, Scratch, binaries, last_rows, parse_rows, workspace};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const SUITE: &str = "sh tests/run.sh";

fn of_the_example(path: &str) -> PathBuf {
    workspace().join("worktrees.example").join(path)
}

/// The example's issues as they are in the beginning.
fn issues() -> Rows {
    last_rows(parse_rows(
        &fs::read(of_the_example("issues.jsonl")).unwrap(),
    ))
}

/// The issues that are expected to be closed in the end.
fn closed() -> BTreeSet<String> {
    let text = fs::read(of_the_example("expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&text).unwrap();
    let issues = expected["issues"].as_array().unwrap().iter();
    issues
        .filter(|issue| issue["status"] == "closed")
        .map(|issue| issue["id"].as_str().unwrap().to_owned())
        .collect()
}

/// What an issue waits for.
fn blockers(row: &Value) -> Vec<String> {
    let edges = row["dependencies"].as_array().into_iter().flatten();
    edges
        .filter(|edge| edge["type"] == "blocks")
        .map(|edge| edge["depends_on_id"].as_str().unwrap().to_owned())
        .collect()
}

fn copy_project(scratch: &Scratch, to: &Path) {
    let from = of_the_example("project").join(".");
    fs::create_dir_all(to).unwrap();
    scratch
        .run(Path::new("cp"))
        .arg("-R")
        .arg(from)
        .arg(to)
        .end()
        .exits(0);
}

/// The acceptance tests that ran, by the issues that they are of.
fn accepted(output: &str) -> BTreeSet<&str> {
    let results = output.lines().filter_map(|line| line.split_once(" - "));
    results
        .filter_map(|(_, result)| result.strip_prefix("acceptance ")?.split(':').next())
        .collect()
}

#[test]
fn every_commit_of_the_examples_target_passes_every_test_that_is_there() {
    let mut scratch = Scratch::new(0);
    let folder = scratch.folder().join("example");
    scratch
        .run(&binaries().coordinator)
        .arg("example")
        .arg(&folder)
        .end()
        .exits(0)
        .says("all 14 issues ended as expected")
        .says("the 11 closed ones are landed on harness/integration")
        .says("git log --first-parent harness/integration")
        .says("git diff main...harness/integration");
    scratch.root = folder.join("wordkit");
    scratch.lanes = (1..=4).map(|n| folder.join(format!("lane-{n}"))).collect();

    let landed = first_parents(&scratch);
    assert_eq!(landed.len(), closed().len());
    for (after, commit) in landed.iter().enumerate() {
        let output = passes_at(&scratch, *commit, SUITE).stdout;
        assert_eq!(accepted(&output).len(), landed.len() - after, "{output}");
    }
    let tip = passes_at(&scratch, landed[0], SUITE).stdout;
    let closed = closed();
    assert!(accepted(&tip).into_iter().eq(&closed), "{tip}");

    // What an issue waits for landed before it.
    let place: BTreeMap<String, usize> = closed
        .iter()
        .map(|id| {
            let steps = scratch.steps_of(id);
            let commit = steps.last().unwrap()["landing"]["commit"].as_str().unwrap();
            let age = landed.iter().position(|at| at.to_string() == commit);
            (id.clone(), landed.len() - age.unwrap())
        })
        .collect();
    for (id, row) in issues().iter().filter(|(id, _)| closed.contains(*id)) {
        for blocker in blockers(row) {
            assert!(place[&blocker] < place[id], "{id} landed before {blocker}");
        }
    }
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);

    // The user's own branch and checkout are as they were, but for the issues.
    let git = scratch.git();
    let head = git.head().unwrap();
    assert_eq!(head.name(), Ok("refs/heads/main"));
    let main = head.peel_to_commit().unwrap();
    assert_eq!((main.message(), main.parent_count()), (Ok("wordkit"), 0));
    let status = scratch.git_command(["status", "--porcelain"]).end();
    assert_eq!(status.exits(0).stdout, " M .premath/issues.jsonl\n");
    scratch.no_process_left();
    assert_eq!(scratch.leftovers(), [""; 0]);
}

/// Creates as much of the example as two lanes of single workers need.
fn two_lanes() -> Scratch {
    let mut scratch = Scratch::new(0);
    copy_project(&scratch, &scratch.root);
    fs::copy(
        of_the_example("harness.toml"),
        scratch.root.join("harness.toml"),
    )
    .unwrap();
    let git = |arguments: &[&str]| {
        let arguments = arguments.iter().copied();
        scratch.git_command(arguments).end().exits(0);
    };
    git(&["add", "--all"]);
    git(&["commit", "-q", "-m", "wordkit"]);
    git(&["worktree", "add", "-q", "../lane-1"]);
    git(&["worktree", "add", "-q", "../lane-2"]);
    scratch.lanes = [1, 2]
        .map(|n| scratch.folder().join(format!("lane-{n}")))
        .into();
    scratch.write_issues(&fs::read(of_the_example("issues.jsonl")).unwrap());
    scratch
}

#[test]
fn without_landing_an_issue_of_the_example_misses_what_it_waits_for() {
    for (mode, status) in [("none", "blocked"), ("merge", "closed")] {
        let scratch = two_lanes();
        let worker = |lane: usize, steps: &str| {
            scratch
                .run(&binaries().worker)
                .within(&scratch.lanes[lane])
                .args(["--labels", "white-space", "--landing", mode])
                .args(["--max-steps", steps])
                .end()
        };
        worker(0, "1").exits(0);
        assert_eq!(scratch.issue("wk-04")["status"], "closed", "{mode}");
        let ended = worker(1, "2");
        let row = scratch.issue("wk-06");
        assert_eq!(row["status"], status, "{mode}\n{}", ended.stderr);
        if mode == "none" {
            ended.says("there is no part/space");
        }
    }
}

#[test]
fn an_issue_of_the_example_uses_each_that_it_waits_for() {
    let scratch = Scratch::new(0);
    let rows = issues();
    let file = |name: &str, text: &str| {
        let path = scratch.folder().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let ids: String = rows.keys().map(|id| format!("\"{id}\"\n")).collect();
    let issue = file("issue", &ids);
    // As the second attempt of wk-05 is reported.
    let prompt = file("prompt", "## What failed last time\n\nan apostrophe\n");
    let script = |place: &Path, script: &str, id: &str| {
        scratch
            .run(Path::new("sh"))
            .arg(script)
            .within(place)
            .env("PREMATH_ISSUE_ID", id)
            .env("PREMATH_ISSUE_FILE", &issue)
            .env("PREMATH_PROMPT_FILE", &prompt)
            .end()
    };
    let mut edges = 0;
    for id in closed() {
        for missing in blockers(&rows[&id]) {
            // Everything that it waits for, but this one, in the order of ids.
            let mut there = BTreeSet::new();
            let mut open = blockers(&rows[&id]);
            while let Some(blocker) = open.pop() {
                if blocker != missing {
                    open.extend(blockers(&rows[&blocker]));
                    there.insert(blocker);
                }
            }
            let place = scratch.folder().join(format!("{id}-without-{missing}"));
            copy_project(&scratch, &place);
            for done in there.iter().chain([&id]) {
                script(&place, "tools/agent.sh", done).exits(0);
            }
            let failed = script(&place, "tests/run.sh", &id).exits(1);
            let own = format!("check_failed: acceptance {id}: ");
            for line in failed.stderr.lines() {
                assert!(line.starts_with(&own), "without {missing}: {line}");
            }
            edges += 1;
        }
    }
    assert_eq!(edges, 6);
}
