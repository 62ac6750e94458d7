//! Files that are left over.

use crate::scratch::{Scratch, age, commit};
use std::fs;

#[test]
fn old_torn_and_temporary_files_go_and_young_ones_stay() {
    let scratch = Scratch::new();
    let torn = scratch.file(".premath/issues.jsonl.torn-1", "{", 20);
    let young = scratch.file(".premath/issues.jsonl.torn-2", "{", 1);
    scratch.doctor_finds("torn", "issues.jsonl.torn-1");
    assert_eq!(scratch.clean(&[]), [".premath/issues.jsonl.torn-1"]);
    assert!(!torn.exists() && young.exists());
    let temporary = ".premath/.premath-tmp-4194300-1-0";
    scratch.file(temporary, "half", 20);
    scratch.doctor_finds("temporary", temporary);
    assert_eq!(scratch.clean(&[]), [temporary]);
    scratch.doctor_is_content();
    assert_eq!(
        scratch.clean(&["--older-than", "12h"]),
        [".premath/issues.jsonl.torn-2"]
    );
}

#[test]
fn step_output_goes_by_age_and_the_budget() {
    let scratch = Scratch::new();
    let output = |step: &str, days| {
        let text = "x".repeat(1000);
        scratch.file(
            &format!("artifacts/streams/{step}.work.stdout"),
            &text,
            days,
        );
    };
    output("w.a.1", 40);
    output("w.b.1", 30);
    output("w.c.1", 20);
    output("w.d.1", 1);
    let said = scratch.doctor_is_content();
    assert!(
        said.contains("3 old one(s) can be removed with `premath clean`, 2.9 KiB"),
        "{said}"
    );
    assert_eq!(scratch.clean(&["--disk-budget", "4000"]), [""; 0]);
    assert_eq!(scratch.clean(&["--disk-budget", "3.9kB"]), ["w.a.1"]);
    let tight = scratch.run(&["clean", "--dry-run", "--disk-budget", "0", "--json"]);
    assert_eq!(tight.json()["overBudget"], 1000);
    assert!(
        tight.stderr.contains("still 1000 B over"),
        "{}",
        tight.stderr
    );
    assert_eq!(scratch.clean(&[]), ["w.b.1", "w.c.1"]);
    assert_eq!(scratch.clean(&["--older-than", "0s"]), ["w.d.1"]);
}

#[test]
fn the_budget_counts_worktrees_that_the_harness_made_and_salvage() {
    let scratch = Scratch::new();
    let lane = scratch.lane("l1");
    fs::write(lane.join("cache"), "x".repeat(5000)).unwrap();
    scratch.file(".git/premath-salvage/a/1/file", &"x".repeat(300), 1);
    scratch.file("artifacts/ciwitness/w.json", &"x".repeat(20), 1);
    let over = || {
        let args = ["clean", "--dry-run", "--disk-budget", "0", "--json"];
        scratch.run(&args).json()["overBudget"].as_u64().unwrap()
    };
    assert_eq!(over(), 320);
    let made = scratch.root.join(".git/worktrees/l1/premath-provisioned");
    fs::write(made, "").unwrap();
    let link = fs::metadata(lane.join(".git")).unwrap().len();
    assert_eq!(over(), 5320 + link);
}

#[test]
fn salvage_goes_by_its_flag_and_age() {
    let scratch = Scratch::new();
    let old = commit(&scratch.git, None, &[scratch.first], 20);
    let young = commit(&scratch.git, None, &[scratch.first], 1);
    scratch.branch("harness/salvage/a/1", old);
    scratch.branch("harness/salvage/a/2", young);
    scratch.branch("harness/moved/fix", old);
    let kept = scratch.file(".git/premath-salvage/a/1/nested/file", "bytes", 20);
    let folder = scratch.root.join(".git/premath-salvage/a/1");
    age(&folder, 20);
    scratch.doctor_is_content();
    assert_eq!(scratch.clean(&["--older-than", "0s"]), [""; 0]);
    assert!(kept.exists());
    assert_eq!(
        scratch.clean(&["--salvage"]),
        [
            "harness/moved/fix",
            "harness/salvage/a/1",
            ".git/premath-salvage/a/1"
        ]
    );
    assert!(!scratch.root.join(".git/premath-salvage").exists());
    assert!(scratch.has("refs/heads/harness/salvage/a/2"));
}

#[test]
fn images_that_no_batch_used_for_long_go() {
    let scratch = Scratch::new();
    let images = scratch.cache().join("premath/images");
    let ids = ["a", "b", "c"].map(|digit| digit.repeat(64));
    for (id, days) in ids.iter().zip([20, 20, 1]) {
        fs::create_dir_all(images.join(id).join("etc")).unwrap();
        fs::write(images.join(id).join("etc/passwd"), "root").unwrap();
        std::os::unix::fs::symlink("/", images.join(id).join("out")).unwrap();
        let lock = images.join(format!("{id}.flock"));
        fs::write(&lock, "").unwrap();
        age(&lock, days);
    }
    let unfinished = images.join(format!("{}.new", ids[0]));
    fs::create_dir(&unfinished).unwrap();
    for other in ["notes", "x.new"] {
        fs::create_dir(images.join(other)).unwrap();
    }
    let kept = premath_memory::CacheUse::begin(&images.join(format!("{}.flock", ids[1])));
    let kept = kept.unwrap().unwrap();
    age(&images.join(format!("{}.flock", ids[1])), 20);
    scratch.doctor_is_content();
    let dry = scratch.run(&["clean", "--dry-run"]);
    assert!(
        dry.stdout.contains("last used 20 days ago"),
        "{}",
        dry.stdout
    );
    assert!(images.join(&ids[0]).exists());
    assert_eq!(scratch.clean(&[]), [ids[0].as_str()]);
    assert!(!images.join(&ids[0]).exists() && !unfinished.exists());
    for stays in [ids[1].as_str(), ids[2].as_str(), "notes", "x.new"] {
        assert!(images.join(stays).exists(), "{stays}");
    }
    drop(kept);
    assert_eq!(
        scratch.clean(&["--older-than", "0s"]),
        [ids[1].as_str(), ids[2].as_str()]
    );
}
