//! The commands themselves.

use crate::answer::Answer;
use crate::scratch::Scratch;
use std::fs;
use std::process::Command;

#[test]
fn a_repository_in_order_says_what_landed() {
    let scratch = Scratch::new();
    scratch.closed(scratch.first);
    let said = scratch.doctor_is_content();
    let last = said.lines().last().unwrap();
    assert_eq!(
        last,
        "no errors, 1 warning: 1 closed issue is on harness/integration"
    );
    assert_eq!(scratch.clean(&[]), [""; 0]);
    let document = scratch.run(&["doctor", "--json"]).json();
    assert_eq!(document["action"], "doctor");
    assert_eq!(document["result"], "accepted");
    assert_eq!(document["repository"], scratch.root.display().to_string());
    let elsewhere = scratch.root.parent().unwrap();
    let root = scratch.root.to_str().unwrap();
    let named = scratch.run_in(elsewhere, &["doctor", "--repo-root", root]);
    assert_eq!((named.code, named.stdout), (0, said));
}

#[test]
fn what_is_not_a_repository_or_cannot_be_asked_for_is_2() {
    let scratch = Scratch::new();
    let parent = scratch.root.parent().unwrap();
    for args in [
        &["doctor"][..],
        &["clean"],
        &["doctor", "--repo-root", "nowhere"],
        &["clean", "--older-than", "long"],
        &["clean", "--disk-budget", "much"],
    ] {
        let answer = scratch.run_in(parent, args);
        assert_eq!(answer.code, 2, "{args:?}: {}", answer.stderr);
    }
    fs::remove_file(scratch.root.join(".premath/issues.jsonl")).unwrap();
    let answer = scratch.run(&["doctor"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("premath init"), "{}", answer.stderr);
}

#[test]
fn a_steps_command_cleans_nothing_up() {
    let scratch = Scratch::new();
    scratch.file(".premath/issues.jsonl.torn-1", "{", 20);
    #[expect(
        clippy::disallowed_methods,
        reason = "the test plays the shell that runs premath"
    )]
    let mut command = Command::new(env!("CARGO_BIN_EXE_premath"));
    let command = command.args(["clean"]).current_dir(&scratch.root);
    let answer = Answer::of(command.env("PREMATH_STEP_ID", "w.a.1").output().unwrap());
    assert_eq!(answer.code, 1);
    assert!(answer.stderr.contains("only an operator may"));
    assert!(scratch.root.join(".premath/issues.jsonl.torn-1").exists());
}
