//! What landed, and the branches, marks and locks about it.

use crate::scratch::{Scratch, closed, commit, landed};
use git2::Repository;
use serde_json::json;
use std::fs;

#[test]
fn a_closed_issue_whose_commit_is_not_on_the_target_is_named() {
    let scratch = Scratch::new();
    let next = commit(&scratch.git, None, &[scratch.first], 1);
    scratch.closed(next);
    let finding = scratch.doctor_finds("issue", "a");
    let reason = finding["reason"].as_str().unwrap();
    assert!(reason.contains("is not on harness/integration"), "{reason}");
    // No clean-up brings it there.
    assert_eq!(scratch.clean(&["--salvage", "--older-than", "0s"]), [""; 0]);
    scratch.branch("harness/integration", next);
    scratch.doctor_is_content();
}

#[test]
fn a_target_that_is_gone_counts_where_the_main_worktree_holds_its_work() {
    let scratch = Scratch::new();
    scratch.closed(scratch.first);
    let mut target = scratch
        .git
        .find_reference("refs/heads/harness/integration")
        .unwrap();
    target.delete().unwrap();
    let said = scratch.doctor_is_content();
    assert!(
        said.contains("the branch is gone; 1 closed issue is in the main"),
        "{said}"
    );
    let next = commit(&scratch.git, None, &[scratch.first], 1);
    scratch.trajectory(&[landed("a", next)]);
    assert_eq!(scratch.run(&["doctor", "--json"]).json()["findingCount"], 2);
}

#[test]
fn a_step_branch_whose_work_landed_goes_and_other_work_stays() {
    let scratch = Scratch::new();
    let next = commit(&scratch.git, None, &[scratch.first], 20);
    scratch.issues(&[
        closed("a"),
        json!({"id": "b", "title": "b", "status": "blocked"}),
    ]);
    scratch.trajectory(&[landed("a", scratch.first)]);
    scratch.branch("harness/a/1", scratch.first);
    scratch.branch("harness/b/3", next);
    scratch.branch("harness/mine", next);
    scratch.doctor_finds("step_branch", "harness/a/1");
    assert_eq!(scratch.clean(&[]), ["harness/a/1"]);
    assert!(!scratch.has("refs/heads/harness/a/1"));
    scratch.doctor_is_content();
    assert!(
        scratch
            .doctor_is_content()
            .contains("b is blocked: its work is kept")
    );
    assert_eq!(scratch.clean(&["--salvage", "--older-than", "0s"]), [""; 0]);
    assert!(scratch.has("refs/heads/harness/b/3"));
    assert!(scratch.has("refs/heads/harness/integration"));
}

#[test]
fn work_that_nothing_else_holds_goes_by_salvage_alone() {
    let scratch = Scratch::new();
    scratch.closed(scratch.first);
    let next = commit(&scratch.git, None, &[scratch.first], 20);
    scratch.branch("harness/a/2", next);
    scratch.doctor_finds("step_branch", "harness/a/2");
    assert_eq!(scratch.clean(&["--older-than", "0s"]), [""; 0]);
    assert_eq!(
        scratch.clean(&["--salvage", "--older-than", "30d"]),
        [""; 0]
    );
    assert_eq!(scratch.clean(&["--salvage"]), ["harness/a/2"]);
    scratch.doctor_is_content();
}

#[test]
fn a_branch_that_is_checked_out_stays() {
    let scratch = Scratch::new();
    scratch.closed(scratch.first);
    scratch.branch("harness/a/1", scratch.first);
    let lane = scratch.lane("l1");
    let linked = Repository::open(&lane).unwrap();
    linked.set_head("refs/heads/harness/a/1").unwrap();
    scratch.doctor_is_content();
    assert_eq!(scratch.clean(&["--salvage", "--older-than", "0s"]), [""; 0]);
    assert!(scratch.has("refs/heads/harness/a/1"));
    // Where its worktree is gone, both go at once.
    fs::remove_dir_all(&lane).unwrap();
    assert_eq!(scratch.run(&["doctor", "--json"]).json()["findingCount"], 2);
    let lane = lane.display().to_string();
    assert_eq!(scratch.clean(&[]), [&*lane, "harness/a/1"]);
    assert!(!scratch.has("refs/heads/harness/a/1"));
    assert!(!scratch.root.join(".git/worktrees/l1").exists());
    scratch.doctor_is_content();
}

#[test]
fn a_branch_that_a_rebase_goes_back_to_stays() {
    let scratch = Scratch::new();
    scratch.closed(scratch.first);
    scratch.branch("harness/a/1", scratch.first);
    scratch.lane("l1");
    let record = ".git/worktrees/l1/rebase-merge/head-name";
    scratch.file(record, "refs/heads/harness/a/1\n", 0);
    assert!(scratch.doctor_is_content().contains("checked out in"));
    fs::remove_file(scratch.root.join(record)).unwrap();
    scratch.doctor_finds("step_branch", "harness/a/1");
}

#[test]
fn a_mark_of_a_closed_issue_goes_and_one_of_an_open_issue_stays() {
    let scratch = Scratch::new();
    scratch.closed(scratch.first);
    let mark = |issue: &str| format!("refs/harness/landing/{issue}/1");
    for issue in ["a", "b"] {
        let name = mark(issue);
        scratch
            .git
            .reference(&name, scratch.first, true, "test")
            .unwrap();
    }
    scratch.issues(&[closed("a"), json!({"id": "b", "title": "b"})]);
    scratch.doctor_finds("mark", &mark("a"));
    assert_eq!(scratch.clean(&[]), [mark("a")]);
    assert!(scratch.has(&mark("b")) && !scratch.has(&mark("a")));
    scratch.doctor_is_content();
}

#[test]
fn a_stale_ref_lock_is_removed() {
    let scratch = Scratch::new();
    scratch.lane("l1");
    let planted = [
        ".git/refs/heads/harness/integration.lock",
        ".git/refs/heads/harness/x/1.lock",
        ".git/refs/harness/landing/a/1.lock",
        ".git/worktrees/l1/index.lock",
    ];
    for path in planted {
        scratch.file(path, "", 0);
        assert!(scratch.doctor_is_content().contains("git may hold it"));
        scratch.file(path, "", 1);
        scratch.doctor_finds("lock", path);
        assert_eq!(scratch.clean(&[]), [path]);
        scratch.doctor_is_content();
    }
    // In the main worktree, which is not a lane, it belongs to the user.
    scratch.file(".git/index.lock", "", 1);
    assert!(!scratch.doctor_is_content().contains("index.lock"));
}
