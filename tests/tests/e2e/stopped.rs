//! A worker that was stopped past its lease and continues: it changes nothing,
//! and its row says what issue memory shows then.

use premath_tests::{Ended, Run, Running, Scratch, issue, processes_in, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::time::Duration;

/// The work says that it runs, and ends when it is instructed to.
const WORK: &str = r#"echo zombie > src/zombie.txt; touch "$HOME/started"
until [ -e "$HOME/go" ]; do sleep 0.05; done"#;

/// A lease of the least length, and some.
const LEASE_OVER: Duration = Duration::from_secs(60);

struct Zombie {
    scratch: Scratch,
    worker: Running,
    stopped: Vec<Pid>,
    /// Issue memory just before it continues.
    before: Vec<u8>,
}

impl Zombie {
    /// Starts a worker and stops it in the middle of its work.
    fn stopped(with_supervisor: bool) -> Self {
        let scratch = Scratch::with_issues(2, &[issue("z-1")]);
        let worker = short(scratch.worker(0, "zombie", WORK, "true")).start();
        let started = scratch.home().join("started");
        until(premath_tests::PATIENCE, || started.exists().then_some(())).unwrap();
        let mut stopped = vec![worker.pid()];
        if with_supervisor {
            stopped.push(supervisor_of(worker.pid()));
        }
        for pid in &stopped {
            kill_process(*pid, Signal::STOP).unwrap();
        }
        Self {
            scratch,
            worker,
            stopped,
            before: Vec::new(),
        }
    }

    fn wait_for_stale(&self) {
        let stale = until(LEASE_OVER, || {
            let shown = self.scratch.premath(["issue", "show", "z-1", "--json"]);
            let state = shown.end().exits(0).json()["leaseState"].clone();
            std::thread::sleep(Duration::from_millis(200));
            (state == "stale").then_some(())
        });
        assert!(stale.is_some(), "the lease of a stopped worker never ends");
    }

    /// Lets the worker continue to its end; returns its one row.
    fn resume(&mut self) -> (Ended, Value) {
        self.before = self.scratch.issue_bytes();
        std::fs::write(self.scratch.home().join("go"), "").unwrap();
        for pid in &self.stopped {
            kill_process(*pid, Signal::CONT).unwrap();
        }
        until(premath_tests::PATIENCE, || {
            self.worker.is_over().then_some(())
        })
        .expect("the worker ends");
        let rows = self.scratch.steps();
        let row = rows.iter().find(|row| row["workerId"] == "zombie");
        let row = row.expect("the zombie has a row").clone();
        let ended = Ended {
            code: None,
            signal: None,
            stdout: self.worker.stdout(),
            stderr: self.worker.stderr(),
            took: Duration::ZERO,
        };
        (ended, row)
    }

    /// It changed nothing, reports that, and left its tree unchanged.
    #[track_caller]
    fn is_harmless(&mut self, result_class: &str) {
        let (ended, row) = self.resume();
        assert_eq!(row["resultClass"], result_class, "{row}\n{}", ended.stderr);
        let classes = row["failureClasses"].as_array().unwrap();
        assert!(
            classes
                .iter()
                .any(|class| class.as_str().unwrap().starts_with("lease_")),
            "{row}"
        );
        assert_eq!(
            String::from_utf8(self.scratch.issue_bytes()).unwrap(),
            String::from_utf8(self.before.clone()).unwrap(),
            "the zombie changed issue memory"
        );
        assert_eq!(self.scratch.file_on("lane-1", "src/zombie.txt"), None);
        assert!(!self.scratch.lanes[0].join("src/zombie.txt").exists());
        self.scratch.no_process_left();
    }
}

fn short(run: Run) -> Run {
    run.args(["--lease-ttl-seconds", "30"])
}

/// The child of the worker.
fn supervisor_of(worker: Pid) -> Pid {
    let path = format!("/proc/{0}/task/{0}/children", worker.as_raw_nonzero());
    let children = std::fs::read_to_string(path).unwrap();
    let child = children.split_whitespace().next().unwrap();
    Pid::from_raw(child.parse().unwrap()).unwrap()
}

fn closed_by_another(with_supervisor: bool) {
    let mut zombie = Zombie::stopped(with_supervisor);
    zombie.wait_for_stale();
    zombie
        .scratch
        .worker(1, "other", "echo other > src/other.txt", "true")
        .end()
        .exits(0);
    let row = zombie.scratch.issue("z-1");
    assert_eq!(row["status"], "closed", "the other took the stale lease");
    assert_eq!(row["closed_by_step"], "other.z-1.2");
    zombie.is_harmless("failed_issue_closed");
    assert!(zombie.scratch.file_on("lane-2", "src/other.txt").is_some());
}

fn held_by_another() {
    let mut zombie = Zombie::stopped(false);
    zombie.wait_for_stale();
    let claim = ["issue", "claim-next", "--assignee", "other", "--json"];
    let claimed = zombie.scratch.premath(claim).end().exits(0).json();
    assert_eq!(claimed["claimed"], true, "{claimed}");
    zombie.is_harmless("failed_lease_lost");
    let row = zombie.scratch.issue("z-1");
    assert_eq!(row["lease"]["owner"], "other");
}

fn taken_by_no_worker() {
    let mut zombie = Zombie::stopped(false);
    zombie.wait_for_stale();
    zombie.is_harmless("retry_needed_lease_stale");
}

/// One test, so that the least lease of 30 s is waited for once.
#[test]
fn a_stopped_worker_that_continues_past_its_lease_changes_nothing() {
    std::thread::scope(|threads| {
        let cases = [
            threads.spawn(|| closed_by_another(false)),
            threads.spawn(|| closed_by_another(true)),
            threads.spawn(held_by_another),
            threads.spawn(taken_by_no_worker),
        ];
        let failed = cases
            .into_iter()
            .filter_map(|case| case.join().err())
            .count();
        assert_eq!(failed, 0, "cases failed, see above");
    });
}

/// A lease is renewed at a third of its time while the work runs.
#[test]
fn a_worker_whose_work_outlives_the_first_third_of_its_lease_renews_it() {
    let scratch = Scratch::with_issues(1, &[issue("z-1")]);
    let worker = short(scratch.worker(0, "w", WORK, "true")).start();
    let renewed = until(LEASE_OVER, || {
        let row = scratch.issues().remove("z-1")?;
        row["lease"]["renewed_at"].as_str().map(str::to_owned)
    });
    std::fs::write(scratch.home().join("go"), "").unwrap();
    worker.wait().exits(0);
    assert!(renewed.is_some(), "no renewal was seen");
    assert!(processes_in(&scratch.folder()).is_empty());
}
