//! `premath doctor` and `premath clean`, on repositories with something wrong.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on ends, and says where"
)]

use git2::{Oid, Repository, RepositoryInitOptions, Signature, Time};
use premath_memory::{Hold, WorktreeLock, lane_lock};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: u64 = 86_400;

/// A repository with two commits on `main`, the first also the target's.
struct Scratch {
    _guard: tempfile::TempDir,
    root: PathBuf,
    git: Repository,
    first: Oid,
}

impl Scratch {
    fn new() -> Self {
        let guard = tempfile::tempdir().unwrap();
        let root = guard.path().canonicalize().unwrap().join("main");
        let mut options = RepositoryInitOptions::new();
        let git = Repository::init_opts(&root, options.initial_head("main")).unwrap();
        let first = commit(&git, Some("refs/heads/main"), &[], 30);
        fs::write(root.join(".git/info/exclude"), "/.premath/\n/artifacts/\n").unwrap();
        fs::create_dir(root.join(".premath")).unwrap();
        let scratch = Self {
            _guard: guard,
            root,
            git,
            first,
        };
        scratch.branch("harness/integration", first);
        scratch.issues(&[]);
        scratch
    }

    fn branch(&self, name: &str, at: Oid) {
        let name = format!("refs/heads/{name}");
        self.git.reference(&name, at, true, "test").unwrap();
    }

    fn has(&self, reference: &str) -> bool {
        self.git.find_reference(reference).is_ok()
    }

    /// Writes issue memory.
    fn issues(&self, rows: &[Value]) {
        let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
        fs::write(self.root.join(".premath/issues.jsonl"), text).unwrap();
    }

    fn trajectory(&self, rows: &[Value]) {
        let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
        fs::write(self.root.join(".premath/harness_trajectory.jsonl"), text).unwrap();
    }

    /// Writes issue `a`, closed by its first step, which landed at a commit.
    fn closed(&self, commit: Oid) {
        self.issues(&[closed("a")]);
        self.trajectory(&[landed("a", commit)]);
    }

    /// Writes a file that is so many days old.
    fn file(&self, path: &str, text: &str, days: u64) -> PathBuf {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        age(&path, days);
        path
    }

    fn run(&self, args: &[&str]) -> Answer {
        self.run_in(&self.root, args)
    }

    fn run_in(&self, folder: &Path, args: &[&str]) -> Answer {
        #[expect(
            clippy::disallowed_methods,
            reason = "the test plays the shell that runs premath"
        )]
        let mut command = Command::new(env!("CARGO_BIN_EXE_premath"));
        command.args(args).current_dir(folder);
        for name in ["PREMATH_STEP_ID", "PREMATH_ISSUES_PATH"] {
            command.env_remove(name);
        }
        Answer::of(command.output().unwrap())
    }

    /// Expects one finding, that of an item of this kind and name.
    #[track_caller]
    fn doctor_finds(&self, kind: &str, name: &str) -> Value {
        let answer = self.run(&["doctor", "--json"]);
        assert_eq!(answer.code, 1, "{}{}", answer.stdout, answer.stderr);
        let document = answer.json();
        let text = self.run(&["doctor"]);
        assert_eq!(document["findingCount"], 1, "{}", text.stdout);
        assert!(text.stdout.contains("  finding "), "{}", text.stdout);
        assert!(text.stdout.contains("\n1 finding"), "{}", text.stdout);
        let standing = ["removable", "finding"];
        let items = document["items"].as_array().unwrap();
        let finding = items
            .iter()
            .find(|item| standing.iter().any(|word| item["standing"] == *word))
            .unwrap();
        assert_eq!(finding["kind"], kind);
        let found = finding["name"].as_str().unwrap();
        assert!(found.ends_with(name), "{found}");
        finding.clone()
    }

    #[track_caller]
    fn doctor_is_content(&self) -> String {
        let answer = self.run(&["doctor"]);
        assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
        assert!(answer.stdout.contains("all in order"), "{}", answer.stdout);
        answer.stdout
    }

    /// Cleans, after a dry run that lists the same and changes nothing;
    /// returns the names of what went.
    #[track_caller]
    fn clean(&self, args: &[&str]) -> Vec<String> {
        let dry = [&["clean", "--dry-run"], args].concat();
        let before = everything(&self.root);
        let shown = self.run(&dry);
        assert_eq!(shown.code, 0, "{}", shown.stderr);
        let listed = self.run(&[&dry[..], &["--json"]].concat()).json();
        assert_eq!(
            everything(&self.root),
            before,
            "a dry run changed something"
        );
        assert_eq!(listed["dryRun"], true);
        let done = self.run(&[&["clean", "--json"], args].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        let document = done.json();
        assert_eq!(document["items"], listed["items"]);
        assert_eq!(document["dryRun"], false);
        let items = document["items"].as_array().unwrap();
        assert_eq!(shown.stdout.lines().count(), items.len() + 1);
        let names = items.iter().map(|item| item["name"].as_str().unwrap());
        names
            .map(|name| name.replace(&format!("{}/", self.root.display()), ""))
            .collect()
    }

    /// Adds a worktree in which a lane once was.
    fn lane(&self, name: &str) -> PathBuf {
        let path = self.root.parent().unwrap().join(name);
        self.git.worktree(name, &path, None).unwrap();
        // The branch that git makes with it is none of the harness's.
        drop(WorktreeLock::acquire(&path, Duration::ZERO).unwrap());
        path
    }
}

struct Answer {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Answer {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}

fn seconds_ago(days: u64) -> SystemTime {
    SystemTime::now() - Duration::from_secs(days * DAY)
}

fn age(path: &Path, days: u64) {
    let file = fs::File::open(path).unwrap();
    file.set_modified(seconds_ago(days)).unwrap();
}

/// Makes a commit that is so many days old, with a tree like no other's.
fn commit(git: &Repository, at: Option<&str>, parents: &[Oid], days: u64) -> Oid {
    let then = seconds_ago(days).duration_since(UNIX_EPOCH).unwrap();
    let time = Time::new(i64::try_from(then.as_secs()).unwrap(), 0);
    let author = Signature::new("t", "t@localhost", &time).unwrap();
    let tree = git.treebuilder(None).unwrap().write().unwrap();
    let tree = git.find_tree(tree).unwrap();
    let parents: Vec<_> = parents
        .iter()
        .map(|id| git.find_commit(*id).unwrap())
        .collect();
    let parents: Vec<_> = parents.iter().collect();
    let text = format!("{days} days ago, {} parents", parents.len());
    git.commit(at, &author, &author, &text, &tree, &parents)
        .unwrap()
}

fn closed(id: &str) -> Value {
    json!({"id": id, "title": id, "status": "closed", "closed_by_step": format!("w.{id}.1"),
        "lease_generation": 1})
}

fn landed(id: &str, commit: Oid) -> Value {
    json!({"schema": 1, "stepKind": "premath.harness.step.v1", "stepId": format!("w.{id}.1"),
        "action": "worker.loop", "resultClass": "completed", "issueId": id,
        "finishedAt": "2026-03-05T10:00:00Z",
        "landing": {"target": "harness/integration", "commit": commit.to_string()}})
}

/// Every file and its content, but the lock files that are held for a look.
fn everything(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(everything(&path));
            found.push((path, Vec::new()));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_repository_in_order_says_what_landed() {
    let scratch = Scratch::new();
    scratch.closed(scratch.first);
    let said = scratch.doctor_is_content();
    let last = said.lines().last().unwrap();
    assert_eq!(
        last,
        "all in order: 1 closed issue is on harness/integration"
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
fn what_is_no_repository_or_cannot_be_asked_for_is_2() {
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
fn a_registration_that_leads_elsewhere_takes_nothing_away_there() {
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
fn a_broken_worktree_is_told_apart_from_one_that_is_gone() {
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
    assert!(said.contains("1 changed path that no step left"), "{said}");
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
fn a_ref_lock_that_nobody_holds_goes() {
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
    // In the main worktree, where no lane ever was, it is somebody's own.
    scratch.file(".git/index.lock", "", 1);
    assert!(!scratch.doctor_is_content().contains("index.lock"));
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
    assert!(said.contains("takes 3 old one(s) away, 2.9 KiB"), "{said}");
    assert_eq!(scratch.clean(&["--disk-budget", "4000"]), [""; 0]);
    assert_eq!(scratch.clean(&["--disk-budget", "3.9kB"]), ["w.a.1"]);
    let tight = scratch.run(&["clean", "--dry-run", "--disk-budget", "0", "--json"]);
    assert_eq!(tight.json()["overBudget"], 1000);
    assert!(
        tight.stderr.contains("still 1000 B above"),
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
fn salvage_keeps_the_registration_that_it_lies_in() {
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
    while lane_lock(&folder).unwrap() != Hold::Free {
        std::thread::yield_now();
    }
    assert_eq!(scratch.run(&["doctor"]).code, 1);
    assert_eq!(scratch.clean(everything_goes).len(), 5);
    scratch.doctor_is_content();
}

#[test]
fn a_batch_that_can_be_resumed_is_no_fault_and_its_leases_wait_for_it() {
    let scratch = Scratch::new();
    let expired = "2026-03-05T10:00:00Z";
    let lease = json!({"lease_id": "l", "owner": "w", "acquired_at": expired,
        "expires_at": expired, "generation": 1});
    let held = json!({"id": "a", "title": "a", "status": "in_progress", "assignee": "w",
        "lease": lease, "lease_generation": 1});
    scratch.issues(&[held, closed("b")]);
    let document = scratch.run(&["doctor", "--json"]).json();
    assert_eq!(document["findingCount"], 2);
    assert_eq!(document["items"][0]["failureClass"], "lease_stale");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let host = rustix_host();
    scratch.trajectory(&[json!({"schema": 1, "stepKind": "premath.harness.step.v1",
        "stepId": "coordinator.hb1_x.start", "action": "coordinator.batch_start",
        "resultClass": "ok", "batchId": "hb1_x", "finishedAt": expired,
        "batch": {"settingsDigest": "s", "holder": {"host": host, "bootId": format!("not {boot}"),
            "pid": 1, "started": 1}}})]);
    let said = scratch.doctor_is_content();
    assert!(said.contains("the same command goes on with it"), "{said}");
    assert!(said.contains("the lease of w is over"), "{said}");
    assert!(said.contains("w.b.1 has no row"), "{said}");
}

fn rustix_host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname")
        .unwrap()
        .trim()
        .to_owned()
}

#[test]
fn a_corrupt_line_is_shown_and_left_out_of_a_new_file() {
    let scratch = Scratch::new();
    let memory = scratch.root.join(".premath/issues.jsonl");
    let text = "{\"id\":\"a\",\"title\":\"a\"}\n{\"id\":\n{\"id\":\"b\",\"title\":\"b\"}\n";
    fs::write(&memory, text).unwrap();
    scratch.branch(
        "harness/c/1",
        commit(&scratch.git, None, &[scratch.first], 20),
    );
    let finding = scratch.doctor_finds("memory", "issues.jsonl:2:6");
    assert_eq!(finding["failureClass"], "issue_memory_corrupt");
    let refused = scratch.run(&["clean"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("issues.jsonl:2:6: "),
        "{}",
        refused.stderr
    );

    let repaired = scratch.run(&["doctor", "--repair-into", "mended.jsonl", "--json"]);
    assert_eq!(repaired.code, 1);
    let document = repaired.json();
    assert_eq!(document["repair"]["rowCount"], 2);
    assert_eq!(document["repair"]["leftOut"], json!([2]));
    assert_eq!(fs::read_to_string(&memory).unwrap(), text);
    let again = scratch.run(&["doctor", "--repair-into", "mended.jsonl"]);
    assert_eq!(again.code, 1);
    assert!(
        again.stderr.contains("cannot make mended.jsonl"),
        "{}",
        again.stderr
    );
    let over = scratch.run(&["doctor", "--repair-into", ".premath/issues.jsonl"]);
    assert!(over.stderr.contains("cannot make"), "{}", over.stderr);
    fs::rename(scratch.root.join("mended.jsonl"), &memory).unwrap();
    // Now it is certain that there is no issue `c`.
    scratch.doctor_finds("step_branch", "harness/c/1");
}

#[test]
fn issue_memory_is_looked_for_where_the_environment_says() {
    let scratch = Scratch::new();
    let elsewhere = scratch.file("elsewhere.jsonl", "[1]\n", 0);
    #[expect(
        clippy::disallowed_methods,
        reason = "the test plays the shell that runs premath"
    )]
    let mut command = Command::new(env!("CARGO_BIN_EXE_premath"));
    let command = command.arg("doctor").current_dir(&scratch.root);
    let command = command.env("PREMATH_ISSUES_PATH", &elsewhere);
    let answer = Answer::of(command.output().unwrap());
    assert_eq!(answer.code, 1);
    assert!(
        answer.stdout.contains("elsewhere.jsonl:1:1"),
        "{}",
        answer.stdout
    );
}

#[test]
fn a_corrupt_trajectory_is_shown_and_stops_a_clean_up() {
    let scratch = Scratch::new();
    scratch.trajectory(&[json!({"schema": 2})]);
    let finding = scratch.doctor_finds("memory", "harness_trajectory.jsonl:1:1");
    assert_eq!(finding["failureClass"], "trajectory_corrupt");
    assert_eq!(scratch.run(&["clean"]).code, 2);
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
    assert!(answer.stderr.contains("cleaning up is a person's"));
    assert!(scratch.root.join(".premath/issues.jsonl.torn-1").exists());
}
