//! A step's turn in another repository, whose own gate and policy judge it.

use premath_tests::{Ended, Scratch, issue};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A repository where a step was made under its instruction, and another one.
struct Worlds {
    here: Scratch,
    there: Scratch,
    turn: PathBuf,
}

impl Worlds {
    fn new() -> Self {
        let [here, there] = [1, 0].map(|lanes| Scratch::with_issues(lanes, &[issue("a")]));
        for scratch in [&here, &there] {
            scratch.premath(["init"]).end().exits(0);
        }
        let instruction = fs::read_dir(here.root.join("instructions")).unwrap();
        let instruction = instruction.map(|e| e.unwrap().path()).next().unwrap();
        here.run(&premath_tests::binaries().worker)
            .args(["--json", "--worker-id", "w", "--landing", "none"])
            .args(["--work-cmd", "echo x > src/x.txt", "--verify-cmd", "true"])
            .arg("--instruction")
            .arg(instruction)
            .arg("--worktree-root")
            .arg(&here.lanes[0])
            .end()
            .exits(0);
        let turn = here.root.join("artifacts/ciwitness/w.a.1.turn.json");
        let worlds = Self { here, there, turn };
        worlds.write(&worlds.here, |_| ());
        worlds.write(&worlds.there, |world| world["worldId"] = "there".into());
        worlds
    }

    fn policy_digest(&self) -> Value {
        let path = "policies/control/harness-instruction-policy-v1.json";
        read(&self.here.root.join(path))["policyDigest"].clone()
    }

    /// Writes a world's document.
    fn write(&self, scratch: &Scratch, edit: impl FnOnce(&mut Value)) {
        let mut world = json!({
            "schema": 1,
            "worldKind": "premath.world.v1",
            "worldId": "here",
            "offers": ["turn.admit"],
            "accepts": [{"worldId": "here", "policyDigest": self.policy_digest()}],
        });
        edit(&mut world);
        let path = scratch.root.join("policies/control/harness-world-v1.json");
        fs::write(path, world.to_string()).unwrap();
    }

    fn submit(&self, world: &Path, turn: &Path) -> Ended {
        self.here
            .premath(["world", "submit", "--json", "--require", "accepted"])
            .arg("--world")
            .arg(world)
            .arg("--turn")
            .arg(turn)
            .end()
    }

    /// The newest row of the trajectory.
    fn row(&self) -> Value {
        self.here.trajectory().pop().unwrap()
    }
}

/// Every document of a crossing that is admitted and of one that fails, with
/// its kind.
pub(super) fn documents() -> Vec<(&'static str, Value)> {
    let worlds = Worlds::new();
    let there = &worlds.there.root;
    let world = read(&there.join("policies/control/harness-world-v1.json"));
    let mut documents = vec![("world", world)];
    let nowhere = worlds.here.folder().join("nowhere");
    for (world, code) in [(there, 0), (&nowhere, 1)] {
        let said = worlds.submit(world, &worlds.turn).exits(code).json();
        documents.push(("answer-world-submit", said));
        documents.push(("trajectory-row", worlds.row()));
    }
    for class in ["transport", "gate"] {
        let kind = match class {
            "transport" => "witness-transport",
            _ => "witness-gate",
        };
        documents.extend(kept(&worlds.here, class).into_iter().map(|d| (kind, d)));
    }
    documents
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The witnesses of crossings that a repository keeps, by class.
fn kept(scratch: &Scratch, class: &str) -> Vec<Value> {
    let folder = scratch.root.join("artifacts/ciwitness");
    let entries = fs::read_dir(folder).into_iter().flatten();
    let documents = entries.map(|entry| read(&entry.unwrap().path()));
    documents
        .filter(|document| document["witnessClass"] == class)
        .collect()
}

fn refs(row: &Value, prefix: &str) -> usize {
    let refs = row["witnessRefs"].as_array().unwrap().iter();
    refs.filter(|r| r.as_str().unwrap().starts_with(prefix))
        .count()
}

#[test]
fn a_turn_that_the_other_world_admits_leaves_both_witnesses() {
    let worlds = Worlds::new();
    let step = worlds.here.steps()[0].clone();
    let said = worlds.submit(&worlds.there.root, &worlds.turn);
    let said = said.exits(0).json();
    assert_eq!(said["result"], "accepted", "{said}");
    assert_eq!(said["transport"]["outcome"], "carried");
    assert_eq!(said["gate"]["world"], "there");
    let row = worlds.row();
    assert_eq!(row["action"], "world.submit");
    assert_eq!(row["resultClass"], "accepted");
    assert_eq!(row["stepId"], "w.a.1.world.there");
    assert_eq!(row["issueId"], "a");
    for phase in ["turn", "transport", "gate"] {
        assert_eq!(refs(&row, &format!("ciwitness://w.a.1/{phase}/")), 1);
    }
    // The step's lineage continues into the other world.
    let lineage = row["lineageRefs"].as_array().unwrap();
    for part in step["lineageRefs"].as_array().unwrap() {
        assert!(lineage.contains(part));
    }
    assert!(lineage.contains(&said["transport"]["mappedContextRef"]));
    // The gate's outcome is the other world's own; both are recorded here.
    assert_eq!(kept(&worlds.there, "gate"), [said["gate"].clone()]);
    assert_eq!(kept(&worlds.there, "transport"), [Value::Null; 0]);
    assert_eq!(kept(&worlds.here, "gate"), [said["gate"].clone()]);
    assert_eq!(kept(&worlds.here, "transport"), [said["transport"].clone()]);
    // Nothing else is changed there.
    assert_eq!(worlds.there.issue("a"), issue("a"));
    assert!(worlds.there.trajectory().is_empty());
}

#[test]
fn a_turn_that_the_other_world_refuses_was_carried_and_bears_the_gate_s_class() {
    let worlds = Worlds::new();
    worlds.write(&worlds.there, |world| {
        world["worldId"] = "there".into();
        world["constraints"] =
            json!({"protocolConstraints": {"parallelTransportOrderValid": false}});
    });
    let said = worlds.submit(&worlds.there.root, &worlds.turn);
    let said = said.exits(1).json();
    assert_eq!(said["result"], "rejected");
    assert_eq!(said["transport"]["outcome"], "carried");
    assert_eq!(said["transport"]["failureClasses"], json!([]));
    let class = json!("protocol.parallel_transport_order_invalid");
    let row = worlds.row();
    for document in [&said, &said["gate"], &row] {
        let classes = document["failureClasses"].as_array().unwrap();
        assert!(classes.contains(&class), "{document}");
    }
    assert_eq!(row["resultClass"], "rejected");
    assert_eq!(kept(&worlds.there, "gate").len(), 1);
    assert_eq!(kept(&worlds.here, "transport").len(), 1);
}

#[test]
fn a_transport_that_breaks_reaches_no_gate_and_bears_its_own_class() {
    let worlds = Worlds::new();
    let failed = |world: &Path, turn: &Path, class: &str| {
        let said = worlds.submit(world, turn).exits(1).json();
        assert_eq!(said["result"], "transport_failed", "{said}");
        assert_eq!(said["failureClasses"], json!([class]));
        assert_eq!(said["gate"], Value::Null);
        let row = worlds.row();
        assert_eq!(row["resultClass"], "transport_failed");
        assert_eq!(row["failureClasses"], json!([class]));
        assert_eq!(refs(&row, "ciwitness://w.a.1/transport/"), 1);
        assert_eq!(refs(&row, "ciwitness://w.a.1/gate/"), 0);
    };
    let there = &worlds.there.root;
    let nowhere = worlds.here.folder().join("nowhere");
    failed(&nowhere, &worlds.turn, "transport_context_unresolved");
    failed(&worlds.here.root, &worlds.turn, "transport_non_composable");
    let changed = worlds.here.folder().join("changed.json");
    let mut witness = read(&worlds.turn);
    witness["input"]["evidence"]["callSpec"]["modelRef"] = "another".into();
    fs::write(&changed, witness.to_string()).unwrap();
    failed(there, &changed, "transport_witness_unverifiable");
    worlds.write(&worlds.there, |world| {
        world["worldId"] = "there".into();
        world["offers"] = json!([]);
    });
    failed(there, &worlds.turn, "world_capability_mismatch");
    worlds.write(&worlds.there, |world| {
        world["worldId"] = "there".into();
        world["accepts"][0]["policyDigest"] = "pol1_0".into();
    });
    failed(there, &worlds.turn, "world_policy_mismatch");
    assert_eq!(kept(&worlds.there, "gate"), [Value::Null; 0]);
    assert_eq!(kept(&worlds.here, "transport").len(), 5);
}

#[test]
fn what_was_made_under_a_person_s_reason_is_not_admitted_by_another_policy() {
    let worlds = Worlds::new();
    let text = format!("{}\n{}\n", worlds.here.issue("a"), issue("b"));
    worlds.here.write_issues(text.as_bytes());
    worlds.here.worker(0, "w", "true", "true").end().exits(0);
    let turn = worlds.turn.with_file_name("w.b.1.turn.json");
    let said = worlds.submit(&worlds.there.root, &turn).exits(1).json();
    assert_eq!(said["result"], "rejected");
    assert_eq!(
        said["failureClasses"],
        json!(["mutation.policy_digest_mismatch"])
    );
}

#[test]
fn what_is_not_a_turn_is_a_usage_error_and_leaves_nothing() {
    let worlds = Worlds::new();
    let before = worlds.here.trajectory();
    let wrong = worlds.here.root.join("harness.toml");
    worlds.submit(&worlds.there.root, &wrong).exits(2);
    worlds
        .submit(&worlds.there.root, &worlds.here.root.join("none.json"))
        .exits(2);
    assert_eq!(worlds.here.trajectory(), before);
}
