//! Doctor and clean-up beside a batch that runs, was cut, and is over.

use premath_tests::{PATIENCE, Run, Scratch, issue, until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

/// The first lands; the others wait in the middle of their work.
const WORK: &str = r#"echo x >> "src/$PREMATH_ISSUE_ID.txt"
[ "$PREMATH_ISSUE_ID" != a ] || exit 0
touch "$HOME/at-$PREMATH_ISSUE_ID"
until [ -e "$HOME/go" ]; do sleep 0.02; done"#;

fn batch(scratch: &Scratch) -> Run {
    scratch.landing_batch(WORK, "true")
}

/// Asks the doctor, and expects an exit code and texts.
#[track_caller]
fn doctor(scratch: &Scratch, code: i32, texts: &[&str]) {
    let said = scratch.premath(["doctor"]).end().exits(code).stdout;
    for text in texts {
        assert!(said.contains(text), "`{text}` was not said:\n{said}");
    }
}

/// Removes whatever is not held on to, and returns its names.
fn clean(scratch: &Scratch) -> Vec<String> {
    let cleaned = scratch
        .premath(["clean", "--older-than", "0s", "--json"])
        .end()
        .exits(0)
        .json();
    let items = cleaned["items"].as_array().unwrap();
    let name = |item: &Value| item["name"].as_str().unwrap().to_owned();
    items.iter().map(name).collect()
}

#[test]
fn settings_that_cannot_be_read_are_a_finding() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let file = scratch.root.join("harness.toml");
    for (text, error) in [
        (
            "[landing]\n[landing]\n",
            "harness.toml:2: duplicate key `landing`",
        ),
        (
            "[landing]\ntargt = \"x\"\n",
            "harness.toml:2: unknown key `targt`; did you mean `target`?",
        ),
    ] {
        fs::write(&file, text).unwrap();
        doctor(
            &scratch,
            1,
            &["settings\n  finding  ", error, "\n1 finding"],
        );
    }
}

#[test]
fn a_clean_up_takes_nothing_that_a_batch_needs_running_or_cut() {
    let scratch = Scratch::with_issues(2, &[issue("a"), issue("b"), issue("c")]);
    let running = batch(&scratch).start();
    let both = ["at-b", "at-c"].map(|name| scratch.home().join(name));
    let at = || both.iter().all(|path| path.exists()).then_some(());
    until(PATIENCE, at).expect("two issues are worked on");
    doctor(&scratch, 0, &["its coordinator runs", "a lane works in it"]);
    assert_eq!(clean(&scratch), [""; 0]);

    running.signal(Signal::KILL);
    running.wait();
    scratch.no_process_left();
    let cut = "was interrupted; the next run recovers it";
    doctor(&scratch, 0, &["the same command resumes it", cut]);
    let gone = clean(&scratch);
    assert!(
        gone.iter().all(|name| name.starts_with("worker.")),
        "{gone:?}"
    );
    fs::write(scratch.home().join("go"), "").unwrap();
    batch(&scratch).end().exits(0);
    for id in ["b", "c"] {
        let salvage = format!("harness/salvage/{id}/1");
        assert_eq!(
            scratch
                .file_on(&salvage, &format!("src/{id}.txt"))
                .as_deref(),
            Some("x\n"),
            "{id}"
        );
    }
    let landed = ": 3 closed issues are on harness/integration";
    doctor(&scratch, 0, &[landed]);
}

#[test]
fn a_closed_issue_whose_commit_left_the_target_is_found() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    batch(&scratch).end().exits(0);
    doctor(&scratch, 0, &[": 1 closed issue is on"]);
    let git = scratch.git();
    let target = git.find_branch("harness/integration", git2::BranchType::Local);
    let mut target = target.unwrap().into_reference();
    let before = target.peel_to_commit().unwrap().parent_id(0).unwrap();
    target.set_target(before, "test").unwrap();
    doctor(
        &scratch,
        1,
        &["is not on harness/integration", "\n1 finding"],
    );
}
