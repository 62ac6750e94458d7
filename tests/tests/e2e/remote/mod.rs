//! Remote steps: they work in another repository, whose own gate admits their
//! turns or refuses them.

mod crossing;
mod kills;
mod refusals;

use premath_tests::{NO_CHANGE, NO_STARTUP, Run, Scratch, binaries, issue};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const WORLD_FILE: &str = "policies/control/harness-world-v1.json";
const POLICY_FILE: &str = "policies/control/harness-instruction-policy-v1.json";

/// Leaves a file that names the issue and the world.
const WORK: &str = r#"echo "$PREMATH_WORLD" > "src/$PREMATH_ISSUE_ID.txt""#;

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
            .args(NO_CHANGE)
            .args(NO_STARTUP)
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
