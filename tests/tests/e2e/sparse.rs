//! Worktrees with a sparse checkout.

use crate::landing::{TARGET, commit_to_the_target, every_close_is_on_the_target, first_parents};
use premath_tests::{PATIENCE, Scratch, issue, until};
use std::fs;
use std::path::Path;

/// Runs git in a folder, as a person does; returns what it prints.
fn git(scratch: &Scratch, at: &Path, arguments: &[&str]) -> String {
    let place = ["-C", at.to_str().unwrap()];
    let person = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
    let all = place.iter().chain(&person).chain(arguments).copied();
    scratch.git_command(all).end().exits(0).stdout
}

/// A repository with a folder `left` that a sparse checkout leaves out.
fn with_left_folder() -> Scratch {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    fs::create_dir(scratch.root.join("left")).unwrap();
    fs::write(scratch.root.join("left/kept.txt"), "kept\n").unwrap();
    git(&scratch, &scratch.root, &["add", "left"]);
    git(
        &scratch,
        &scratch.root,
        &["commit", "--quiet", "-m", "left", "--", "left"],
    );
    scratch
}

/// The work fails where the folder is there, and the verification where it is not.
const WORK: &str = r#"test ! -e left && echo x >> "src/$PREMATH_ISSUE_ID.txt""#;
const VERIFY: &str = "test -e left/kept.txt";

fn all_landed_with_what_was_left_out(scratch: &Scratch) {
    // One of them is the person's.
    assert_eq!(first_parents(scratch).len(), 1 + 2);
    every_close_is_on_the_target(scratch);
    let kept = scratch.file_on(TARGET, "left/kept.txt");
    assert_eq!(kept.as_deref(), Some("kept\n"));
    for id in ["a", "b"] {
        let file = scratch.file_on(TARGET, &format!("src/{id}.txt"));
        assert_eq!(file.as_deref(), Some("x\n"), "{id}");
    }
}

#[test]
fn work_in_a_sparse_worktree_lands_and_deletes_nothing_that_is_left_out() {
    let scratch = with_left_folder();
    let lane = &scratch.lanes[0];
    git(&scratch, lane, &["checkout", "--quiet", "--detach", "main"]);
    git(&scratch, lane, &["sparse-checkout", "set", "src"]);
    assert!(!lane.join("left").exists());
    scratch.landing_batch(WORK, VERIFY).end().exits(0);
    all_landed_with_what_was_left_out(&scratch);
    assert!(!lane.join("left").exists());
}

#[test]
fn lanes_of_a_sparse_repository_are_sparse_too() {
    let scratch = with_left_folder();
    git(&scratch, &scratch.root, &["sparse-checkout", "set", "src"]);
    let run = scratch.landing_batch_on(&[], WORK, VERIFY);
    run.args(["--lanes", "1"]).end().exits(0);
    all_landed_with_what_was_left_out(&scratch);
    let lane = scratch.folder().join("repo-lanes/lane-01");
    assert!(lane.join("src").exists() && !lane.join("left").exists());
    let changes = git(&scratch, &lane, &["status", "--porcelain"]);
    assert_eq!(changes, "");
}

#[test]
fn what_a_commit_adds_where_nothing_is_checked_out_stays_out_of_the_lane() {
    let scratch = with_left_folder();
    git(&scratch, &scratch.root, &["sparse-checkout", "set", "src"]);
    let batch = |work: &str| {
        let run = scratch.landing_batch_on(&[], work, VERIFY);
        run.args(["--lanes", "1"]).end().exits(0)
    };
    batch(WORK);
    // A person adds a file there.
    git(
        &scratch,
        &scratch.root,
        &["switch", "--quiet", "--detach", TARGET],
    );
    git(&scratch, &scratch.root, &["sparse-checkout", "disable"]);
    fs::write(scratch.root.join("left/new.txt"), "new\n").unwrap();
    git(&scratch, &scratch.root, &["add", "left"]);
    git(&scratch, &scratch.root, &["commit", "--quiet", "-m", "new"]);
    git(
        &scratch,
        &scratch.root,
        &["push", "--quiet", ".", &format!("HEAD:{TARGET}")],
    );
    git(&scratch, &scratch.root, &["sparse-checkout", "set", "src"]);
    scratch.write_issues(format!("{}\n", issue("c")).as_bytes());
    batch(WORK);
    let new = scratch.file_on(TARGET, "left/new.txt");
    assert_eq!(new.as_deref(), Some("new\n"));
    assert_eq!(scratch.file_on(TARGET, "src/c.txt").as_deref(), Some("x\n"));
}

#[test]
fn what_others_land_where_nothing_is_checked_out_stays_out_of_the_lane_too() {
    let scratch = with_left_folder();
    git(&scratch, &scratch.root, &["sparse-checkout", "set", "src"]);
    let verify = r#"test -e left/kept.txt || exit 1
touch "$HOME/wanted"
until [ -e "$HOME/made" ]; do sleep 0.01; done"#;
    let run = scratch.landing_batch_on(&[], WORK, verify);
    let batch = run.args(["--lanes", "1"]).start();
    let wanted = scratch.home().join("wanted");
    until(PATIENCE, || wanted.exists().then_some(())).expect("a verification begins");
    for path in ["left/kept.txt", "left/new.txt"] {
        commit_to_the_target(&scratch, path);
    }
    fs::write(scratch.home().join("made"), "").unwrap();
    batch.wait().exits(0);
    let lane = scratch.folder().join("repo-lanes/lane-01");
    assert!(lane.join("src").exists() && !lane.join("left").exists());
    for name in ["kept", "new"] {
        let file = scratch.file_on(TARGET, &format!("left/{name}.txt"));
        assert_eq!(file.as_deref(), Some("theirs\n"));
    }
    for id in ["a", "b"] {
        let file = scratch.file_on(TARGET, &format!("src/{id}.txt"));
        assert_eq!(file.as_deref(), Some("x\n"), "{id}");
    }
}

/// What git offers for large repositories and the harness does not read is named, with
/// what to do.
#[test]
fn an_index_that_is_split_or_sparse_is_named_with_the_way_out() {
    let way_out = |text: &str| -> Vec<String> {
        let start = text.find("with `git ").expect(text) + "with `git ".len();
        let command = text[start..].split('`').next().unwrap_or_default();
        command.split_whitespace().map(str::to_owned).collect()
    };
    for (name, arguments) in [
        ("split", &["update-index", "--split-index"][..]),
        (
            "sparse",
            &["sparse-checkout", "set", "--cone", "--sparse-index", "src"],
        ),
    ] {
        let scratch = with_left_folder();
        git(&scratch, &scratch.root, arguments);
        let batch = || {
            let run = scratch.landing_batch_on(&[], "touch src/x", "true");
            run.args(["--lanes", "1"]).end()
        };
        let refused = batch();
        assert_ne!(refused.code, Some(0), "{name}");
        let message = format!("it is a {name} index, which is not read");
        assert!(refused.stderr.contains(&message), "{}", refused.stderr);
        let command = way_out(&refused.stderr);
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        git(&scratch, &scratch.root, &command);
        batch().exits(0);
    }
}
