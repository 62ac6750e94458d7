//! A turn that the gate there admits: where the work is, and what is recorded.

use super::{WORK, Worlds, kept, refs, wishing};
use premath_tests::issue;
use serde_json::{Value, json};
use std::fs;

/// Waits until both issues are worked on.
const TOGETHER: &str = r#"touch "$HOME/at-$PREMATH_ISSUE_ID" "src/$PREMATH_ISSUE_ID.txt"
until [ -e "$HOME/at-a" ] && [ -e "$HOME/at-b" ]; do sleep 0.05; done"#;

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
    let printed = here.premath(["harness-trajectory", "query"]).end().exits(0);
    let line = "completed (world there: accepted, on harness/a/1 there)";
    assert!(printed.stdout.contains(line), "{}", printed.stdout);
    worlds.is_tidy_there();
}

#[test]
fn both_witnesses_are_in_the_session_of_the_step() {
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
