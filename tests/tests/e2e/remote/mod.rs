//! Steps that work in another repository, whose own gate admits their turns or
//! refuses them.

use premath_tests::{Dice, Length, PATIENCE, Run, Scratch, binaries, issue, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const WORLD_FILE: &str = "policies/control/harness-world-v1.json";
const POLICY_FILE: &str = "policies/control/harness-instruction-policy-v1.json";

/// Leaves a file that names the issue and the world.
const WORK: &str = r#"echo "$PREMATH_WORLD" > "src/$PREMATH_ISSUE_ID.txt""#;

/// Says that it runs, and ends on request.
const WAITING: &str = r#"echo part > src/part.txt; touch "$HOME/started"
until [ -e "$HOME/go" ]; do sleep 0.05; done"#;

/// Waits until both issues are worked on.
const TOGETHER: &str = r#"touch "$HOME/at-$PREMATH_ISSUE_ID" "src/$PREMATH_ISSUE_ID.txt"
until [ -e "$HOME/at-a" ] && [ -e "$HOME/at-b" ]; do sleep 0.05; done"#;

/// A repository that was created, with lanes, and the world `there`.
struct Worlds {
    here: Scratch,
    there: Scratch,
    instruction: PathBuf,
}

impl Worlds {
    fn new(lanes: usize, rows: &[Value]) -> Self {
        let here = Scratch::with_issues(lanes, rows);
        here.premath(["init"]).end().exits(0);
        let there = Scratch::new(0);
        let mut entries = fs::read_dir(here.root.join("instructions")).unwrap();
        let instruction = entries.next().unwrap().unwrap().path();
        let worlds = Self {
            here,
            there,
            instruction,
        };
        worlds.declare(&worlds.here.root, "here", |_| ());
        worlds.declare(&worlds.there.root, "there", |_| ());
        let there = worlds.there.root.clone();
        worlds.configure(&[("there", &there)]);
        worlds
    }

    /// Writes a world's document.
    fn declare(&self, root: &Path, id: &str, edit: impl FnOnce(&mut Value)) {
        let policy = read(&self.here.root.join(POLICY_FILE))["policyDigest"].clone();
        let mut world = json!({
            "schema": 1,
            "worldKind": "premath.world.v1",
            "worldId": id,
            "offers": ["turn.admit"],
            "accepts": [{"worldId": "here", "policyDigest": policy}],
        });
        edit(&mut world);
        let path = root.join(WORLD_FILE);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, world.to_string()).unwrap();
    }

    fn configure(&self, worlds: &[(&str, &Path)]) {
        let lines = worlds
            .iter()
            .map(|(name, path)| format!("{name} = \"{}\"\n", path.display()));
        let text = format!(
            "[backoff]\nfixed_short = \"0s\"\n[breaker]\nfailures = 0\n[worlds]\n{}",
            lines.collect::<String>()
        );
        fs::write(self.here.root.join("harness.toml"), text).unwrap();
    }

    /// A batch under the instruction, on every lane; work here lands.
    fn batch(&self, work: &str) -> Run {
        let run = self.here.run(&binaries().coordinator).arg("--json");
        let lanes = self.here.lanes.iter();
        lanes
            .fold(run, |run, lane| run.arg("--worktree").arg(lane))
            .args(["--work-cmd", work, "--verify-cmd", "true"])
            .arg("--instruction")
            .arg(&self.instruction)
    }

    /// The worktrees that were made in the other repository.
    fn worktrees(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.there.folder().join("repo-worlds"));
        let entries = entries.into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Checks that every worktree there is clean, and on no branch.
    #[track_caller]
    fn is_tidy_there(&self) {
        for worktree in self.worktrees() {
            let git = git2::Repository::open(&worktree).unwrap();
            assert!(git.head_detached().unwrap(), "{}", worktree.display());
            let changed = git.statuses(None).unwrap();
            let changed: Vec<_> = changed.iter().map(|e| format!("{:?}", e.path())).collect();
            assert_eq!(changed, [""; 0], "{}", worktree.display());
        }
        self.here.no_process_left();
    }

    fn session(&self, lane: usize) -> Value {
        read(&self.here.lanes[lane].join(".premath/harness_session.json"))
    }
}

/// What a step in another world is recorded in, with the kinds.
pub(super) fn documents() -> Vec<(&'static str, Value)> {
    let worlds = Worlds::new(1, &[wishing("a", &["world:there"])]);
    let work = format!("{WORK}; cp \"$PREMATH_HARNESS_SESSION_PATH\" \"$HOME/session\"");
    let ended = worlds.batch(&work).end().exits(0);
    let session = read(&worlds.here.home().join("session"));
    assert_eq!(session["step"]["world"]["name"], "there");
    let row = worlds.here.steps().remove(0);
    let mut documents = vec![("session", session), ("trajectory-row", row)];
    documents.extend(
        ended
            .events()
            .into_iter()
            .map(|event| ("coordinator-event", event)),
    );
    documents
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// An issue that asks for worlds.
fn wishing(id: &str, labels: &[&str]) -> Value {
    let mut row = issue(id);
    row["labels"] = json!(labels);
    row
}

/// The witnesses of crossings that a repository keeps, by class.
fn kept(root: &Path, class: &str) -> Vec<Value> {
    let entries = fs::read_dir(root.join("artifacts/ciwitness"));
    let entries = entries.into_iter().flatten();
    let documents = entries.map(|entry| read(&entry.unwrap().path()));
    documents
        .filter(|document| document["witnessClass"] == class)
        .collect()
}

fn refs<'a>(row: &'a Value, name: &str, prefix: &str) -> Vec<&'a str> {
    let refs = row[name].as_array().into_iter().flatten();
    let texts = refs.map(|text| text.as_str().unwrap());
    texts.filter(|text| text.starts_with(prefix)).collect()
}

#[test]
fn a_step_works_where_its_issue_asks_and_closes_when_the_gate_there_admits_it() {
    let worlds = Worlds::new(1, &[wishing("a", &["docs", "world:there"]), issue("b")]);
    let own = "[batch]\nverify_cmd = 'pwd >> \"$HOME/verified-there\"'\n";
    fs::write(worlds.there.root.join("harness.toml"), own).unwrap();
    let ended = worlds.batch(WORK).end().exits(0);
    let [here, there] = [&worlds.here, &worlds.there];
    for id in ["a", "b"] {
        assert_eq!(here.issue(id)["status"], "closed");
    }
    let row = here.steps_of("a").remove(0);
    assert_eq!(row["resultClass"], "completed", "{row:#}");
    for phase in ["work", "verify", "turn", "transport", "gate", "mutation"] {
        let prefix = format!("ciwitness://worker.1.a.1/{phase}/");
        assert_eq!(
            refs(&row, "witnessRefs", &prefix).len(),
            1,
            "{phase}: {row:#}"
        );
    }
    assert_eq!(refs(&row, "lineageRefs", "world://here/there/").len(), 1);
    let world = &row["world"];
    assert_eq!(world["name"], "there");
    assert_eq!(world["crossing"], "accepted");
    assert_eq!(world["branch"], "harness/a/1");
    assert_eq!(row["landing"], Value::Null);
    // The work is there and nowhere else, and its issue is closed here.
    let work = there.file_on("harness/a/1", "src/a.txt");
    assert_eq!(work.as_deref(), Some("there\n"));
    let tip = there.git().refname_to_id("refs/heads/harness/a/1").unwrap();
    assert_eq!(world["commit"], tip.to_string());
    assert_eq!(there.branches(), ["harness/a/1", "main"]);
    assert_eq!(here.file_on("harness/integration", "src/a.txt"), None);
    let other = here.file_on("harness/integration", "src/b.txt");
    assert_eq!(other.as_deref(), Some("\n"));
    assert_eq!(here.steps_of("b")[0]["world"], Value::Null);
    // Its own verification was run, in a checkout of the harness's own.
    let verified = fs::read_to_string(here.home().join("verified-there")).unwrap();
    assert!(verified.contains("/repo-verify/"), "{verified}");
    // The owner and location of each file.
    assert_eq!(kept(&there.root, "gate"), kept(&here.root, "gate"));
    assert_eq!(kept(&there.root, "gate")[0]["result"], "accepted");
    assert_eq!(kept(&here.root, "transport")[0]["outcome"], "carried");
    assert_eq!(kept(&there.root, "transport").len(), 0);
    assert!(there.trajectory().is_empty() && !there.issues_path().exists());
    let events = ended.events();
    let step = events
        .iter()
        .find(|e| e["issueId"] == "a" && !e["world"].is_null());
    assert_eq!(&step.unwrap()["world"], world);
    let told = here.premath(["harness-trajectory", "query"]).end().exits(0);
    let line = "completed (world there: accepted, on harness/a/1 there)";
    assert!(told.stdout.contains(line), "{}", told.stdout);
    worlds.is_tidy_there();
}

#[test]
fn both_witnesses_stand_in_the_session_of_the_step() {
    let worlds = Worlds::new(1, &[wishing("a", &["world:there"])]);
    let run = worlds.batch("true");
    run.end().exits(0);
    let session = worlds.session(0);
    for phase in ["transport", "gate"] {
        let prefix = format!("ciwitness://worker.1.a.1/{phase}/");
        assert_eq!(refs(&session, "witnessRefs", &prefix).len(), 1);
    }
    assert_eq!(
        refs(&session, "lineageRefs", "world://here/there/").len(),
        1
    );
    // Work that changed nothing leaves no branch.
    assert_eq!(worlds.there.branches(), ["main"]);
    assert_eq!(worlds.here.steps()[0]["world"]["branch"], Value::Null);
    worlds.is_tidy_there();
}

#[test]
fn a_turn_that_the_gate_there_refuses_closes_nothing_and_its_work_is_kept_there() {
    let worlds = Worlds::new(1, &[wishing("a", &["world:there"])]);
    worlds.declare(&worlds.there.root, "there", |world| {
        world["constraints"] =
            json!({"protocolConstraints": {"parallelTransportOrderValid": false}});
    });
    worlds.batch(WORK).end().exits(1);
    let class = "protocol.parallel_transport_order_invalid";
    // The policy tries such a class twice, and then files its outcome.
    assert_eq!(worlds.here.issue("a")["status"], "open");
    let steps = worlds.here.steps_of("a");
    let said: Vec<_> = steps.iter().map(|row| &row["retry"]["decision"]).collect();
    assert_eq!(said, ["retry", "escalate"]);
    let row = steps[0].clone();
    assert!(
        row["failureClasses"]
            .as_array()
            .unwrap()
            .contains(&class.into()),
        "{row:#}"
    );
    assert_eq!(
        row["world"],
        json!({"name": "there", "crossing": "rejected"})
    );
    assert_eq!(row["verification"]["class"], class);
    let gate = refs(&row, "witnessRefs", "ciwitness://worker.1.a.1/gate/");
    assert_eq!(row["verification"]["witnessRef"], gate[0]);
    assert_eq!(refs(&row, "lineageRefs", "world://here/there/").len(), 1);
    assert_eq!(row["salvage"], "harness/salvage/a/1 (in world there)");
    let salvage = ["harness/salvage/a/1", "harness/salvage/a/2"];
    assert_eq!(worlds.there.branches(), [&salvage[..], &["main"]].concat());
    let work = worlds.there.file_on(salvage[0], "src/a.txt");
    assert_eq!(work.as_deref(), Some("there\n"));
    assert_eq!(kept(&worlds.there.root, "gate")[0]["result"], "rejected");
    worlds.is_tidy_there();
}

#[test]
fn a_turn_under_a_person_s_reason_is_refused_by_the_policy_there() {
    let worlds = Worlds::new(1, &[wishing("a", &["world:there"])]);
    let run = worlds.here.landing_worker(0, "w", WORK, "true");
    run.end().exits(1);
    let row = worlds.here.steps()[0].clone();
    let class = json!("mutation.policy_digest_mismatch");
    assert_eq!(row["failureClasses"], json!([class]), "{row:#}");
    assert_eq!(row["world"]["crossing"], "rejected");
    assert_ne!(worlds.here.issue("a")["status"], "closed");
    assert_eq!(
        kept(&worlds.there.root, "gate")[0]["failureClasses"],
        json!([class])
    );
    worlds.is_tidy_there();
}

#[test]
fn work_that_fails_there_is_never_carried() {
    let worlds = Worlds::new(1, &[wishing("a", &["world:there"])]);
    worlds.batch(&format!("{WORK}; exit 1")).end().exits(1);
    let row = worlds.here.steps()[0].clone();
    assert_eq!(row["failureClasses"], json!(["work_failed"]));
    assert_eq!(row["world"], json!({"name": "there"}));
    assert_eq!(row["salvage"], "harness/salvage/a/1 (in world there)");
    for class in ["transport", "gate"] {
        assert_eq!(kept(&worlds.here.root, class).len(), 0);
    }
    worlds.is_tidy_there();
}

#[test]
fn what_a_world_protects_counts_there() {
    let worlds = Worlds::new(1, &[wishing("a", &["world:there"])]);
    let own = "[protect]\npaths = [\"src/a.txt\"]\n";
    fs::write(worlds.there.root.join("harness.toml"), own).unwrap();
    worlds.batch(WORK).end().exits(1);
    let row = worlds.here.steps()[0].clone();
    assert_eq!(row["failureClasses"], json!(["work_protected_path"]));
    assert_eq!(kept(&worlds.here.root, "transport").len(), 0);
}

#[test]
fn a_transport_that_breaks_has_its_own_class_and_nothing_is_run() {
    let rows = [
        wishing("a", &["world:nobody"]),
        wishing("b", &["world:there", "world:idle"]),
        wishing("c", &["world:gone"]),
        wishing("d", &["world:self"]),
        wishing("e", &["world:idle"]),
        wishing("f", &["world:strict"]),
        wishing("g", &["world:plain"]),
        wishing("h", &["world:broken"]),
    ];
    let worlds = Worlds::new(1, &rows);
    let [idle, strict, plain, broken] = [(); 4].map(|()| Scratch::new(0));
    worlds.declare(&idle.root, "idle", |world| world["offers"] = json!([]));
    worlds.declare(&strict.root, "strict", |world| {
        world["accepts"][0]["policyDigest"] = "pol1_0".into();
    });
    worlds.declare(&broken.root, "broken", |_| ());
    fs::write(broken.root.join("harness.toml"), "[bach]\n").unwrap();
    let gone = worlds.here.folder().join("gone");
    worlds.configure(&[
        ("there", &worlds.there.root),
        ("gone", &gone),
        ("self", &worlds.here.root),
        ("idle", &idle.root),
        ("strict", &strict.root),
        ("plain", &plain.root),
        ("broken", &broken.root),
    ]);
    worlds.batch("touch \"$HOME/ran\"").end().exits(1);
    assert!(
        !worlds.here.home().join("ran").exists(),
        "something was run"
    );
    let unresolved = "transport_context_unresolved";
    for (id, class) in [
        ("a", unresolved),
        ("b", unresolved),
        ("c", unresolved),
        ("d", "transport_non_composable"),
        ("e", "world_capability_mismatch"),
        ("f", "world_policy_mismatch"),
        ("g", unresolved),
        ("h", unresolved),
    ] {
        let rows = worlds.here.steps_of(id);
        let row = &rows[0];
        assert_eq!(row["failureClasses"], json!([class]), "{row:#}");
        assert_eq!(row["world"]["crossing"], "transport_failed");
        assert_eq!(row["verification"]["class"], class);
        let prefix = format!("ciwitness://worker.1.{id}.1/");
        let of = |phase: &str| refs(row, "witnessRefs", &format!("{prefix}{phase}/")).len();
        assert_eq!(
            (of("transport"), of("gate"), of("work")),
            (1, 0, 0),
            "{row:#}"
        );
        assert_ne!(worlds.here.issue(id)["status"], "closed", "{id}");
    }
    assert_eq!(kept(&worlds.here.root, "transport").len(), 8);
    assert_eq!(kept(&worlds.here.root, "gate").len(), 0);
    for other in [&worlds.there, &idle, &strict, &plain, &broken] {
        assert_eq!(other.branches(), ["main"]);
        assert!(!other.folder().join("repo-worlds").exists());
    }
}

#[test]
fn a_repository_that_is_no_world_itself_hands_nothing_over() {
    let worlds = Worlds::new(1, &[wishing("a", &["world:there"])]);
    fs::remove_file(worlds.here.root.join(WORLD_FILE)).unwrap();
    worlds.batch("touch \"$HOME/ran\"").end().exits(1);
    assert!(!worlds.here.home().join("ran").exists());
    let row = worlds.here.steps()[0].clone();
    assert_eq!(
        row["failureClasses"],
        json!(["transport_context_unresolved"])
    );
    let transport = refs(&row, "witnessRefs", "ciwitness://worker.1.a.1/transport/");
    assert_eq!(transport.len(), 1);
    assert_eq!(kept(&worlds.here.root, "transport").len(), 1);
}

#[test]
fn a_world_that_changes_its_mind_while_work_is_done_is_asked_again() {
    let worlds = Worlds::new(1, &[wishing("a", &["world:there"])]);
    let file = worlds.there.root.join(WORLD_FILE);
    let work = format!("{WORK}; rm '{}'", file.display());
    worlds
        .batch(&work)
        .args(["--sandbox", "none"])
        .end()
        .exits(1);
    let row = worlds.here.steps()[0].clone();
    assert_eq!(
        row["failureClasses"],
        json!(["transport_context_unresolved"])
    );
    assert_eq!(row["world"]["crossing"], "transport_failed");
    assert_eq!(row["salvage"], "harness/salvage/a/1 (in world there)");
    worlds.is_tidy_there();
}

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
fn what_is_found_there_is_filed_here() {
    let worlds = Worlds::new(1, &[wishing("a", &["world:there"])]);
    let work = "\"$E2E_PREMATH\" issue discover a found > /dev/null";
    let work = format!("[ \"$PREMATH_ISSUE_ID\" != a ] || {work}");
    worlds.batch(&work).end().exits(0);
    let filed: Vec<Value> = worlds.here.issues().into_values().collect();
    assert_eq!(filed.len(), 2);
    let found = filed.iter().find(|row| row["title"] == "found").unwrap();
    assert_eq!(found["discovered_by"]["step_id"], "worker.1.a.1");
    assert_eq!(
        worlds.here.steps_of("a")[0]["world"]["crossing"],
        "accepted"
    );
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

#[test]
fn two_lanes_work_in_one_world_at_a_time() {
    let rows = ["a", "b"].map(|id| wishing(id, &["world:there"]));
    let worlds = Worlds::new(2, &rows);
    worlds.batch(TOGETHER).end().exits(0);
    assert_eq!(worlds.worktrees().len(), 2);
    for (id, branch) in [("a", "harness/a/1"), ("b", "harness/b/1")] {
        assert_eq!(worlds.here.issue(id)["status"], "closed");
        let work = worlds.there.file_on(branch, &format!("src/{id}.txt"));
        assert_eq!(work.as_deref(), Some(""));
        let others = if id == "a" { "src/b.txt" } else { "src/a.txt" };
        assert_eq!(worlds.there.file_on(branch, others), None);
    }
    assert_eq!(kept(&worlds.there.root, "gate").len(), 2);
    worlds.is_tidy_there();
}

#[test]
fn a_row_that_was_lost_says_again_where_the_work_is() {
    let worlds = Worlds::new(1, &[wishing("a", &["world:there"])]);
    worlds.batch(WORK).end().exits(0);
    let rows = worlds.here.trajectory().into_iter();
    let rest = rows.filter(|row| row["action"] != "worker.loop");
    let rest: String = rest.map(|row| format!("{row}\n")).collect();
    fs::write(worlds.here.trajectory_path(), rest).unwrap();
    // What landed elsewhere is not missed here.
    worlds.batch(WORK).end().exits(0);
    let row = worlds.here.steps()[0].clone();
    assert_eq!(row["recovered"], true);
    assert_eq!(
        row["world"],
        json!({"name": "there", "crossing": "accepted"})
    );
}
