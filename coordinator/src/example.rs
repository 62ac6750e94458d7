//! The example batch: a small real git repository with four worktrees, created
//! from `worktrees.example/`, which is embedded in the binary.

use crate::machine::Allowance;
use crate::run::Plan;
use git2::{IndexAddOption, Repository, RepositoryInitOptions, Signature};
use harness_worker::settings::{LoopFlags, Settings, SettingsError};
use include_dir::{Dir, include_dir};
use premath_kernel::issue::Status;
use premath_kernel::policy::landing::{LandingRecord, LandingRule};
use premath_kernel::policy::until::Until;
use premath_kernel::record::event::LandingCheck;
use premath_kernel::record::trajectory::action;
use premath_memory::roots::MemoryRoots;
use premath_memory::{IssueMemory, IssueRow, OpenOptions, StoreError, Trajectory, clock};
use premath_worktree::landing::Landing;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

static EXAMPLE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../worktrees.example");

const LANES: usize = 4;

/// An example that is ready to run.
#[derive(Debug)]
pub struct PreparedExample {
    /// The repository root.
    pub repository: PathBuf,
    /// The plan of the example batch.
    pub plan: Plan,
}

/// The example could not be created.
#[derive(Debug, thiserror::Error)]
pub enum ExampleError {
    /// The folder is in use.
    #[error("{0} exists and is not empty")]
    NotEmpty(PathBuf),
    /// A file operation failed.
    #[error("cannot write the example to {path}")]
    Io {
        /// The path of the file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Git refused.
    #[error("cannot create the example's repository")]
    Git(#[from] git2::Error),
    /// Its settings do not resolve.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

impl ExampleError {
    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotEmpty(_) => {
                Some("name a new folder, or omit it to use a temporary one".to_owned())
            }
            _ => None,
        }
    }
}

/// Creates the example in a new folder, a temporary one where none is named.
///
/// # Errors
///
/// [`ExampleError`].
pub fn set_up(dir: Option<&Path>) -> Result<PreparedExample, ExampleError> {
    let folder = match dir {
        Some(dir) => dir.to_path_buf(),
        None => temporary()?,
    };
    let failed = |source| ExampleError::Io {
        path: folder.clone(),
        source,
    };
    fs::create_dir_all(&folder).map_err(failed)?;
    if fs::read_dir(&folder).map_err(failed)?.next().is_some() {
        return Err(ExampleError::NotEmpty(folder));
    }
    let folder = fs::canonicalize(&folder).map_err(failed)?;
    let repository = folder.join("wordkit");
    write(&repository).map_err(failed)?;
    let git = commit(&repository)?;
    let worktrees: Vec<PathBuf> = (1..=LANES)
        .map(|n| {
            let name = format!("lane-{n}");
            let path = folder.join(&name);
            git.worktree(&name, &path, None).map(|_| path)
        })
        .collect::<Result<_, _>>()?;
    let roots = MemoryRoots::at(&repository);
    // Named one by one, so that nothing of the caller's environment gets in.
    let flags = LoopFlags {
        repo_root: Some(repository.clone()),
        issues_path: Some(roots.issues),
        trajectory_path: Some(roots.trajectory),
        work_cmd: Some("sh tools/agent.sh".to_owned()),
        verify_cmd: Some("sh tests/run.sh".to_owned()),
        witness_ref_prefix: Some("worker://loop".to_owned()),
        host_action_transport: Some("mcp".to_owned()),
        config: Some(repository.join("harness.toml")),
        ..LoopFlags::default()
    };
    let settings = Settings::resolve(&flags, clock::now().wall)?;
    Ok(PreparedExample {
        plan: Plan {
            settings,
            lanes: worktrees.len(),
            worktrees,
            spare: None,
            worker_prefix: "worker".to_owned(),
            allowance: Allowance {
                rounds: None,
                steps_per_dispatch: 1,
                stop_on_failure: false,
                until: Until::Done,
            },
            window: None,
            new_batch: false,
            left_out: Vec::new(),
            started_ms: clock::now().boot_ms,
        },
        repository,
    })
}

fn temporary() -> Result<PathBuf, ExampleError> {
    let stamp = clock::now().wall.as_microsecond();
    let path = std::env::temp_dir().join(format!("premath-example-{stamp}"));
    match fs::create_dir(&path) {
        Ok(()) => Ok(path),
        Err(source) => Err(ExampleError::Io { path, source }),
    }
}

/// Writes the project and its issues.
fn write(repository: &Path) -> io::Result<()> {
    fs::create_dir_all(repository.join(".premath"))?;
    if let Some(project) = EXAMPLE.get_dir("project") {
        write_dir(project, project.path(), repository)?;
    }
    for (name, target) in [
        ("harness.toml", "harness.toml"),
        ("issues.jsonl", ".premath/issues.jsonl"),
    ] {
        if let Some(file) = EXAMPLE.get_file(name) {
            fs::write(repository.join(target), file.contents())?;
        }
    }
    Ok(())
}

fn write_dir(dir: &Dir<'_>, root: &Path, target: &Path) -> io::Result<()> {
    for file in dir.files() {
        let relative = file.path().strip_prefix(root).unwrap_or(file.path());
        let path = target.join(relative);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, file.contents())?;
    }
    dir.dirs().try_for_each(|dir| write_dir(dir, root, target))
}

fn commit(path: &Path) -> Result<Repository, git2::Error> {
    let repository = Repository::init_opts(
        path,
        RepositoryInitOptions::new()
            .initial_head("main")
            .mkdir(true),
    )?;
    {
        let mut index = repository.index()?;
        index.add_all(["*"], IndexAddOption::FORCE, None)?;
        index.write()?;
        let tree = repository.find_tree(index.write_tree()?)?;
        let author = Signature::now("Premath Harness example", "example@localhost")?;
        repository.commit(Some("HEAD"), &author, &author, "wordkit", &tree, &[])?;
    }
    Ok(repository)
}

#[derive(Deserialize)]
struct Expected {
    issues: Vec<ExpectedIssue>,
}

#[derive(Deserialize)]
struct ExpectedIssue {
    id: String,
    status: String,
    attempts: usize,
}

/// An example that ended as it is expected to.
#[derive(Debug)]
pub struct ExampleOutcome {
    /// How many issues there are.
    pub issues: usize,
    /// What of the closed ones is on the branch that work lands on: all.
    pub landing: LandingCheck,
}

/// Compares the outcome of the batch with what `expected.json` says, and what
/// is closed with the branch that it is to be on.
///
/// # Errors
///
/// The differences, one line each.
pub fn compare(repository: &Path, rule: &LandingRule) -> Result<ExampleOutcome, Vec<String>> {
    let message = |error: &dyn std::fmt::Display| vec![error.to_string()];
    let text = EXAMPLE
        .get_file("expected.json")
        .map_or(&b""[..], |file| file.contents());
    let expected: Expected = serde_json::from_slice(text).map_err(|e| message(&e))?;
    let roots = MemoryRoots::at(repository);
    let statuses = statuses(&roots).map_err(|e| message(&e))?;
    let rows = Trajectory::open(&roots.trajectory)
        .map_err(|e| message(&e))?
        .rows()
        .map_err(|e| message(&e))?;
    let mut attempts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut landings: BTreeMap<&str, &LandingRecord> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.action == action::WORKER_LOOP) {
        let issue = row.issue_id.as_deref().unwrap_or("");
        *attempts.entry(issue).or_default() += 1;
        if let Some(landing) = row.landing.as_ref().filter(|_| row.succeeded()) {
            landings.insert(issue, landing);
        }
    }
    let mut differences = Vec::new();
    for issue in &expected.issues {
        let status = statuses.get(&issue.id).map_or("missing", Status::as_str);
        let count = attempts.get(issue.id.as_str()).copied().unwrap_or(0);
        if (status, count) != (issue.status.as_str(), issue.attempts) {
            differences.push(format!(
                "{} is {status} after {count} attempt(s), expected {} after {}",
                issue.id, issue.status, issue.attempts
            ));
        }
    }
    if statuses.len() != expected.issues.len() {
        differences.push(format!(
            "there are {} issues, expected {}",
            statuses.len(),
            expected.issues.len()
        ));
    }
    let closed = statuses
        .iter()
        .filter(|(_, status)| **status == Status::Closed)
        .map(|(id, _)| (id.as_str(), landings.get(id.as_str()).copied()));
    let landing = Landing::begin(rule.clone(), repository.to_path_buf())
        .and_then(|landing| landing.check(closed))
        .map_err(|e| message(&e))?;
    let missing = landing.missing.iter();
    differences.extend(missing.map(|id| {
        let target = &landing.target;
        format!("{id} is closed, but its commit is not on {target}")
    }));
    if differences.is_empty() {
        Ok(ExampleOutcome {
            issues: expected.issues.len(),
            landing,
        })
    } else {
        Err(differences)
    }
}

fn statuses(roots: &MemoryRoots) -> Result<BTreeMap<String, Status>, StoreError> {
    IssueMemory::open(&roots.issues, &OpenOptions::default())?.view(|view| {
        let of = |row: &IssueRow| (row.issue.id.to_string(), row.issue.status.clone());
        view.rows().map(of).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Creates the example as if every issue had ended as expected, with the
    /// work of the closed ones landed as one commit.
    fn ended(folder: &Path, landed: impl Fn(&Repository) -> String) -> PreparedExample {
        let prepared = set_up(Some(&folder.join("example"))).unwrap();
        let git = Repository::open(&prepared.repository).unwrap();
        let roots = MemoryRoots::at(&prepared.repository);
        let text = EXAMPLE.get_file("expected.json").unwrap().contents();
        let expected: Value = serde_json::from_slice(text).unwrap();
        let (mut issues, mut rows) = (String::new(), String::new());
        for issue in expected["issues"].as_array().unwrap() {
            let (id, closes) = (&issue["id"], issue["status"] == "closed");
            let row = json!({"id": id, "title": "t", "status": issue["status"]});
            issues.push_str(&format!("{row}\n"));
            let attempts = issue["attempts"].as_u64().unwrap();
            for attempt in 1..=attempts {
                let mut row = json!({
                    "schema": 1, "stepKind": "premath.harness.step.v1", "issueId": id,
                    "stepId": format!("{id}.{attempt}"), "action": action::WORKER_LOOP,
                    "resultClass": "failed", "finishedAt": "2025-03-03T10:00:00Z",
                });
                if closes && attempt == attempts {
                    row["resultClass"] = "completed".into();
                    row["landing"] = json!({"target": "t", "commit": landed(&git)});
                }
                rows.push_str(&format!("{row}\n"));
            }
        }
        fs::write(&roots.issues, issues).unwrap();
        fs::write(&roots.trajectory, rows).unwrap();
        prepared
    }

    #[test]
    fn what_is_closed_must_be_on_the_target() {
        let folder = tempfile::tempdir().unwrap();
        let landed = |git: &Repository| git.refname_to_id("refs/heads/main").unwrap().to_string();
        let PreparedExample { repository, plan } = ended(folder.path(), landed);
        let outcome = compare(&repository, &plan.settings.landing).unwrap();
        assert_eq!((outcome.issues, outcome.landing.landed), (14, 11));
        assert_eq!(outcome.landing.target, "harness/integration");

        let folder = tempfile::tempdir().unwrap();
        let PreparedExample { repository, plan } = ended(folder.path(), |git| {
            let author = Signature::now("a", "a@localhost").unwrap();
            let tree = git.head().unwrap().peel_to_tree().unwrap();
            // On no branch at all.
            let id = git.commit(None, &author, &author, "lost", &tree, &[]);
            id.unwrap().to_string()
        });
        let differences = compare(&repository, &plan.settings.landing).unwrap_err();
        assert_eq!(differences.len(), 11, "{differences:#?}");
        assert_eq!(
            differences[0],
            "wk-01 is closed, but its commit is not on harness/integration"
        );
    }
}
