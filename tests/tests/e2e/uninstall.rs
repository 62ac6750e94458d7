//! `premath uninstall` beside what could use the repository: units of systemd, a batch
//! that begins, a second removal.

use premath_memory::{RepositoryRemoval, RepositoryUse};
use premath_tests::{Scratch, issue};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// The folder of a user's units.
fn units(scratch: &Scratch) -> PathBuf {
    scratch.home().join(".config/systemd/user")
}

/// A repository whose batches a timer starts.
fn nightly() -> Scratch {
    let scratch = Scratch::with_issues(0, &[issue("a")]);
    let install = ["service", "install", "--user", "--name", "night"];
    let run = scratch.premath(install).args(["--every-night", "22:00"]);
    run.end().exits(0);
    scratch
}

fn uninstall(scratch: &Scratch, code: i32) -> Value {
    let runtime = scratch.home().join("runtime");
    let run = scratch.premath(["uninstall", "--yes", "--json"]);
    let run = run.env("XDG_RUNTIME_DIR", runtime);
    run.end().exits(code).json()
}

fn reason(answer: &Value, name: &str) -> String {
    let mut all = answer["obstacles"].as_array().unwrap().iter();
    let found = all.find(|one| one["name"].as_str().unwrap().ends_with(name));
    found.unwrap_or_else(|| panic!("{name}: {answer}"))["reason"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn the_units_of_the_repository_go_and_those_of_others_stay() {
    let scratch = nightly();
    let other = Scratch::with_issues(0, &[issue("a")]);
    let install = ["service", "install", "--user", "--name", "other"];
    let run = other.premath(install).env("HOME", scratch.home());
    run.end().exits(0);
    let root = scratch.root.display();
    let own = format!("[Service]\nWorkingDirectory={root}\nExecStart=/bin/true\n");
    fs::write(units(&scratch).join("mine.service"), own).unwrap();
    let done = uninstall(&scratch, 0);
    assert_eq!(done["result"], "done", "{done}");
    let removed = done["removed"].as_array().unwrap();
    for file in ["night.service", "night.timer"] {
        let path = units(&scratch).join(file);
        assert!(removed.contains(&json!(path)), "{removed:?}");
        assert!(!path.exists());
    }
    for file in ["other.service", "mine.service"] {
        assert!(units(&scratch).join(file).exists(), "{file}");
    }
}

#[test]
fn a_unit_that_is_active_or_changed_keeps_everything() {
    let scratch = nightly();
    let started = scratch.home().join("runtime/systemd/units");
    let enabled = units(&scratch).join("timers.target.wants");
    for (unit, state, folder, link) in [
        (
            "night.service",
            "active",
            &started,
            "invocation:night.service",
        ),
        ("night.timer", "enabled", &enabled, "night.timer"),
    ] {
        fs::create_dir_all(folder).unwrap();
        let link = folder.join(link);
        symlink("0123456789abcdef", &link).unwrap();
        let refused = uninstall(&scratch, 1);
        assert_eq!(refused["result"], "refused");
        let why = reason(&refused, unit);
        let command = format!("it is {state}; `systemctl --user disable --now {unit}`");
        assert_eq!(why, command);
        fs::remove_file(link).unwrap();
    }
    let service = units(&scratch).join("night.service");
    let text = fs::read_to_string(&service).unwrap();
    let changed = text.replace("RestartSec=30s", "RestartSec=5s");
    assert_ne!(text, changed);
    fs::write(&service, &changed).unwrap();
    let refused = uninstall(&scratch, 1);
    let why = reason(&refused, "night.service");
    assert!(
        why.contains("service uninstall --force --name night"),
        "{why}"
    );
    assert_eq!(fs::read_to_string(&service).unwrap(), changed);
    assert!(units(&scratch).join("night.timer").exists());
    assert!(scratch.root.join(".premath").exists());
}

#[test]
fn no_batch_begins_while_the_harness_is_removed_and_there_is_one_removal() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let removing = RepositoryRemoval::try_begin(&scratch.root).unwrap();
    assert!(removing.is_some());
    let refused = uninstall(&scratch, 1);
    let why = reason(&refused, "/repo");
    assert!(why.contains("another `premath uninstall`"), "{why}");
    let said = "`premath uninstall` is removing the harness from";
    scratch.batch("true", "true").end().exits(2).says(said);
    let worker = scratch.worker(0, "w", "true", "true").end().exits(2);
    worker.says(said);
    assert_eq!(scratch.issue("a")["status"], "open");
    assert_eq!(scratch.steps(), [Value::Null; 0]);
    drop(removing);
    let batch = RepositoryUse::begin(&scratch.root).unwrap();
    let refused = uninstall(&scratch, 1);
    assert!(reason(&refused, "/repo").contains("a batch"), "{refused}");
    drop(batch);
    scratch.batch("true", "true").end().exits(0);
    assert_eq!(uninstall(&scratch, 0)["result"], "done");
    assert!(!scratch.root.join(".git/premath-use.flock").exists());
}
