//! `kill -9` in the middle of a batch, again and again: the same command finishes it, nothing is lost and nothing done twice.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests: what is not there fails the test that asked for it"
)]

use premath_tests::{Dice, Length, PATIENCE, Run, Running, Scratch, issue, until};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

/// Real edits: a file of the issue's own, a file that all share, sometimes a
/// commit, and a child that would outlive a harness that does not look.
const WORK: &str = r#"echo "$PREMATH_STEP_ID" >> "src/$PREMATH_ISSUE_ID.txt"
echo "$PREMATH_ISSUE_ID" >> src/shared.txt
setsid sleep 600 > /dev/null 2>&1 &
case "$PREMATH_ISSUE_ID" in *[05]) git add -A && git commit -qm "own: $PREMATH_ISSUE_ID" ;; esac
sleep 0.02"#;

const VERIFY: &str = r#"[ "$(cat "src/$PREMATH_ISSUE_ID.txt")" = "$PREMATH_STEP_ID" ]"#;

struct Campaign {
    scratch: Scratch,
    dice: Dice,
    total: usize,
    /// The whole rows of the two files at the last kill.
    acknowledged: Acknowledged,
}

#[derive(Default)]
struct Acknowledged {
    trajectory: Vec<Value>,
    /// The highest generation and, where closed, the step, of each issue.
    issues: BTreeMap<String, (u64, Option<Value>)>,
    /// Issues that were reported as closed.
    reported: BTreeSet<String>,
}

impl Campaign {
    fn new(total: usize) -> Self {
        let rows: Vec<_> = (0..total).map(|n| issue(&format!("k-{n:04}"))).collect();
        let dice = Dice::from_environment();
        let _ = writeln!(
            std::io::stderr(),
            "crash campaign: PREMATH_TESTS_SEED={}",
            dice.seed()
        );
        Self {
            scratch: Scratch::with_issues(4, &rows),
            dice,
            total,
            acknowledged: Acknowledged::default(),
        }
    }

    /// The same command each time; its leases would outlive any test.
    fn batch(&self) -> Run {
        self.scratch
            .batch(WORK, VERIFY)
            .args(["--lease-ttl-seconds", "3600"])
    }

    fn closed(&self) -> usize {
        let issues = self.scratch.issues();
        issues
            .values()
            .filter(|row| row["status"] == "closed")
            .count()
    }

    /// Kills the coordinator at a random moment of its `part` of `parts`.
    fn kill(&mut self, part: usize, parts: usize) {
        let mut batch = self.batch().start();
        let from = self.total * part / (parts + 1);
        let width = (self.total / (parts + 1)).max(1);
        let goal = from + self.dice.below(width as u64) as usize;
        until(PATIENCE, || {
            (self.closed() >= goal || batch.is_over()).then_some(())
        })
        .expect("the batch makes progress");
        // The moment within a step: chance, not a wait for anything.
        std::thread::sleep(Duration::from_micros(self.dice.below(60_000)));
        assert!(!batch.is_over(), "the batch was over: {}", batch.stderr());
        batch.signal(Signal::KILL);
        let killed = Instant::now();
        self.acknowledge(&batch);
        let ended = batch.wait();
        assert_eq!(ended.signal, Some(9));
        self.scratch
            .no_process_within(Duration::from_secs(1).saturating_sub(killed.elapsed()));
        self.acknowledged_is_there();
    }

    /// Records what a reader could have seen by now.
    fn acknowledge(&mut self, batch: &Running) {
        for event in batch.events() {
            if event["event"] == "step.ended" && event["ending"] == "closed" {
                let id = event["issueId"].as_str().unwrap().to_owned();
                self.acknowledged.reported.insert(id);
            }
        }
        self.acknowledged.trajectory = self.scratch.trajectory();
        self.acknowledged.issues = self.standing();
    }

    fn standing(&self) -> BTreeMap<String, (u64, Option<Value>)> {
        let of = |row: &Value| {
            let closed = (row["status"] == "closed").then(|| row["closed_by_step"].clone());
            (row["lease_generation"].as_u64().unwrap_or(0), closed)
        };
        let issues = self.scratch.issues();
        issues
            .iter()
            .map(|(id, row)| (id.clone(), of(row)))
            .collect()
    }

    /// No row that could be read is gone, and what was closed stays closed by
    /// the same step.
    fn acknowledged_is_there(&self) {
        let rows = self.scratch.trajectory();
        let before = &self.acknowledged.trajectory;
        assert!(rows.len() >= before.len(), "trajectory rows were lost");
        assert_eq!(&rows[..before.len()], &before[..]);
        let now = self.standing();
        for (id, (generation, closed)) in &self.acknowledged.issues {
            let (now_generation, now_closed) = &now[id];
            assert!(now_generation >= generation, "{id} went back");
            if closed.is_some() {
                assert_eq!(closed, now_closed, "{id} was closed by another step");
            }
        }
        for id in &self.acknowledged.reported {
            assert!(now[id].1.is_some(), "{id} was reported and is not closed");
        }
    }

    fn every_issue_is_closed_once(&self) {
        let mut completed: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let mut steps = BTreeSet::new();
        for row in self.scratch.steps() {
            assert!(
                steps.insert(row["stepId"].to_string()),
                "two rows of one step: {row}"
            );
            if row["resultClass"] == "completed" {
                let id = row["issueId"].as_str().unwrap().to_owned();
                completed.entry(id).or_default().push(row);
            }
        }
        for (id, row) in self.scratch.issues() {
            assert_eq!(row["status"], "closed", "{id}");
            let rows = completed.remove(&id).unwrap_or_default();
            assert_eq!(rows.len(), 1, "`completed` rows of {id}: {rows:#?}");
            assert_eq!(rows[0]["stepId"], row["closed_by_step"], "{id}");
        }
        assert!(completed.is_empty(), "{completed:?}");
    }

    /// The lanes' branches hold the work of each issue once, by its last step.
    fn every_edit_is_there_once(&self) {
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        for lane in 1..=4 {
            let branch = format!("lane-{lane}");
            let shared = self.scratch.file_on(&branch, "src/shared.txt");
            for id in shared.unwrap_or_default().lines() {
                *found.entry(id.to_owned()).or_default() += 1;
                let text = self.scratch.file_on(&branch, &format!("src/{id}.txt"));
                let step = self.scratch.issue(id)["closed_by_step"].clone();
                assert_eq!(text.as_deref().map(str::trim), step.as_str(), "{id}");
            }
        }
        assert_eq!(found.len(), self.total);
        assert!(found.values().all(|count| *count == 1), "{found:?}");
    }

    fn git_is_whole(&self) {
        self.scratch
            .git_command(["fsck", "--strict", "--no-dangling"])
            .end()
            .exits(0);
        for lane in &self.scratch.lanes {
            let status = self
                .scratch
                .git_command(["status", "--porcelain"])
                .within(lane)
                .end()
                .exits(0);
            assert_eq!(status.stdout, "", "{}", lane.display());
        }
    }

    fn issue_memory_is_compact(&self) {
        let text = fs::read_to_string(self.scratch.issues_path()).unwrap();
        assert_eq!(text.lines().count(), self.total);
    }

    /// A kill between an append and its seal is not a change from outside.
    fn no_other_process_changed_issue_memory(&self) {
        let mut rows = self.scratch.trajectory();
        rows.retain(|row| row["action"] == "coordinator.memory_changed");
        assert_eq!(rows, Vec::<Value>::new());
    }
}

#[test]
fn a_batch_that_is_killed_again_and_again_closes_every_issue_once() {
    let length = Length::asked("the crash campaign of 10 kills on 200 issues");
    let (kills, total) = length.pick((3, 60), (10, 200));
    let mut campaign = Campaign::new(total);
    let began = Instant::now();
    for part in 0..kills {
        campaign.kill(part, kills);
    }
    campaign.batch().end().exits(0);
    // Dead holders were taken over, not waited for.
    assert!(began.elapsed() < Duration::from_secs(1800));
    campaign.acknowledged_is_there();
    campaign.every_issue_is_closed_once();
    campaign.every_edit_is_there_once();
    campaign.git_is_whole();
    campaign.issue_memory_is_compact();
    campaign.no_other_process_changed_issue_memory();
    campaign.scratch.no_process_left();
    assert_eq!(campaign.scratch.leftovers(), [""; 0]);
}
