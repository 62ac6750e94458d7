//! A gate that refuses, a transport that fails, and work that is never carried.

use super::{WORK, WORLD_FILE, Worlds, kept, refs, wishing};
use premath_tests::Scratch;
use serde_json::json;
use std::fs;

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

/// Policy, claims and risk tier are known before any work: the gate is asked
/// then, and nothing is run there.
#[test]
fn a_gate_that_refuses_whatever_is_done_is_asked_before_anything_is_run() {
    for (constraints, class) in [
        (
            json!({"mutationConstraints": {
                "claims": [], "requiredClaims": ["capabilities.change_morphisms.issue_update"],
            }}),
            "mutation.capability_claim_missing",
        ),
        (
            json!({"riskConstraints": {"controlProfiles": {"high": "profile.high"}}}),
            "governance.risk_tier_profile_missing",
        ),
    ] {
        let worlds = Worlds::new(1, &[wishing("a", &["world:there"])]);
        worlds.declare(&worlds.there.root, "there", |world| {
            world["constraints"] = constraints;
        });
        let ended = worlds.batch("touch \"$HOME/ran\"").end().exits(1);
        let ran = worlds.here.home().join("ran").exists();
        assert!(!ran, "{class}: something was run");
        let row = worlds.here.steps()[0].clone();
        let classes = row["failureClasses"].as_array().unwrap();
        assert!(classes.contains(&json!(class)), "{row:#}\n{}", ended.stderr);
        assert_eq!(row["world"]["crossing"], "rejected", "{row:#}");
        let gate = &kept(&worlds.there.root, "gate")[0];
        assert_eq!(gate["result"], "rejected");
        assert_eq!(worlds.there.branches(), ["main"]);
        assert_eq!(worlds.worktrees().len(), 0);
        assert_ne!(worlds.here.issue("a")["status"], "closed");
    }
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
        is_not_carried(&worlds, id, class);
    }
    assert_eq!(kept(&worlds.here.root, "transport").len(), 8);
    assert_eq!(kept(&worlds.here.root, "gate").len(), 0);
    for other in [&worlds.there, &idle, &strict, &plain, &broken] {
        assert_eq!(other.branches(), ["main"]);
        assert!(!other.folder().join("repo-worlds").exists());
    }
}

/// Checks that a step ended before anything was run, by a class of transport.
#[track_caller]
fn is_not_carried(worlds: &Worlds, id: &str, class: &str) {
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

#[test]
fn a_repository_that_is_not_a_world_itself_submits_nothing() {
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
