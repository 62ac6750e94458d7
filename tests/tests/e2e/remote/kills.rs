//! A batch that is killed while a step works in another repository.

use super::{WORK, Worlds, wishing};
use premath_tests::{Dice, Length, PATIENCE, until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::time::Duration;

/// Says that it runs, and ends on request.
const WAITING: &str = r#"echo part > src/part.txt; touch "$HOME/started"
until [ -e "$HOME/go" ]; do sleep 0.05; done"#;

#[test]
fn a_step_that_was_killed_there_is_taken_up_and_done_again() {
    let worlds = Worlds::new(1, &[wishing("a", &["world:there"])]);
    let batch = worlds.batch(WAITING).start();
    let started = worlds.here.home().join("started");
    until(PATIENCE, || started.exists().then_some(())).expect("the work starts");
    batch.signal(Signal::KILL);
    batch.wait();
    worlds.here.no_process_left();
    let worktree = worlds.worktrees().remove(0);
    assert!(worktree.join("src/part.txt").exists());
    let step = &worlds.session(0)["step"];
    assert_eq!(step["world"]["name"], "there");
    assert_eq!(step["world"]["worktree"], worktree.to_str().unwrap());
    fs::write(worlds.here.home().join("go"), "").unwrap();
    let ended = worlds.batch(WAITING).end().exits(0);
    let booted = &ended.events()[1];
    assert_eq!(booted["salvage"], "harness/salvage/a/1 (in world there)");
    assert_eq!(worlds.here.issue("a")["closed_by_step"], "worker.1.a.2");
    let row = worlds.here.steps().pop().unwrap();
    assert_eq!(row["world"]["branch"], "harness/a/2");
    let branches = ["harness/a/2", "harness/salvage/a/1", "main"];
    assert_eq!(worlds.there.branches(), branches);
    for branch in &branches[..2] {
        let part = worlds.there.file_on(branch, "src/part.txt");
        assert_eq!(part.as_deref(), Some("part\n"), "{branch}");
    }
    worlds.is_tidy_there();
}

#[test]
fn a_step_that_was_killed_after_its_close_leaves_its_branch_there() {
    let worlds = Worlds::new(1, &[wishing("a", &["world:there"])]);
    let hook = r#"touch litter.txt "$HOME/started"; until [ -e "$HOME/go" ]; do sleep 0.05; done"#;
    let batch = worlds.batch(WORK).env("PREMATH_STOP_CMD", hook).start();
    let started = worlds.here.home().join("started");
    until(PATIENCE, || started.exists().then_some(())).expect("the hook starts");
    batch.signal(Signal::KILL);
    batch.wait();
    worlds.here.no_process_left();
    assert_eq!(worlds.here.issue("a")["status"], "closed");
    assert_eq!(worlds.session(0)["step"]["world"]["name"], "there");
    fs::write(worlds.here.home().join("go"), "").unwrap();
    let ended = worlds.batch(WORK).env("PREMATH_STOP_CMD", hook).end();
    let salvage = ended.exits(0).events()[1]["salvage"].clone();
    assert_eq!(salvage, "harness/salvage/a/1 (in world there)");
    let work = worlds.there.file_on("harness/a/1", "src/a.txt");
    assert_eq!(work.as_deref(), Some("there\n"));
    assert_eq!(worlds.there.file_on("harness/a/1", "litter.txt"), None);
    assert_eq!(worlds.session(0)["step"], Value::Null);
    worlds.is_tidy_there();
}

#[test]
fn a_batch_that_is_killed_again_and_again_leaves_each_work_there_once() {
    let length = Length::asked("40 kills of a batch that works in another world");
    let (kills, count) = length.pick((4, 10), (40, 100));
    let mut dice = Dice::from_environment();
    let ids: Vec<String> = (0..count).map(|n| format!("k-{n:03}")).collect();
    let rows: Vec<Value> = ids.iter().map(|id| wishing(id, &["world:there"])).collect();
    let worlds = Worlds::new(2, &rows);
    let closed = || {
        let issues = worlds.here.issues();
        issues.values().filter(|r| r["status"] == "closed").count()
    };
    for part in 0..kills {
        let goal = count * part / (kills + 1);
        let mut running = worlds.batch(WORK).start();
        until(PATIENCE, || {
            (closed() > goal || running.is_over()).then_some(())
        })
        .expect("the batch makes progress");
        // The moment within a step: chance, not a wait for anything.
        std::thread::sleep(Duration::from_micros(dice.below(150_000)));
        if !running.is_over() {
            running.signal(Signal::KILL);
        }
        running.wait();
        worlds.here.no_process_left();
    }
    worlds.batch(WORK).end().exits(0);
    let mut expected = vec!["main".to_owned()];
    for id in &ids {
        let issue = worlds.here.issue(id);
        let branch = format!("harness/{id}/{}", issue["lease_generation"]);
        let said = format!("{branch}: seed {}", dice.seed());
        let work = worlds.there.file_on(&branch, &format!("src/{id}.txt"));
        assert_eq!(work.as_deref(), Some("there\n"), "{said}");
        let closing = worlds.here.steps_of(id).pop().unwrap();
        assert_eq!(closing["stepId"], issue["closed_by_step"], "{said}");
        assert_eq!(closing["world"]["crossing"], "accepted", "{said}");
        expected.push(branch);
    }
    let mut branches = worlds.there.branches();
    branches.retain(|name| !name.starts_with("harness/salvage/"));
    expected.sort();
    assert_eq!(branches, expected, "seed {}", dice.seed());
    assert_eq!(worlds.here.leftovers(), [""; 0]);
    worlds.is_tidy_there();
}
