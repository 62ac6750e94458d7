//! Worktrees, lanes and what is in them.

use crate::scratch::{Scratch, age, commit};
use git2::Repository;
use premath_memory::roots::LaneState;
use premath_memory::{LockState, WorktreeLock, lane_lock};
use std::fs;
use std::time::Duration;

#[test]
fn a_registration_that_leads_elsewhere_removes_nothing_there() {
    let scratch = Scratch::new();
    scratch.lane("l1");
    let elsewhere = scratch.root.parent().unwrap().join("elsewhere");
    let planted = elsewhere.join(".premath/issues.jsonl.torn-1");
    fs::create_dir_all(elsewhere.join(".premath/step")).unwrap();
    fs::write(&planted, "{").unwrap();
    age(&planted, 20);
    let link = elsewhere.join(".git").display().to_string();
    fs::write(scratch.root.join(".git/worktrees/l1/gitdir"), link).unwrap();
    scratch.doctor_finds("worktree", "/elsewhere");
    assert_eq!(scratch.clean(&["--salvage", "--older-than", "0s"]), [""; 0]);
    assert!(planted.exists() && elsewhere.join(".premath/step").exists());
}

#[test]
fn a_worktree_that_is_gone_is_unregistered_unless_it_is_locked() {
    let scratch = Scratch::new();
    let (gone, locked) = (scratch.lane("gone"), scratch.lane("locked"));
    let registration = scratch.git.find_worktree("locked").unwrap();
    registration.lock(Some("on a stick")).unwrap();
    scratch.doctor_is_content();
    fs::remove_dir_all(&gone).unwrap();
    fs::remove_dir_all(&locked).unwrap();
    scratch.doctor_finds("worktree", "/gone");
    assert_eq!(scratch.clean(&[]), [gone.display().to_string()]);
    let said = scratch.doctor_is_content();
    assert!(said.contains("it is locked (on a stick)"), "{said}");
}

#[test]
fn commits_of_a_worktree_that_is_gone_are_not_lost() {
    let scratch = Scratch::new();
    let lane = scratch.lane("l1");
    let next = commit(&scratch.git, None, &[scratch.first], 20);
    Repository::open(&lane)
        .unwrap()
        .set_head_detached(next)
        .unwrap();
    fs::remove_dir_all(&lane).unwrap();
    scratch.doctor_finds("worktree", "/l1");
    assert_eq!(scratch.clean(&["--salvage", "--older-than", "0s"]), [""; 0]);
    scratch.branch("rescued", next);
    assert_eq!(scratch.clean(&[]).len(), 1);
    scratch.doctor_is_content();
}

#[test]
fn a_broken_worktree_is_distinguished_from_one_that_is_gone() {
    let scratch = Scratch::new();
    let lane = scratch.lane("l1");
    fs::write(scratch.root.join(".git/worktrees/l1/HEAD"), "nonsense\n").unwrap();
    scratch.doctor_finds("worktree", "/l1");
    fs::write(
        scratch.root.join(".git/worktrees/l1/HEAD"),
        "ref: refs/heads/none\n",
    )
    .unwrap();
    let finding = scratch.doctor_finds("worktree", "/l1");
    assert_eq!(finding["reason"], "its HEAD has no commit");
    fs::write(
        scratch.root.join(".git/worktrees/l1/HEAD"),
        "ref: refs/heads/l1\n",
    )
    .unwrap();
    scratch.doctor_is_content();
    fs::write(lane.join(".premath-is-ours"), "").unwrap();
    fs::remove_file(lane.join(".git")).unwrap();
    scratch.doctor_finds("worktree", "/l1");
    assert_eq!(scratch.clean(&["--salvage", "--older-than", "0s"]), [""; 0]);
}

#[test]
fn changes_in_a_worktree_that_the_harness_made_are_a_finding() {
    let scratch = Scratch::new();
    let lane = scratch.lane("l1");
    fs::write(lane.join("new"), "x").unwrap();
    let said = scratch.doctor_is_content();
    assert!(said.contains("1 changed path not made by a step"), "{said}");
    fs::write(
        scratch.root.join(".git/worktrees/l1/premath-provisioned"),
        "",
    )
    .unwrap();
    let finding = scratch.doctor_finds("worktree", "/l1");
    assert_eq!(finding["failureClass"], "worktree_dirty");
    assert_eq!(scratch.clean(&["--salvage", "--older-than", "0s"]), [""; 0]);
    fs::remove_file(lane.join("new")).unwrap();
    scratch.doctor_is_content();
}

#[test]
fn salvage_keeps_the_registration_that_it_is_in() {
    let scratch = Scratch::new();
    let lane = scratch.lane("l1");
    let place = ".git/worktrees/l1/premath-salvage/a/1";
    scratch.file(&format!("{place}/file"), "bytes", 20);
    age(&scratch.root.join(place), 20);
    fs::remove_dir_all(&lane).unwrap();
    assert!(
        scratch
            .doctor_is_content()
            .contains("its git folder holds salvage")
    );
    assert_eq!(scratch.clean(&["--older-than", "0s"]), [""; 0]);
    assert_eq!(scratch.clean(&["--salvage"]), [place]);
    scratch.doctor_finds("worktree", "/l1");
    assert_eq!(scratch.clean(&[]), [lane.display().to_string()]);
    scratch.doctor_is_content();
}

#[test]
fn a_live_lane_keeps_its_things() {
    let scratch = Scratch::new();
    let lane = scratch.lane("l1");
    let held = WorktreeLock::acquire(&lane, Duration::ZERO).unwrap();
    scratch.closed(scratch.first);
    let old = commit(&scratch.git, None, &[scratch.first], 20);
    scratch.branch("harness/a/1", scratch.first);
    scratch.branch("harness/salvage/a/1", old);
    scratch.file(".git/refs/heads/harness/b/1.lock", "", 1);
    scratch.file(".git/worktrees/l1/index.lock", "", 1);
    scratch.file("artifacts/streams/w.b.1.work.stdout", "x", 0);
    let said = scratch.doctor_is_content();
    assert!(said.contains("a lane works in it (pid "), "{said}");
    let everything_goes = &["--salvage", "--older-than", "0s"];
    assert_eq!(scratch.clean(everything_goes), [""; 0]);
    drop(held);
    // A child that another test starts right now has the descriptor until it
    // is a program of its own.
    let folder = scratch.git.path().join("worktrees/l1");
    while lane_lock(&folder).unwrap() != LockState::Free {
        std::thread::yield_now();
    }
    assert_eq!(scratch.run(&["doctor"]).code, 1);
    assert_eq!(scratch.clean(everything_goes).len(), 5);
    scratch.doctor_is_content();
}

#[test]
fn a_checkout_whose_lane_is_gone_goes_when_lanes_may_go() {
    let scratch = Scratch::new();
    let lane = scratch.lane("l1");
    let kept = LaneState::at(&scratch.root, &lane);
    let gone = LaneState::at(&scratch.root, &lane.with_file_name("l2"));
    for state in [&kept, &gone] {
        state.prepare().unwrap();
        fs::create_dir_all(state.checkout.join("src")).unwrap();
        fs::create_dir_all(&state.changes).unwrap();
    }
    let foreign = gone.checkout.with_file_name("mine-0123456789ab");
    fs::create_dir(&foreign).unwrap();
    let said = scratch.doctor_is_content();
    assert!(
        said.contains("`premath clean --lanes` removes it"),
        "{said}"
    );
    assert_eq!(scratch.clean(&[]), [""; 0]);
    let name = gone.checkout.display().to_string();
    assert_eq!(scratch.clean(&["--lanes"]), [name]);
    for path in [&gone.checkout, &gone.changes, &gone.folder] {
        assert!(!path.exists(), "{}", path.display());
    }
    for path in [&kept.checkout, &kept.changes, &kept.folder, &foreign] {
        assert!(path.exists(), "{}", path.display());
    }
}
