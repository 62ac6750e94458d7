//! A repository with something of the harness in it.

use crate::answer::Answer;
use git2::{Oid, Repository, RepositoryInitOptions, Signature, Time};
use premath_memory::WorktreeLock;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) const DAY: u64 = 86_400;

/// A repository with two commits on `main`, the first also the target's.
pub(crate) struct Scratch {
    pub(crate) _guard: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) git: Repository,
    pub(crate) first: Oid,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        let guard = tempfile::tempdir().unwrap();
        let root = guard.path().canonicalize().unwrap().join("main");
        let mut options = RepositoryInitOptions::new();
        let git = Repository::init_opts(&root, options.initial_head("main")).unwrap();
        let first = commit(&git, Some("refs/heads/main"), &[], 30);
        fs::write(root.join(".git/info/exclude"), "/.premath/\n/artifacts/\n").unwrap();
        fs::create_dir(root.join(".premath")).unwrap();
        let scratch = Self {
            _guard: guard,
            root,
            git,
            first,
        };
        scratch.branch("harness/integration", first);
        scratch.issues(&[]);
        scratch
    }

    pub(crate) fn branch(&self, name: &str, at: Oid) {
        let name = format!("refs/heads/{name}");
        self.git.reference(&name, at, true, "test").unwrap();
    }

    pub(crate) fn has(&self, reference: &str) -> bool {
        self.git.find_reference(reference).is_ok()
    }

    /// Writes issue memory.
    pub(crate) fn issues(&self, rows: &[Value]) {
        let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
        fs::write(self.root.join(".premath/issues.jsonl"), text).unwrap();
    }

    pub(crate) fn trajectory(&self, rows: &[Value]) {
        let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
        fs::write(self.root.join(".premath/harness_trajectory.jsonl"), text).unwrap();
    }

    /// Writes issue `a`, closed by its first step, which landed at a commit.
    pub(crate) fn closed(&self, commit: Oid) {
        self.issues(&[closed("a")]);
        self.trajectory(&[landed("a", commit)]);
    }

    /// Writes a file that is so many days old.
    pub(crate) fn file(&self, path: &str, text: &str, days: u64) -> PathBuf {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        age(&path, days);
        path
    }

    pub(crate) fn run(&self, args: &[&str]) -> Answer {
        self.run_in(&self.root, args)
    }

    pub(crate) fn run_in(&self, folder: &Path, args: &[&str]) -> Answer {
        #[expect(
            clippy::disallowed_methods,
            reason = "the test plays the shell that runs premath"
        )]
        let mut command = Command::new(env!("CARGO_BIN_EXE_premath"));
        command.args(args).current_dir(folder);
        for name in ["PREMATH_STEP_ID", "PREMATH_ISSUES_PATH"] {
            command.env_remove(name);
        }
        command.env("XDG_CACHE_HOME", self.cache());
        Answer::of(command.output().unwrap())
    }

    /// Returns the user's cache.
    pub(crate) fn cache(&self) -> PathBuf {
        self.root.with_file_name("cache")
    }

    /// Expects one finding, that of an item of this kind and name.
    #[track_caller]
    pub(crate) fn doctor_finds(&self, kind: &str, name: &str) -> Value {
        let answer = self.run(&["doctor", "--json"]);
        assert_eq!(answer.code, 1, "{}{}", answer.stdout, answer.stderr);
        let document = answer.json();
        let text = self.run(&["doctor"]);
        assert_eq!(document["findingCount"], 1, "{}", text.stdout);
        assert!(text.stdout.contains("  finding "), "{}", text.stdout);
        assert!(text.stdout.contains("\n1 finding"), "{}", text.stdout);
        let standing = ["removable", "finding"];
        let items = document["items"].as_array().unwrap();
        let finding = items
            .iter()
            .find(|item| standing.iter().any(|word| item["standing"] == *word))
            .unwrap();
        assert_eq!(finding["kind"], kind);
        let found = finding["name"].as_str().unwrap();
        assert!(found.ends_with(name), "{found}");
        finding.clone()
    }

    #[track_caller]
    pub(crate) fn doctor_is_content(&self) -> String {
        let answer = self.run(&["doctor"]);
        assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
        // The repository has no settings, which is a warning.
        let last = answer.stdout.lines().last().unwrap_or_default();
        assert!(
            last.starts_with("no errors, 1 warning"),
            "{}",
            answer.stdout
        );
        answer.stdout
    }

    /// Cleans, after a dry run that lists the same and changes nothing;
    /// returns the names of what went.
    #[track_caller]
    pub(crate) fn clean(&self, args: &[&str]) -> Vec<String> {
        let dry = [&["clean", "--dry-run"], args].concat();
        let before = everything(&self.root);
        let shown = self.run(&dry);
        assert_eq!(shown.code, 0, "{}", shown.stderr);
        let listed = self.run(&[&dry[..], &["--json"]].concat()).json();
        assert_eq!(
            everything(&self.root),
            before,
            "a dry run changed something"
        );
        assert_eq!(listed["dryRun"], true);
        let done = self.run(&[&["clean", "--json"], args].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        let document = done.json();
        assert_eq!(document["items"], listed["items"]);
        assert_eq!(document["dryRun"], false);
        let items = document["items"].as_array().unwrap();
        assert_eq!(shown.stdout.lines().count(), items.len() + 1);
        let names = items.iter().map(|item| item["name"].as_str().unwrap());
        names
            .map(|name| name.replace(&format!("{}/", self.root.display()), ""))
            .collect()
    }

    /// Adds a worktree in which a lane once was.
    pub(crate) fn lane(&self, name: &str) -> PathBuf {
        let path = self.root.parent().unwrap().join(name);
        self.git.worktree(name, &path, None).unwrap();
        // The branch that git makes with it is none of the harness's.
        drop(WorktreeLock::acquire(&path, Duration::ZERO).unwrap());
        path
    }
}

pub(crate) fn seconds_ago(days: u64) -> SystemTime {
    SystemTime::now() - Duration::from_secs(days * DAY)
}

pub(crate) fn age(path: &Path, days: u64) {
    let file = fs::File::open(path).unwrap();
    file.set_modified(seconds_ago(days)).unwrap();
}

/// Makes a commit that is so many days old, with a tree like no other's.
pub(crate) fn commit(git: &Repository, at: Option<&str>, parents: &[Oid], days: u64) -> Oid {
    let then = seconds_ago(days).duration_since(UNIX_EPOCH).unwrap();
    let time = Time::new(i64::try_from(then.as_secs()).unwrap(), 0);
    let author = Signature::new("t", "t@localhost", &time).unwrap();
    let tree = git.treebuilder(None).unwrap().write().unwrap();
    let tree = git.find_tree(tree).unwrap();
    let parents: Vec<_> = parents
        .iter()
        .map(|id| git.find_commit(*id).unwrap())
        .collect();
    let parents: Vec<_> = parents.iter().collect();
    let text = format!("{days} days ago, {} parents", parents.len());
    git.commit(at, &author, &author, &text, &tree, &parents)
        .unwrap()
}

pub(crate) fn closed(id: &str) -> Value {
    json!({"id": id, "title": id, "status": "closed", "closed_by_step": format!("w.{id}.1"),
        "lease_generation": 1})
}

pub(crate) fn landed(id: &str, commit: Oid) -> Value {
    json!({"schema": 1, "stepKind": "premath.harness.step.v1", "stepId": format!("w.{id}.1"),
        "action": "worker.loop", "resultClass": "completed", "issueId": id,
        "finishedAt": "2026-03-05T10:00:00Z",
        "landing": {"target": "harness/integration", "commit": commit.to_string()}})
}

/// Every file and its content, but the lock files that are held for a look.
pub(crate) fn everything(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(everything(&path));
            found.push((path, Vec::new()));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}
