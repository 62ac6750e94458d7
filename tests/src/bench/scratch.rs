//! What is measured on: issue files and a small repository with worktrees.

use crate::figure::Wrong;
use git2::{IndexAddOption, Repository, Signature};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes open issues, each a row of some 600 bytes; `waits_for` names the
/// issue that one depends on.
pub(crate) fn issues(
    path: &Path,
    count: usize,
    waits_for: impl Fn(usize) -> Option<usize>,
) -> Result<(), Wrong> {
    let description = "What is to be done, said at some length. ".repeat(10);
    let mut text = String::new();
    for number in 0..count {
        write!(
            text,
            r#"{{"id":"bench-{number:06}","title":"Issue {number} of the benchmark","description":"{description}","status":"open","priority":2,"issue_type":"task","created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05Z""#
        )?;
        if let Some(other) = waits_for(number) {
            write!(
                text,
                r#","dependencies":[{{"issue_id":"bench-{number:06}","depends_on_id":"bench-{other:06}","type":"blocks"}}]"#
            )?;
        }
        text.push_str("}\n");
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(path, text)?)
}

/// Returns how many issues of a memory are closed.
pub(crate) fn closed(path: &Path) -> Result<usize, Wrong> {
    let mut closed = BTreeSet::new();
    for line in fs::read_to_string(path)?.lines() {
        let row: serde_json::Value = serde_json::from_str(line)?;
        if row["status"] == "closed" {
            closed.insert(row["id"].to_string());
        }
    }
    Ok(closed.len())
}

/// A repository with worktrees, and issue memory in it.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) repository: PathBuf,
    pub(crate) worktrees: Vec<PathBuf>,
}

impl Scratch {
    /// Creates a repository below a folder, which must be new.
    pub(crate) fn set_up(
        folder: &Path,
        worktrees: usize,
        files: usize,
        count: usize,
    ) -> Result<Self, Wrong> {
        let path = folder.join("repository");
        for number in 0..files {
            let folder = path.join(format!("source/{}", number / 50));
            fs::create_dir_all(&folder)?;
            fs::write(folder.join(format!("{number}.txt")), format!("{number}\n"))?;
        }
        let git = Repository::init(&path)?;
        let mut index = git.index()?;
        index.add_all(["*"], IndexAddOption::DEFAULT, None)?;
        index.write()?;
        let tree = git.find_tree(index.write_tree()?)?;
        let author = Signature::now("Premath Harness bench", "bench@localhost")?;
        git.commit(Some("HEAD"), &author, &author, "bench", &tree, &[])?;
        let worktrees = (1..=worktrees)
            .map(|number| {
                let name = format!("lane-{number}");
                let path = folder.join(&name);
                git.worktree(&name, &path, None).map(|_| path)
            })
            .collect::<Result<_, _>>()?;
        let scratch = Self {
            repository: path,
            worktrees,
        };
        issues(&scratch.issues(), count, |_| None)?;
        Ok(scratch)
    }

    /// Returns the path of issue memory.
    pub(crate) fn issues(&self) -> PathBuf {
        self.repository.join(".premath/issues.jsonl")
    }
}
