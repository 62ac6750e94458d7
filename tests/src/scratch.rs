//! A folder with a repository, its worktrees and its issue memory.

use crate::gate_runs::NoteRuns;
use crate::tracker::{Rows, last_rows, parse_rows};
use crate::{Ended, Run, binaries, processes_in, skipped, until};
use git2::{IndexAddOption, Repository, RepositoryInitOptions, Signature};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// Lets work that changes nothing close its issue, for tests whose work has no
/// reason to change anything.
pub const NO_CHANGE: [&str; 2] = ["--on-no-change", "allow"];

/// Runs no verification on the base, for tests whose verification passes only
/// with work, or that count verifications.
pub const NO_STARTUP: [&str; 2] = ["--startup", "off"];

/// A repository `repo` beside its linked worktrees `lane-1`, `lane-2`, … in a
/// temporary folder, which also holds the home of every process started here.
#[derive(Debug)]
pub struct Scratch {
    /// Drops first, while the files are there.
    _runs: NoteRuns,
    folder: TempDir,
    /// The repository root: the main worktree.
    pub root: PathBuf,
    /// The linked worktrees.
    pub lanes: Vec<PathBuf>,
    runs: AtomicU64,
}

impl Scratch {
    /// Creates a repository with so many lanes; issue memory is not there yet.
    pub fn new(lanes: usize) -> Self {
        Self::beneath(&std::env::temp_dir(), lanes)
    }

    /// Creates a repository in a temporary folder below another folder than
    /// the system's temporary one.
    pub fn beneath(above: &Path, lanes: usize) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("premath-test-")
            .tempdir_in(above)
            .expect("a temporary folder can be made");
        let above = fs::canonicalize(folder.path()).unwrap();
        let root = above.join("repo");
        fs::create_dir_all(above.join("runs")).unwrap();
        fs::create_dir_all(above.join("home")).unwrap();
        fs::create_dir_all(root.join("src")).unwrap();
        fs::write(root.join("README.md"), "A scratch project.\n").unwrap();
        fs::write(root.join("src/base.txt"), "base\n").unwrap();
        fs::write(root.join(".gitignore"), "/ignored/\n").unwrap();
        let git = Repository::init_opts(
            &root,
            RepositoryInitOptions::new()
                .initial_head("main")
                .external_template(false),
        )
        .unwrap();
        let mut index = git.index().unwrap();
        index.add_all(["*"], IndexAddOption::DEFAULT, None).unwrap();
        index.write().unwrap();
        let tree = git.find_tree(index.write_tree().unwrap()).unwrap();
        let author = Signature::now("Scratch", "scratch@localhost").unwrap();
        git.commit(Some("HEAD"), &author, &author, "base", &tree, &[])
            .unwrap();
        let lanes = (1..=lanes)
            .map(|number| {
                let name = format!("lane-{number}");
                let path = above.join(&name);
                git.worktree(&name, &path, None).unwrap();
                path
            })
            .collect();
        let note = NoteRuns {
            folder: above,
            root: root.clone(),
        };
        Self {
            _runs: note,
            folder,
            root,
            lanes,
            runs: AtomicU64::new(0),
        }
    }

    /// Lays a repository with lanes and issues out.
    pub fn with_issues(lanes: usize, rows: &[Value]) -> Self {
        let scratch = Self::new(lanes);
        let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
        scratch.write_issues(text.as_bytes());
        scratch
    }

    /// Returns the folder that holds everything.
    pub fn folder(&self) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap()
    }

    /// Returns the home of every process that is started here, which its
    /// commands may write to.
    pub fn home(&self) -> PathBuf {
        self.folder().join("home")
    }

    /// Writes issue memory, byte for byte.
    pub fn write_issues(&self, text: &[u8]) {
        fs::create_dir_all(self.root.join(".premath")).unwrap();
        fs::write(self.issues_path(), text).unwrap();
    }

    /// Returns where issue memory is.
    pub fn issues_path(&self) -> PathBuf {
        self.root.join(".premath/issues.jsonl")
    }

    /// Returns where the trajectory is.
    pub fn trajectory_path(&self) -> PathBuf {
        self.root.join(".premath/harness_trajectory.jsonl")
    }

    /// Reads issue memory's bytes.
    pub fn issue_bytes(&self) -> Vec<u8> {
        fs::read(self.issues_path()).unwrap()
    }

    /// Reads the issues as they are: the last row of each.
    pub fn issues(&self) -> Rows {
        last_rows(parse_rows(&self.issue_bytes()))
    }

    /// Reads one issue.
    #[track_caller]
    pub fn issue(&self, id: &str) -> Value {
        match self.issues().remove(id) {
            Some(row) => row,
            None => panic!("no issue {id}"),
        }
    }

    /// Reads the trajectory; empty where there is none.
    pub fn trajectory(&self) -> Vec<Value> {
        parse_rows(&fs::read(self.trajectory_path()).unwrap_or_default())
    }

    /// Reads the trajectory's rows of workers' steps.
    pub fn steps(&self) -> Vec<Value> {
        let mut rows = self.trajectory();
        rows.retain(|row| row["action"] == "worker.loop");
        rows
    }

    /// Reads the trajectory's steps of one issue.
    pub fn steps_of(&self, id: &str) -> Vec<Value> {
        let mut rows = self.steps();
        rows.retain(|row| row["issueId"] == id);
        rows
    }

    /// Opens the repository.
    pub fn git(&self) -> Repository {
        Repository::open(&self.root).unwrap()
    }

    /// Returns the branches of the repository, sorted.
    pub fn branches(&self) -> Vec<String> {
        let git = self.git();
        let mut names: Vec<String> = git
            .branches(Some(git2::BranchType::Local))
            .unwrap()
            .map(|branch| branch.unwrap().0.name().unwrap().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }

    /// Reads a file as a branch has it; `None` where it has none.
    pub fn file_on(&self, branch: &str, path: &str) -> Option<String> {
        let git = self.git();
        let tree = git
            .find_branch(branch, git2::BranchType::Local)
            .unwrap_or_else(|error| panic!("{branch}: {error}"))
            .get()
            .peel_to_tree()
            .unwrap();
        let object = tree
            .get_path(Path::new(path))
            .ok()?
            .to_object(&git)
            .unwrap();
        Some(String::from_utf8(object.as_blob()?.content().to_vec()).unwrap())
    }

    /// Returns the messages of a branch's commits above the base, newest first.
    pub fn messages_on(&self, branch: &str) -> Vec<String> {
        let git = self.git();
        let mut walk = git.revwalk().unwrap();
        walk.push_ref(&format!("refs/heads/{branch}")).unwrap();
        let mut messages: Vec<String> = walk
            .map(|id| {
                let commit = git.find_commit(id.unwrap()).unwrap();
                String::from_utf8_lossy(commit.message_bytes()).into_owned()
            })
            .collect();
        assert_eq!(messages.pop().as_deref(), Some("base"), "the first commit");
        messages
    }

    /// Makes a run of a program in the repository root.
    pub fn run(&self, program: &Path) -> Run {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let output = self.folder().join(format!("runs/{number}.out"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        Run::new(program, output)
            .within(&self.root)
            .env("PATH", path)
            .env("HOME", self.home())
            // Open to confined commands, so that a scripted agent can report.
            .env("PREMATH_SANDBOX_WRITE", self.home())
            .env("PREMATH_SANDBOX_READ", binaries().folder())
            .env("PREMATH_ENV_ALLOW", "E2E_PREMATH")
            .env("TMPDIR", self.folder())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "Agent")
            .env("GIT_AUTHOR_EMAIL", "agent@localhost")
            .env("GIT_COMMITTER_NAME", "Agent")
            .env("GIT_COMMITTER_EMAIL", "agent@localhost")
            .env("E2E_PREMATH", &binaries().premath)
    }

    /// Returns the text that the last batch saved at its end.
    pub fn kept_report(&self) -> String {
        let listed = self.premath(["report", "--list", "--json"]).end();
        let listed = listed.exits(0).json();
        let path = listed["items"][0]["path"].as_str().expect("a saved report");
        std::fs::read_to_string(path).expect("its text")
    }

    /// Makes a run of `premath`.
    pub fn premath<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Run {
        self.run(&binaries().premath).args(arguments)
    }

    /// Makes a run of `harness-coordinator` on every lane; work stays on the
    /// lanes' branches.
    pub fn batch(&self, work: &str, verify: &str) -> Run {
        self.batch_on(&self.lanes, work, verify)
    }

    /// Makes a run of `harness-coordinator` on some worktrees; work stays on
    /// the lanes' branches.
    pub fn batch_on(&self, lanes: &[PathBuf], work: &str, verify: &str) -> Run {
        self.landing_batch_on(lanes, work, verify)
            .args(["--landing", "none"])
    }

    /// Makes a run of `harness-coordinator` on every lane; work lands as it
    /// does by default.
    pub fn landing_batch(&self, work: &str, verify: &str) -> Run {
        self.landing_batch_on(&self.lanes, work, verify)
    }

    /// Makes a coordinator's run on some lanes, whose work lands. Work that
    /// changes nothing may close its issue, and the base is not verified.
    pub fn landing_batch_on(&self, lanes: &[PathBuf], work: &str, verify: &str) -> Run {
        self.default_batch_on(lanes, work, verify)
            .args(NO_CHANGE)
            .args(NO_STARTUP)
    }

    /// Makes a coordinator's run on every lane with the defaults: the base is
    /// verified, work lands, and work that changes nothing fails.
    pub fn default_batch(&self, work: &str, verify: &str) -> Run {
        self.default_batch_on(&self.lanes, work, verify)
    }

    fn default_batch_on(&self, lanes: &[PathBuf], work: &str, verify: &str) -> Run {
        let mut run = self.run(&binaries().coordinator).args([
            "--json",
            "--override-reason",
            "test",
            "--work-cmd",
            work,
            "--verify-cmd",
            verify,
        ]);
        for lane in lanes {
            run = run.arg("--worktree").arg(lane);
        }
        run
    }

    /// Makes a run of `harness-worker` in a lane; work stays on its branch.
    pub fn worker(&self, lane: usize, id: &str, work: &str, verify: &str) -> Run {
        self.landing_worker(lane, id, work, verify)
            .args(["--landing", "none"])
    }

    /// Makes a run of `harness-worker` in a lane; work lands as it does by
    /// default.
    pub fn landing_worker(&self, lane: usize, id: &str, work: &str, verify: &str) -> Run {
        self.run(&binaries().worker)
            .args(["--json", "--override-reason", "test", "--worker-id", id])
            .args(["--work-cmd", work, "--verify-cmd", verify])
            .args(NO_CHANGE)
            .args(NO_STARTUP)
            .arg("--worktree-root")
            .arg(&self.lanes[lane])
    }

    /// Runs git.
    pub fn git_command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Run {
        self.run(Path::new("git")).args(arguments)
    }

    /// Returns whether a sandbox mode works here; where it does not, `what` is skipped. The
    /// harness must refuse it by name then, and it must not be one that the run demands.
    #[track_caller]
    pub fn confines_by(&self, mode: &str, what: &str) -> bool {
        let explain = self.premath(["sandbox", "explain", "--sandbox", mode]);
        mode_works(explain.end(), mode, what)
    }

    /// Checks that within so long no process of this scratch is left.
    #[track_caller]
    pub fn no_process_within(&self, patience: Duration) {
        let folder = self.folder();
        let gone = until(patience, || processes_in(&folder).is_empty().then_some(()));
        assert!(
            gone.is_some(),
            "left after {patience:?}: {:#?}",
            processes_in(&folder)
        );
    }

    /// Checks that no process of this scratch is left.
    #[track_caller]
    pub fn no_process_left(&self) {
        // A supervisor needs a moment to see that its harness is gone.
        self.no_process_within(Duration::from_secs(1));
    }

    /// Returns the names of files below the folders of the harness that should
    /// not be there once nothing runs.
    pub fn leftovers(&self) -> Vec<String> {
        let mut found = Vec::new();
        for worktree in [&self.root].into_iter().chain(&self.lanes) {
            for folder in [".premath", "artifacts", ".git"] {
                collect(&worktree.join(folder), &mut found);
            }
        }
        found
    }
}

fn collect(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().unwrap();
        let left = name.contains(".premath-tmp-")
            || name.contains(".torn-")
            || name.ends_with(".lock")
            || name.starts_with("tmp_");
        if left || (kind.is_dir() && folder.ends_with(".premath") && name == "step") {
            found.push(path.display().to_string());
        } else if kind.is_dir() {
            collect(&path, found);
        }
    }
}

/// Judges an explanation of a sandbox mode as [`Scratch::confines_by`] does.
#[track_caller]
pub fn mode_works(explained: Ended, mode: &str, what: &str) -> bool {
    if explained.code == Some(0) {
        return true;
    }
    let refused = explained.says("does not work here");
    let demanded = std::env::var("PREMATH_ESCAPE_MODE").unwrap_or_default();
    let is_demanded = demanded.split(',').any(|demanded| demanded.trim() == mode);
    assert!(!is_demanded, "{mode} is demanded: {}", refused.stderr);
    skipped(what, refused.stderr.trim());
    false
}
