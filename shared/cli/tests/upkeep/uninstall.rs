//! `premath uninstall`.

use crate::scratch::{Scratch, commit};
use serde_json::{Value, json};
use std::fs;

#[track_caller]
fn uninstall(scratch: &Scratch, flags: &[&str], code: i32) -> Value {
    let answer = scratch.run(&[&["uninstall", "--json"], flags].concat());
    assert_eq!(answer.code, code, "{}{}", answer.stdout, answer.stderr);
    answer.json()
}

/// A repository with evidence, a run log and a reference of the harness.
fn used() -> Scratch {
    let scratch = Scratch::new();
    scratch.issues(&[json!({"id": "a", "title": "A", "status": "closed"})]);
    scratch.trajectory(&[]);
    for path in ["artifacts/ciwitness/a.json", ".git/premath-landing.flock"] {
        let path = scratch.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
    fs::write(scratch.root.join("harness.toml"), "").unwrap();
    scratch
}

#[test]
fn everything_goes_but_issues_and_the_files_of_the_project() {
    let scratch = used();
    let asked = uninstall(&scratch, &["--dry-run"], 0);
    assert_eq!(asked["result"], "unchanged");
    assert!(scratch.has("refs/heads/harness/integration"));
    // Without a terminal there is no one to ask.
    let asked = uninstall(&scratch, &[], 1);
    assert_eq!(asked["result"], "unchanged");
    assert!(scratch.root.join("artifacts/ciwitness/a.json").exists());
    let done = uninstall(&scratch, &["--yes"], 0);
    assert_eq!(done["result"], "done", "{done}");
    let removed = done["removed"].as_array().unwrap();
    for name in [
        "harness/integration",
        "artifacts/ciwitness",
        ".git/premath-landing.flock",
    ] {
        assert!(removed.contains(&json!(name)), "{removed:?}");
    }
    assert!(!scratch.has("refs/heads/harness/integration"));
    assert!(!scratch.root.join("artifacts").exists());
    assert!(!scratch.root.join(".git/premath-landing.flock").exists());
    let kept = done["kept"].as_array().unwrap();
    let kept: Vec<&str> = kept
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(kept, [".premath/issues.jsonl", "harness.toml"]);
    assert!(scratch.root.join("harness.toml").exists());
    let issues = fs::read_to_string(scratch.root.join(".premath/issues.jsonl")).unwrap();
    assert!(issues.contains("\"a\""));
    assert!(
        !scratch
            .root
            .join(".premath/harness_trajectory.jsonl")
            .exists()
    );
}

#[test]
fn work_that_no_other_branch_has_keeps_everything() {
    let scratch = used();
    let work = commit(&scratch.git, None, &[scratch.first], 1);
    scratch.branch("harness/salvage/a/1", work);
    let refused = uninstall(&scratch, &["--yes"], 1);
    assert_eq!(refused["result"], "refused");
    assert_eq!(refused["obstacles"][0]["name"], "harness/salvage/a/1");
    assert!(scratch.has("refs/heads/harness/integration"));
    assert!(scratch.root.join("artifacts/ciwitness/a.json").exists());
    uninstall(&scratch, &["--yes", "--discard-work"], 0);
    assert!(!scratch.has("refs/heads/harness/salvage/a/1"));
}

#[test]
fn what_the_harness_did_not_make_or_git_tracks_stays() {
    let scratch = used();
    for path in [".premath/lanes/mine.md", "artifacts/ciwitness/keep.json"] {
        let path = scratch.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "tracked").unwrap();
    }
    let mut index = scratch.git.index().unwrap();
    for path in [".premath/lanes/mine.md", "artifacts/ciwitness/keep.json"] {
        index.add_path(path.as_ref()).unwrap();
    }
    index.write().unwrap();
    scratch.branch("harness/my-own-feature", scratch.first);
    // A symbolic reference of the harness's name does not keep the work that it
    // leads to anywhere else.
    let work = commit(&scratch.git, None, &[scratch.first], 1);
    scratch.branch("harness/a/1", work);
    let alias = "refs/heads/harness/alias";
    let target = "refs/heads/harness/a/1";
    scratch
        .git
        .reference_symbolic(alias, target, true, "test")
        .unwrap();
    let refused = uninstall(&scratch, &["--yes"], 1);
    assert_eq!(refused["obstacles"][0]["name"], "harness/a/1", "{refused}");
    scratch.git.find_reference(alias).unwrap().delete().unwrap();
    scratch.branch("mine", work);
    let done = uninstall(&scratch, &["--yes"], 0);
    assert_eq!(done["result"], "done", "{done}");
    assert!(scratch.has("refs/heads/harness/my-own-feature"));
    assert!(!scratch.has("refs/heads/harness/a/1"));
    for path in [".premath/lanes/mine.md", "artifacts/ciwitness/keep.json"] {
        assert!(scratch.root.join(path).exists(), "{path} is gone");
    }
}

#[test]
fn a_checkout_for_verification_that_an_earlier_version_left_goes() {
    let scratch = used();
    // Nothing else shows that the harness made it.
    let checkout = scratch
        .root
        .with_file_name("main-verify/lane-02-0123456789ab");
    fs::create_dir_all(checkout.join("src")).unwrap();
    let link = "gitdir: /nonexistent/premath-verification\n";
    fs::write(checkout.join(".git"), link).unwrap();
    let done = uninstall(&scratch, &["--yes"], 0);
    let removed = done["removed"].as_array().unwrap();
    assert!(removed.contains(&json!(checkout)), "{removed:?}");
    assert!(!checkout.parent().unwrap().exists());
}
