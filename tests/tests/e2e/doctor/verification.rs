//! `premath doctor --verify`: the verification without any work.

use super::{SETTINGS, doctor, ground, listed, set};
use premath_tests::{Scratch, mode_works};
use std::fs;

const TARGET: &str = "refs/heads/harness/integration";

/// Sets the verify command.
fn verify(scratch: &Scratch, command: &str) {
    let key = format!("verify_cmd = '''{command}'''");
    set(scratch, &SETTINGS.replace("verify_cmd = \"true\"", &key));
}

/// Returns the names of everything in the folder of the repository and beside it.
fn places(scratch: &Scratch) -> Vec<String> {
    let mut names: Vec<String> = listed(scratch).into_keys().collect();
    names.retain(|name| !name.contains("/artifacts"));
    let beside = fs::read_dir(scratch.folder()).unwrap().flatten();
    names.extend(beside.map(|entry| entry.path().display().to_string()));
    names.sort();
    names
}

#[test]
fn it_runs_in_a_clean_checkout_and_leaves_nothing_but_its_witness() {
    let scratch = ground();
    // What is not committed is not there, and it is confined.
    let escaped = scratch.root.join("escaped");
    let command = format!(
        "touch {} || true; cat src/base.txt && test ! -e src/new.txt",
        escaped.display()
    );
    verify(&scratch, &command);
    fs::write(scratch.root.join("src/new.txt"), "x").unwrap();
    doctor(&scratch, &[]).end().exits(0);
    let before = places(&scratch);
    let head = scratch.git().head().unwrap().target();
    let well = doctor(&scratch, &["--verify"]).end().exits(0).json();
    assert_eq!(well["verification"], "passed", "{well}");
    assert_eq!(places(&scratch), before);
    assert_eq!(scratch.git().head().unwrap().target(), head);
    assert!(
        scratch.git().find_reference(TARGET).is_err(),
        "none is made"
    );
    assert!(!escaped.exists());
    scratch.no_process_left();
    let not_run = doctor(&scratch, &[]).end().exits(0).json();
    assert_eq!(not_run["verification"], "not_run");
    let inside = doctor(&scratch, &["--verify"]).env("PREMATH_STEP_ID", "s");
    inside.end().exits(2).says("inside a step");
}

#[test]
fn the_configured_sandbox_is_examined_and_landlock_has_no_verification() {
    let scratch = ground();
    for mode in ["none", "landlock"] {
        set(
            &scratch,
            &format!("{SETTINGS}[sandbox]\nmode = \"{mode}\"\n"),
        );
        let explain = scratch.premath(["sandbox", "explain"]).end();
        if !mode_works(explain, mode, mode) {
            continue;
        }
        let well = doctor(&scratch, &[]).end().json();
        assert_eq!(well["sandbox"]["mode"], mode, "{well}");
        let verified = doctor(&scratch, &["--verify"]).end();
        match mode {
            "none" => assert_eq!(verified.exits(0).json()["verification"], "passed"),
            _ => drop(verified.exits(2).says("not available in the sandbox mode")),
        }
    }
}

/// Puts a file into a commit of the landing target above the checked out one.
fn land(scratch: &Scratch, file: &str) {
    let git = scratch.git();
    let head = git.head().unwrap().peel_to_commit().unwrap();
    let tree = head.tree().unwrap();
    let src = git.find_tree(tree.get_name("src").unwrap().id()).unwrap();
    let mut src = git.treebuilder(Some(&src)).unwrap();
    let blob = git.blob(b"red\n").unwrap();
    src.insert(file, blob, 0o100_644).unwrap();
    let mut tree = git.treebuilder(Some(&tree)).unwrap();
    tree.insert("src", src.write().unwrap(), 0o040_000).unwrap();
    let tree = git.find_tree(tree.write().unwrap()).unwrap();
    let who = git2::Signature::now("t", "t@localhost").unwrap();
    git.commit(Some(TARGET), &who, &who, "red", &tree, &[&head])
        .unwrap();
}

#[test]
fn a_red_landing_target_is_a_finding_with_the_end_of_its_output() {
    let scratch = ground();
    let command = r"test ! -e src/red.txt || { printf 'one\n\033[2Jtwo\n'; echo why >&2; exit 3; }";
    verify(&scratch, command);
    doctor(&scratch, &["--verify"]).end().exits(0);
    land(&scratch, "red.txt");
    let tip = scratch.git().find_reference(TARGET).unwrap().target();
    let red = doctor(&scratch, &["--verify"]).end().exits(1).json();
    assert_eq!(red["verification"], "failed");
    let mut findings = red["findings"].as_array().unwrap().iter();
    let finding = findings.find(|one| one["id"] == "baseline-red").unwrap();
    let problem = finding["problem"].as_str().unwrap();
    let said = "it printed last: one | \\u{1b}[2Jtwo | why; output: /";
    assert!(problem.contains("startup_check_failed"), "{problem}");
    assert!(problem.contains(said), "{problem}");
    assert!(problem.contains("the verify command failed"), "{problem}");
    assert!(problem.ends_with(".startup.stderr"), "{problem}");
    let run = scratch.premath(["doctor", "--verify"]).end().exits(1);
    assert!(!run.stdout.contains('\u{1b}'), "{}", run.stdout);
    assert!(run.stdout.contains("two | why"), "{}", run.stdout);
    assert_eq!(scratch.git().find_reference(TARGET).unwrap().target(), tip);
}

#[test]
fn the_output_that_is_named_is_the_one_that_has_text() {
    let scratch = ground();
    for (command, end) in [
        ("echo base-is-red; exit 1", ".startup.stdout"),
        ("exit 7", "; exit code 7, no output"),
    ] {
        verify(&scratch, command);
        let red = doctor(&scratch, &["--verify"]).end().exits(1).json();
        let mut findings = red["findings"].as_array().unwrap().iter();
        let finding = findings.find(|one| one["id"] == "baseline-red").unwrap();
        let problem = finding["problem"].as_str().unwrap();
        assert!(problem.ends_with(end), "{problem}");
    }
}

#[test]
fn its_limit_ends_it() {
    let scratch = ground();
    verify(&scratch, "sleep 600");
    let text = fs::read_to_string(scratch.root.join("harness.toml")).unwrap();
    set(
        &scratch,
        &format!("{text}[supervision]\nverify_limit = \"1s\"\n"),
    );
    let red = doctor(&scratch, &["--verify"]).end().exits(1).json();
    assert_eq!(red["verification"], "failed", "{red}");
    let text = red["findings"].to_string();
    assert!(text.contains("gate_timeout"), "{text}");
    let timed_out = "the verification timed out after 1s (`verify_limit`), no output";
    assert!(text.contains(timed_out), "{text}");
    scratch.no_process_left();
}
