//! A folder with issue memory, in which commands are run.

use crate::answer::Answer;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder with issue memory in it.
pub(crate) struct Scratch {
    pub(crate) _guard: tempfile::TempDir,
    pub(crate) folder: PathBuf,
}

impl Scratch {
    pub(crate) fn with(issues: &str) -> Self {
        let guard = tempfile::tempdir().unwrap();
        let folder = guard.path().canonicalize().unwrap();
        fs::create_dir(folder.join(".premath")).unwrap();
        fs::write(folder.join(".premath/issues.jsonl"), issues).unwrap();
        Self {
            _guard: guard,
            folder,
        }
    }

    pub(crate) fn issues(&self) -> PathBuf {
        self.folder.join(".premath/issues.jsonl")
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "the test plays the shell that runs premath"
        )]
        let mut command = Command::new(env!("CARGO_BIN_EXE_premath"));
        command.args(args).current_dir(&self.folder);
        for name in [
            "PREMATH_STEP_ID",
            "PREMATH_OUTBOX",
            "PREMATH_ISSUES_PATH",
            "PREMATH_HARNESS_SESSION_PATH",
        ] {
            command.env_remove(name);
        }
        command.env("USER", "ann");
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Answer {
        Answer::of(self.command(args).output().unwrap())
    }

    pub(crate) fn run_in_step(&self, args: &[&str], outbox: Option<&Path>) -> Answer {
        let mut command = self.command(args);
        command.env("PREMATH_STEP_ID", "worker.1.bd-1.1");
        if let Some(outbox) = outbox {
            command.env("PREMATH_OUTBOX", outbox);
        }
        Answer::of(command.output().unwrap())
    }

    /// Runs with `--json` and expects success.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let answer = self.run(&[args, &["--json"]].concat());
        assert_eq!(answer.code, 0, "{args:?}: {}", answer.stderr);
        answer.json()
    }
}

pub(crate) fn ids(answer: &Value) -> Vec<&str> {
    let items = answer["items"].as_array().unwrap();
    assert_eq!(answer["count"], items.len());
    items
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect()
}

pub(crate) fn row(id: &str, waits_for: &[&str]) -> String {
    let edges: Vec<_> = waits_for
        .iter()
        .map(|target| json!({"issue_id": id, "depends_on_id": target, "type": "blocks"}))
        .collect();
    format!(
        "{}\n",
        json!({"id": id, "title": id, "acceptance_criteria": "`make test`", "dependencies": edges})
    )
}
