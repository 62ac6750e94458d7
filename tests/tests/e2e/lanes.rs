//! Lanes that are made for a batch: there when it begins, in order when it
//! ends, and no more of them than the settings say.

use crate::landing::{OWN, TARGET, every_close_is_on_the_target, refs_are_accounted_for};
use premath_tests::{PATIENCE, Run, Scratch, binaries, issue, until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// A scratch repository without worktrees, with settings of its own.
fn scratch(issues: &[&str], settings: &str) -> Scratch {
    let rows: Vec<Value> = issues.iter().map(|id| issue(id)).collect();
    let scratch = Scratch::with_issues(0, &rows);
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    scratch
}

fn lane(scratch: &Scratch, number: usize) -> PathBuf {
    scratch
        .folder()
        .join(format!("repo-lanes/lane-{number:02}"))
}

/// The worktrees as git lists them, without the main one.
fn listed(scratch: &Scratch) -> Vec<PathBuf> {
    let list = scratch
        .git_command(["worktree", "list", "--porcelain"])
        .end()
        .exits(0);
    let mut found: Vec<PathBuf> = list
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("worktree "))
        .map(PathBuf::from)
        .filter(|path| *path != scratch.root)
        .collect();
    found.sort();
    found
}

fn lanes(scratch: &Scratch, count: usize) -> Vec<PathBuf> {
    (1..=count).map(|number| lane(scratch, number)).collect()
}

/// The only copy of closed work is on the branch of its lane.
#[test]
fn no_lane_is_made_where_there_is_no_issue_store() {
    let scratch = Scratch::new(0);
    let run = scratch.batch_on(&[], "true", "true");
    let ended = run.args(["--lanes", "2"]).end().exits(2);
    assert!(ended.stderr.contains("issues.jsonl does not exist"));
    assert!(ended.stderr.contains("premath init"));
    assert!(!scratch.folder().join("repo-lanes").exists());
    assert!(!scratch.root.join(".git/worktrees").exists());
}

#[test]
fn work_that_no_other_branch_has_goes_only_where_it_is_discarded() {
    let scratch = scratch(&["a"], "");
    let batch = |landing: &str| {
        let batch = scratch.landing_batch_on(&[], OWN, "true");
        batch.args(["--lanes", "1", "--landing", landing]).end()
    };
    batch("none").exits(0);
    let on = "harness-lane/lane-01";
    let file = || scratch.file_on(on, "src/a.txt");
    assert_eq!(file().as_deref(), Some("x\n"));
    let clean = || scratch.premath(["clean", "--lanes"]).end();
    let ended = clean().exits(1);
    let text = "no other branch has the commits of harness-lane/lane-01";
    assert!(ended.stderr.contains(text), "{}", ended.stderr);
    let uninstall = |arguments: &[&str]| {
        let run = scratch.premath(["uninstall", "--yes"]);
        let run = run.env("XDG_RUNTIME_DIR", scratch.home().join("runtime"));
        run.args(arguments.iter().copied()).end()
    };
    let ended = uninstall(&[]).exits(1);
    assert!(ended.stderr.contains(on), "{}", ended.stderr);
    // The lane leaves its branch where work lands.
    fs::write(
        scratch.root.join(".premath/issues.jsonl"),
        format!("{}\n", issue("b")),
    )
    .unwrap();
    batch("merge").exits(0);
    clean().exits(0);
    assert!(!lane(&scratch, 1).exists());
    assert_eq!(file().as_deref(), Some("x\n"));
    uninstall(&["--discard-work"]).exits(0);
    assert_eq!(scratch.branches(), ["main"]);
}

#[test]
fn the_first_command_needs_no_worktrees() {
    let scratch = scratch(&["a", "b", "c"], "");
    scratch
        .landing_batch(OWN, "true")
        .args(["--lanes", "2"])
        .end()
        .exits(0)
        .says("lane-01: created");
    assert_eq!(listed(&scratch), lanes(&scratch, 2));
    for id in ["a", "b", "c"] {
        let file = scratch.file_on(TARGET, &format!("src/{id}.txt"));
        assert_eq!(file.as_deref(), Some("x\n"));
    }
    assert_eq!(scratch.branches(), [TARGET, "main"]);
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
}

#[test]
fn without_any_worktree_the_hint_says_what_to_type() {
    let scratch = scratch(&["a"], "");
    scratch
        .landing_batch("true", "true")
        .end()
        .exits(2)
        .says("hint: create lanes with --lanes 2");
    assert_eq!(scratch.issue("a"), issue("a"));
}

#[test]
fn a_program_that_is_not_committed_is_refused_before_the_batch() {
    let scratch = scratch(&["a"], "");
    fs::write(scratch.root.join("agent.sh"), "#!/bin/sh\n").unwrap();
    let batch = || {
        let batch = scratch.landing_batch("./agent.sh", "true");
        batch.args(["--lanes", "1"]).end()
    };
    let said = "`./agent.sh` is not in the commit that lanes begin at";
    let refused = batch().exits(2);
    refused.says(&format!("error: {said}\nhint: commit it"));
    let planned = scratch.landing_batch("./agent.sh", "true");
    let planned = planned.args(["--lanes", "1", "--dry-run"]).end().exits(3);
    assert!(planned.stdout.contains(said), "{}", planned.stdout);
    assert_eq!(listed(&scratch), lanes(&scratch, 0));
    assert_eq!(scratch.issue("a"), issue("a"));
}

#[test]
fn the_settings_say_how_many_there_are() {
    let scratch = scratch(
        &["a"],
        "[worktrees]\ncount = 3\nroot = \"../{repo}-lanes\"\n",
    );
    scratch.landing_batch("true", "true").end().exits(0);
    assert_eq!(listed(&scratch), lanes(&scratch, 3));
    fs::write(
        scratch.root.join("harness.toml"),
        "[worktrees]\ncount = 1\n",
    )
    .unwrap();
    scratch
        .landing_batch("true", "true")
        .end()
        .exits(0)
        .says("lane-03: removed, not needed");
    assert_eq!(listed(&scratch), lanes(&scratch, 1));
}

#[test]
fn what_was_left_in_a_lane_is_kept_and_the_lane_works() {
    let scratch = scratch(&["a"], "[worktrees]\ncount = 1\n");
    scratch.landing_batch("true", "true").end().exits(0);
    let lane = lane(&scratch, 1);
    fs::write(lane.join("src/base.txt"), "by hand\n").unwrap();
    fs::write(lane.join("src/new.txt"), "by hand\n").unwrap();
    fs::create_dir_all(lane.join("ignored")).unwrap();
    fs::write(lane.join("ignored/cache"), "warm\n").unwrap();
    scratch.write_issues(format!("{}\n", issue("b")).as_bytes());
    scratch.landing_batch(OWN, "true").end().exits(0);
    assert_eq!(scratch.issue("b")["status"], "closed");
    let kept = "harness/salvage/worker.1/0";
    let rows = scratch.trajectory();
    let row = rows.iter().find(|row| row["action"] == "worker.salvage");
    assert_eq!(row.unwrap()["salvage"], kept);
    for name in ["src/base.txt", "src/new.txt"] {
        assert_eq!(scratch.file_on(kept, name).as_deref(), Some("by hand\n"));
        assert_ne!(scratch.file_on(TARGET, name).as_deref(), Some("by hand\n"));
    }
    // What git ignores may be a step's: nothing of it stays for the next one.
    assert!(!lane.join("ignored").exists());
}

#[test]
fn a_lane_that_cannot_be_had_costs_itself_alone() {
    let scratch = scratch(&["a", "b"], "[worktrees]\ncount = 2\n");
    let theirs = lane(&scratch, 1);
    fs::create_dir_all(&theirs).unwrap();
    fs::write(theirs.join("mine.txt"), "mine\n").unwrap();
    scratch
        .landing_batch(OWN, "true")
        .end()
        .exits(1)
        .says("lane-01: error: cannot create a lane");
    assert_eq!(scratch.issue("a")["status"], "closed");
    assert_eq!(scratch.issue("b")["status"], "closed");
    assert_eq!(
        fs::read_to_string(theirs.join("mine.txt")).unwrap(),
        "mine\n"
    );
    let rows = scratch.trajectory();
    let row = rows
        .iter()
        .find(|row| row["action"] == "coordinator.lane_given_up");
    let row = row.expect("the lane has a row");
    assert_eq!(row["failureClasses"][0], "worktree_invalid");
    let why = row["nextStep"].as_str().unwrap();
    assert!(
        why.contains("lane-01: ") && why.contains("move it away"),
        "{why}"
    );
    let saved = scratch.kept_report();
    assert!(
        saved.contains(&format!("  lane-01: worktree_invalid: {why}\n")),
        "{saved}"
    );
}

#[test]
fn a_lane_that_a_killed_batch_left_is_taken_up() {
    let scratch = scratch(&["a"], "[worktrees]\ncount = 1\n");
    let work = r#"echo half > src/half.txt; touch "$HOME/begun"
[ -e "$HOME/again" ] || sleep 1000"#;
    let batch = || scratch.landing_batch(work, "true");
    let running = batch().start();
    premath_tests::until(premath_tests::PATIENCE, || {
        scratch.home().join("begun").exists().then_some(())
    })
    .unwrap();
    running.signal(Signal::KILL);
    running.wait();
    scratch.no_process_left();
    // And its folder, meanwhile, lost its link to the repository.
    fs::remove_file(lane(&scratch, 1).join(".git")).unwrap();
    fs::write(scratch.home().join("again"), "").unwrap();
    batch().end().exits(0).says("repaired: its .git file");
    let rows = scratch.trajectory();
    let row = rows
        .iter()
        .find(|row| row["stepId"] == "worker.salvage.worker.1.a.1");
    assert_eq!(row.unwrap()["salvage"], "harness/salvage/a/1");
    assert_eq!(row.unwrap()["issueId"], "a");
    assert_eq!(
        scratch
            .file_on("harness/salvage/a/1", "src/half.txt")
            .as_deref(),
        Some("half\n")
    );
    assert_eq!(
        scratch.file_on(TARGET, "src/half.txt").as_deref(),
        Some("half\n")
    );
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
}

#[test]
fn two_batches_that_begin_together_make_each_lane_once() {
    let scratch = scratch(&["a", "b", "c", "d"], "");
    let batch = |prefix: &str| -> Run {
        scratch
            .run(&binaries().coordinator)
            .args(["--json", "--override-reason", "test", "--lanes", "2"])
            .args(["--work-cmd", OWN, "--verify-cmd", "true"])
            .args(["--worker-prefix", prefix])
    };
    let running = [batch("x").start(), batch("y").start()];
    for running in running {
        let ended = running.wait();
        // The second process may find a lane in use, and reports that.
        assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    }
    assert_eq!(listed(&scratch), lanes(&scratch, 2));
    for id in ["a", "b", "c", "d"] {
        assert_eq!(scratch.issue(id)["status"], "closed", "{id}");
    }
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
}

#[test]
fn a_person_and_the_time_end_the_making_of_lanes() {
    let scratch = scratch(&["a"], "");
    let many = || scratch.landing_batch(OWN, "true").args(["--lanes", "1000"]);
    let running = many().start();
    let first = lane(&scratch, 1);
    until(PATIENCE, || first.exists().then_some(())).expect("a lane is made");
    running.signal(Signal::INT);
    let ended = running.wait().exits(130);
    let said = "of 1000 lanes exist; they are kept for the next batch";
    let there = listed(&scratch).len();
    assert!((1..1000).contains(&there), "{there}");
    let ended = ended.says(&format!("interrupted: only {there} {said}"));
    assert_eq!(ended.stdout, "", "no batch began");

    let over = many().args(["--max-duration", "1ms"]).end().exits(1);
    over.says("`max_duration` reached: only ").says(said);
    assert!(listed(&scratch).len() < 1000);
    assert_eq!(scratch.issue("a")["status"], "open");
}

#[test]
fn each_lane_has_a_number_ports_and_a_database_suffix_of_its_own() {
    let scratch = Scratch::with_issues(2, &["a", "b"].map(issue));
    let work = r#"touch "$HOME/begun-$PREMATH_ISSUE_ID"
for id in a b; do until [ -e "$HOME/begun-$id" ]; do sleep 0.01; done; done
echo "$PREMATH_LANE_INDEX $PREMATH_PORT_BASE $PREMATH_DATABASE_SUFFIX" > "src/$PREMATH_ISSUE_ID.txt""#;
    // The verification of a step runs with the numbers of its lane.
    let verify = r#"[ -z "$PREMATH_ISSUE_ID" ] \
  || grep -qx "$PREMATH_LANE_INDEX $PREMATH_PORT_BASE $PREMATH_DATABASE_SUFFIX" \
    "src/$PREMATH_ISSUE_ID.txt""#;
    scratch.landing_batch(work, verify).end().exits(0);
    let mut found = ["src/a.txt", "src/b.txt"].map(|path| scratch.file_on(TARGET, path).unwrap());
    found.sort();
    assert_eq!(found, ["1 20000 _lane1\n", "2 20100 _lane2\n"]);
}

#[test]
fn a_clean_up_removes_free_lanes_when_asked_and_the_next_batch_makes_them_again() {
    let scratch = scratch(&["a"], "[worktrees]\ncount = 2\n");
    scratch.landing_batch(OWN, "true").end().exits(0);
    let verify = scratch.root.with_file_name("repo-verify");
    assert!(verify.exists());
    let held = lane(&scratch, 2);
    fs::write(held.join("src/base.txt"), "by hand\n").unwrap();

    let dry = scratch
        .premath(["clean", "--lanes", "--dry-run", "--json"])
        .end()
        .exits(0);
    let items = dry.json()["items"].clone();
    let name = lane(&scratch, 1).display().to_string();
    let found = items.as_array().unwrap().iter();
    let lanes_of: Vec<&Value> = found.filter(|item| item["kind"] == "worktree").collect();
    assert_eq!(lanes_of.len(), 1, "{items}");
    assert_eq!(lanes_of[0]["name"], name.as_str());
    assert_eq!(listed(&scratch), lanes(&scratch, 2));

    // Without the word no lane goes.
    scratch.premath(["clean"]).end().exits(0);
    assert_eq!(listed(&scratch), lanes(&scratch, 2));
    scratch.premath(["clean", "--lanes"]).end().exits(0);
    assert_eq!(listed(&scratch), lanes(&scratch, 2)[1..]);
    assert!(!lane(&scratch, 1).exists());

    scratch
        .git_command(["-C", held.to_str().unwrap(), "checkout", "-q", "--", "."])
        .end()
        .exits(0);
    scratch.premath(["clean", "--lanes"]).end().exits(0);
    assert_eq!(listed(&scratch), lanes(&scratch, 0));
    assert!(
        !held.parent().unwrap().exists(),
        "its folder is empty and stays"
    );
    assert!(!verify.exists(), "its folder is empty and stays");
    assert_eq!(lane_files(&scratch), [""; 0]);

    scratch.write_issues(format!("{}\n", issue("b")).as_bytes());
    scratch.landing_batch(OWN, "true").end().exits(0);
    assert_eq!(scratch.issue("b")["status"], "closed");
    assert_eq!(listed(&scratch), lanes(&scratch, 2));
}

/// Returns what the harness keeps of lanes in the main worktree.
fn lane_files(scratch: &Scratch) -> Vec<String> {
    let entries = fs::read_dir(scratch.root.join(".premath/lanes")).unwrap();
    let mut names = Vec::new();
    for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
        let files = fs::read_dir(entry.path()).unwrap().flatten();
        names.extend(files.map(|file| file.path().display().to_string()));
    }
    names
}
