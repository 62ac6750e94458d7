//! `kill -9` at every boundary between two durable actions: the same command
//! run again reaches the state of an uninterrupted run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests: what is not there fails the test that asked for it"
)]

use premath_kernel::record::boundary::Boundary;
use premath_tests::{Length, NO_STARTUP, Run, Scratch, binaries, issue};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Mutex;

const TARGET: &str = "harness/integration";

/// One issue lands and files a follow-up, the other fails its verification.
/// Each leaves a process that would outlive a harness that does not look.
const WORK: &str = r#"setsid sleep 600 > /dev/null 2>&1 &
echo x >> "src/$PREMATH_ISSUE_ID.txt"
[ "$PREMATH_ISSUE_ID" != lands ] || echo '{"title": "follow-up"}' >> "$PREMATH_OUTBOX""#;

/// Leaves build state, and fails with a class that is tried again once.
const VERIFY: &str = r#"mkdir -p ignored && echo built > ignored/out
[ ! -e src/fails.txt ] || { echo "landing_check_failed: it is there" >&2; exit 1; }"#;

/// What a batch runs with, so that it reaches a boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scenario {
    /// Work lands without a further check, and the target is pushed.
    Landing,
    /// Work stays on the lane's branch.
    Unlanded,
    /// What landed is checked, and passes.
    Checked,
    /// What landed is checked, fails, and is taken off the target.
    Undone,
    /// A failure escalates by a follow-up.
    Escalated,
    /// An issue is worked on in another world.
    Crossed,
    /// Verifications begin with build state, in namespaces.
    Warm,
    /// An earlier kill left something to recover.
    After(Boundary),
}

impl Scenario {
    /// Returns the scenario that reaches a boundary.
    const fn of(boundary: Boundary) -> Self {
        match boundary {
            Boundary::BranchMoved => Self::Unlanded,
            Boundary::LandingChecked => Self::Checked,
            Boundary::LandingUndone | Boundary::UndoneUnmarked => Self::Undone,
            Boundary::EscalationFiled => Self::Escalated,
            Boundary::CrossingWitnessed => Self::Crossed,
            Boundary::TipRecorded => Self::Warm,
            Boundary::RowRecovered => Self::After(Boundary::IssueClosed),
            Boundary::RecoveryBegun
            | Boundary::WorkSalvaged
            | Boundary::LaneRestored
            | Boundary::SalvageRecorded
            | Boundary::BranchRecovered
            | Boundary::TakeOverRecorded => Self::After(Boundary::WorkEnded),
            Boundary::TargetReady
            | Boundary::BatchRecorded
            | Boundary::LaneAtTarget
            | Boundary::LaneBooted
            | Boundary::Claimed
            | Boundary::SessionBegun
            | Boundary::BranchMade
            | Boundary::GitPrepared
            | Boundary::FeatureBegun
            | Boundary::FilesWritten
            | Boundary::SetUp
            | Boundary::WorkEnded
            | Boundary::TreeImported
            | Boundary::CandidateWritten
            | Boundary::CandidateHeld
            | Boundary::CheckoutReady
            | Boundary::Verified
            | Boundary::OutboxKept
            | Boundary::LandingCommitted
            | Boundary::TurnWitnessed
            | Boundary::LandingMarked
            | Boundary::TargetAdvanced
            | Boundary::FollowUpFiled
            | Boundary::IssueClosed
            | Boundary::CloseWitnessed
            | Boundary::LaneCleaned
            | Boundary::BranchLeft
            | Boundary::CandidateReleased
            | Boundary::IssueBlocked
            | Boundary::LeaseReleased
            | Boundary::RowWritten
            | Boundary::LandingUnmarked
            | Boundary::TargetPushed
            | Boundary::StopHookEnded
            | Boundary::FeatureEnded
            | Boundary::SessionEnded
            | Boundary::LaneHome
            | Boundary::LaneFinished
            | Boundary::MarksSwept
            | Boundary::MemoryCompacted
            | Boundary::BatchEnded
            | Boundary::ReportKept => Self::Landing,
        }
    }

    const fn check(self) -> Option<&'static str> {
        match self {
            Self::Checked => Some("true"),
            Self::Undone => Some("[ ! -e src/lands.txt ]"),
            Self::Landing
            | Self::Unlanded
            | Self::Escalated
            | Self::Crossed
            | Self::Warm
            | Self::After(_) => None,
        }
    }

    /// Returns the issues; build state is made for three or more.
    const fn issues(self) -> &'static [&'static str] {
        match self {
            Self::Warm => &["lands", "fails", "more"],
            _ => &["lands", "fails"],
        }
    }

    /// Returns the verify command.
    fn verify(self) -> String {
        match self {
            Self::Escalated => VERIFY.replace("landing_check_failed", "flaky_io"),
            _ => VERIFY.to_owned(),
        }
    }

    const fn landing(self) -> &'static str {
        match self {
            Self::Unlanded => "none",
            _ => "merge",
        }
    }
}

/// A repository with a remote and two issues of a scenario.
struct Ground {
    scratch: Scratch,
    scenario: Scenario,
    /// How its commands are confined.
    sandbox: &'static str,
    /// The other world of [`Scenario::Crossed`].
    there: Option<Scratch>,
}

/// Where a world's document is.
const WORLD_FILE: &str = "policies/control/harness-world-v1.json";
/// Where `premath init` writes the policy of instructions.
const POLICY_FILE: &str = "policies/control/harness-instruction-policy-v1.json";

/// Makes the world `there`, which takes the turns of a repository.
fn other_world(here: &Scratch) -> Scratch {
    let there = Scratch::new(0);
    here.premath(["init"]).end().exits(0);
    let policy = fs::read(here.root.join(POLICY_FILE)).unwrap();
    let policy: Value = serde_json::from_slice(&policy).unwrap();
    for (world, id) in [(here, "here"), (&there, "there")] {
        let document = json!({
            "schema": 1,
            "worldKind": "premath.world.v1",
            "worldId": id,
            "offers": ["turn.admit"],
            "accepts": [{"worldId": "here", "policyDigest": policy["policyDigest"]}],
        });
        let path = world.root.join(WORLD_FILE);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, document.to_string()).unwrap();
    }
    there
}

impl Ground {
    fn new(scenario: Scenario, sandbox: &'static str) -> Self {
        let row = |id: &&str| {
            let mut row = issue(id);
            row["labels"] = match (scenario, *id) {
                (Scenario::Crossed, "lands") => json!(["tonight", "world:there"]),
                _ => json!(["tonight"]),
            };
            row
        };
        let rows: Vec<Value> = scenario.issues().iter().map(row).collect();
        let scratch = Scratch::with_issues(1, &rows);
        let remote = scratch.folder().join("remote.git");
        let remote = remote.to_str().unwrap();
        for arguments in [
            &["init", "-q", "--bare", remote][..],
            &["remote", "add", "origin", remote],
        ] {
            let git = scratch.git_command(arguments.iter().copied());
            git.end().exits(0);
        }
        let there = (scenario == Scenario::Crossed).then(|| other_world(&scratch));
        let world = there
            .as_ref()
            .map(|there| format!("[worlds]\nthere = '{}'\n", there.root.display()));
        let check = scenario
            .check()
            .map(|check| format!("check_cmd = '{check}'\n"));
        let settings = format!(
            "[backoff]\nexponential_short = '0s'\n[worktrees]\nsetup_cmd = 'mkdir -p ignored && echo made > ignored/setup'\n\
             [landing]\npush = 'origin'\n{}{}",
            check.unwrap_or_default(),
            world.unwrap_or_default()
        );
        fs::write(scratch.root.join("harness.toml"), settings).unwrap();
        Self {
            scratch,
            scenario,
            sandbox,
            there,
        }
    }

    /// The same command each time; its leases would outlive any test. The
    /// follow-up has no label and stays open.
    fn batch(&self) -> Run {
        self.batch_with(&self.scenario.verify())
    }

    fn batch_with(&self, verify: &str) -> Run {
        let batch = match self.there {
            None => self.scratch.landing_batch(WORK, verify),
            Some(_) => self.instructed_batch(verify),
        };
        batch
            .args(["--landing", self.scenario.landing(), "--labels", "tonight"])
            .args(["--sandbox", self.sandbox])
            .env("PREMATH_STOP_CMD", "true")
    }

    /// The same under the instruction: a turn of an override crosses to no world.
    fn instructed_batch(&self, verify: &str) -> Run {
        let mut entries = fs::read_dir(self.scratch.root.join("instructions")).unwrap();
        let instruction = entries.next().unwrap().unwrap().path();
        self.scratch
            .run(&binaries().coordinator)
            .args(["--json", "--work-cmd", WORK, "--verify-cmd", verify])
            .args(NO_STARTUP)
            .arg("--worktree")
            .arg(&self.scratch.lanes[0])
            .arg("--instruction")
            .arg(instruction)
    }

    /// Runs the batch up to a boundary; returns whether it was reached. The
    /// process is killed there, and what it had started ends.
    fn is_killed_at(&self, boundary: Boundary, occurrence: u32) -> bool {
        let at = format!("{boundary}:{occurrence}");
        let ended = self.batch().env("PREMATH_KILL_AT", &at).end();
        assert!(
            ended.signal == Some(9) || matches!(ended.code, Some(0 | 1)),
            "{at}: exit {:?}, signal {:?}\n{}",
            ended.code,
            ended.signal,
            ended.stderr
        );
        self.scratch.no_process_left();
        ended.signal == Some(9)
    }

    fn run_to_the_end(&self) {
        self.ends(self.batch());
    }

    fn ends(&self, batch: Run) {
        let ended = batch.end();
        assert!(
            matches!(ended.code, Some(0 | 1)),
            "exit {:?}, signal {:?}\n{}\n{}",
            ended.code,
            ended.signal,
            ended.stdout,
            ended.stderr
        );
        self.scratch.no_process_left();
    }

    fn git(&self, arguments: &[&str]) -> String {
        let git = self.scratch.git_command(arguments.iter().copied());
        git.end().exits(0).stdout.trim().to_owned()
    }

    /// What is the same after each run that converged.
    fn outcome(&self) -> Outcome {
        let issues = self.scratch.issues();
        let remote = self.scratch.folder().join("remote.git");
        let branch = match self.scenario {
            Scenario::Unlanded => "lane-1",
            _ => TARGET,
        };
        let commits = self.git(&["rev-list", "--count", &format!("main..{branch}")]);
        let pushed = self
            .scratch
            .git_command(["-C", remote.to_str().unwrap(), "rev-parse", TARGET])
            .end();
        let tip = self.git(&["rev-parse", branch]);
        Outcome {
            statuses: issues
                .values()
                .map(|row| {
                    let text = |key: &str| row[key].as_str().unwrap().to_owned();
                    (text("title"), text("status"))
                })
                .collect(),
            tree: self.git(&["rev-parse", &format!("{branch}^{{tree}}")]),
            commits,
            is_pushed: pushed.stdout.trim() == tip,
        }
    }

    /// Nothing of a killed run is left.
    fn is_in_order(&self) {
        for (id, row) in self.scratch.issues() {
            assert!(row["lease"].is_null(), "{id} is leased: {row}");
        }
        let refs = self.git(&["for-each-ref", "--format=%(refname)", "refs"]);
        for name in refs.lines() {
            let is_of_a_step = name.starts_with("refs/heads/harness/")
                && !name.starts_with("refs/heads/harness/salvage/")
                && name != format!("refs/heads/{TARGET}");
            assert!(!name.starts_with("refs/harness/"), "{name} is left");
            assert!(!is_of_a_step, "{name} is left");
        }
        self.git(&["fsck", "--strict", "--no-dangling"]);
        for lane in &self.scratch.lanes {
            let status = self.scratch.git_command(["status", "--porcelain"]);
            assert_eq!(status.within(lane).end().exits(0).stdout, "");
        }
        assert_eq!(self.scratch.leftovers(), [""; 0]);
        self.scratch.premath(["doctor"]).end().exits(0);
        let audit = self.scratch.premath(["audit"]).end();
        assert_eq!(audit.code, Some(0), "{}{}", audit.stdout, audit.stderr);
        if let Some(there) = &self.there {
            self.is_worked_on_once(there);
        }
    }

    /// The other world has the work on one branch, that of the closing lease.
    fn is_worked_on_once(&self, there: &Scratch) {
        let issue = self.scratch.issue("lands");
        assert_eq!(
            issue["status"],
            "closed",
            "{:#?}",
            self.scratch.steps_of("lands")
        );
        let branch = format!("harness/lands/{}", issue["lease_generation"]);
        let mut branches = there.branches();
        branches.retain(|name| !name.starts_with("harness/salvage/"));
        assert_eq!(branches, [branch.as_str(), "main"]);
        let work = there.file_on(&branch, "src/lands.txt");
        assert_eq!(work.as_deref(), Some("x\n"));
    }

    /// Each closed issue has one completed row, and no step has two rows.
    fn rows_are_single(&self) {
        let mut steps = BTreeSet::new();
        let mut completed: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for row in self.scratch.steps() {
            assert!(steps.insert(row["stepId"].to_string()), "two rows: {row}");
            if row["resultClass"] == "completed" {
                let id = row["issueId"].as_str().unwrap().to_owned();
                completed.entry(id).or_default().push(row["stepId"].clone());
            }
        }
        for (id, row) in self.scratch.issues() {
            let expected = match row["status"] == "closed" {
                true => vec![row["closed_by_step"].clone()],
                false => Vec::new(),
            };
            let found = completed.remove(&id).unwrap_or_default();
            assert_eq!(found, expected, "completed rows of {id}");
        }
        assert!(completed.is_empty(), "{completed:?}");
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    /// The status of each issue, by title: ids of follow-ups are new each time.
    statuses: Vec<(String, String)>,
    /// The target's tree.
    tree: String,
    /// How many commits the target has above the base.
    commits: String,
    /// Whether the remote's target is ours.
    is_pushed: bool,
}

/// Kills a batch at a boundary and checks that the next run converges; returns
/// whether the boundary was reached.
fn converges(
    sandbox: &'static str,
    boundary: Boundary,
    occurrence: u32,
    expected: &Outcome,
) -> bool {
    let scenario = Scenario::of(boundary);
    let ground = Ground::new(scenario, sandbox);
    if let Scenario::After(first) = scenario {
        assert!(ground.is_killed_at(first, 1), "{first} is not reached");
    }
    if !ground.is_killed_at(boundary, occurrence) {
        return false;
    }
    ground.run_to_the_end();
    assert_eq!(ground.outcome(), *expected, "{boundary}:{occurrence}");
    ground.rows_are_single();
    ground.is_in_order();
    true
}

/// How many times a batch reaches a boundary at most.
const OCCURRENCES: u32 = 40;

fn boundaries_of(is_asked: impl Fn(Scenario) -> bool) -> Vec<Boundary> {
    let all = Boundary::ALL.iter().copied();
    all.filter(|boundary| is_asked(Scenario::of(*boundary)))
        .collect()
}

/// Kills at boundaries of a scenario: at the first time that each is reached
/// or, in full length, at every time.
fn all_converge(sandbox: &'static str, boundaries: Vec<Boundary>) {
    let length = Length::asked("a kill at every occurrence of every boundary");
    let most = length.pick(1, OCCURRENCES);
    let expected = uninterrupted(Scenario::of(boundaries[0]), sandbox);
    let waiting = Mutex::new(boundaries.into_iter());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(boundary) = waiting.lock().unwrap().next() else {
                        break;
                    };
                    let kills = || {
                        for occurrence in 1..=most {
                            if !converges(sandbox, boundary, occurrence, &expected) {
                                assert!(occurrence > 1, "{boundary} is never reached");
                                break;
                            }
                        }
                    };
                    let kills = std::panic::AssertUnwindSafe(kills);
                    if std::panic::catch_unwind(kills).is_err() {
                        failed.lock().unwrap().push(boundary.name());
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "no convergence after: {failed:?}");
}

/// Returns the outcome of a run that nothing interrupts.
fn uninterrupted(scenario: Scenario, sandbox: &'static str) -> Outcome {
    let ground = Ground::new(scenario, sandbox);
    ground.run_to_the_end();
    ground.rows_are_single();
    ground.is_in_order();
    ground.outcome()
}

#[test]
fn a_kill_at_any_boundary_of_a_batch_converges() {
    all_converge(
        "none",
        boundaries_of(|scenario| scenario == Scenario::Landing),
    );
}

#[test]
fn a_kill_at_any_boundary_of_a_recovery_converges() {
    all_converge(
        "none",
        boundaries_of(|scenario| matches!(scenario, Scenario::After(_))),
    );
}

#[test]
fn a_kill_on_the_branch_of_a_lane_converges() {
    all_converge(
        "none",
        boundaries_of(|scenario| scenario == Scenario::Unlanded),
    );
}

#[test]
fn a_kill_after_the_check_of_a_landing_converges() {
    all_converge(
        "none",
        boundaries_of(|scenario| scenario == Scenario::Checked),
    );
}

#[test]
fn a_kill_after_a_follow_up_of_a_failure_converges() {
    all_converge(
        "none",
        boundaries_of(|scenario| scenario == Scenario::Escalated),
    );
}

#[test]
fn a_kill_after_a_crossing_to_another_world_converges() {
    all_converge(
        "none",
        boundaries_of(|scenario| scenario == Scenario::Crossed),
    );
}

#[test]
fn a_kill_while_a_landing_is_undone_converges() {
    all_converge(
        "none",
        boundaries_of(|scenario| scenario == Scenario::Undone),
    );
}

/// Returns whether namespaces work here.
fn has_namespaces() -> bool {
    let ground = Ground::new(Scenario::Warm, "namespaces");
    ground
        .scratch
        .confines_by("namespaces", "kills in namespaces")
}

#[test]
fn a_kill_after_the_verification_of_the_tip_converges() {
    if has_namespaces() {
        let warm = boundaries_of(|scenario| scenario == Scenario::Warm);
        all_converge("namespaces", warm);
    }
}

#[test]
fn a_kill_of_a_batch_in_namespaces_converges() {
    if !has_namespaces() {
        return;
    }
    let length = Length::asked("a kill at every boundary in namespaces");
    let some = vec![
        Boundary::GitPrepared,
        Boundary::WorkEnded,
        Boundary::CheckoutReady,
        Boundary::TargetAdvanced,
    ];
    let all = boundaries_of(|scenario| scenario == Scenario::Landing);
    all_converge("namespaces", length.pick(some, all));
}

#[test]
fn the_mark_of_a_landing_that_did_not_happen_is_removed() {
    let ground = Ground::new(Scenario::Landing, "none");
    assert!(ground.is_killed_at(Boundary::LandingMarked, 1));
    ground.ends(ground.batch_with("false"));
    let statuses = ground.outcome().statuses;
    let blocked = |id: &str| (format!("issue {id}"), "blocked".to_owned());
    assert_eq!(statuses, [blocked("fails"), blocked("lands")]);
    ground.is_in_order();
}

#[test]
fn an_unknown_boundary_is_refused() {
    let ground = Ground::new(Scenario::Landing, "none");
    let batch = ground.batch().env("PREMATH_KILL_AT", "nowhere");
    batch.end().exits(2).says("unknown boundary `nowhere`");
}
