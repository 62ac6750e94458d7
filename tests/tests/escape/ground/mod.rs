//! A repository of a user, with hostile and honest issues, and what must be so
//! after every night.

mod check;
mod mode;
mod night;
mod snapshot;
mod steps;
mod system;
mod tools;
mod user;

pub(crate) use mode::{Mode, is_alone, run};
use premath_tests::{NO_CHANGE, NO_STARTUP, Run, Running, Scratch, until};
use rustix::process::Signal;
use snapshot::Snapshot;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use steps::Step;
use system::System;
use tools::{coordinator_at, reachable_tools};
pub(crate) use user::User;

/// The branch that work lands on.
pub(crate) const TARGET: &str = "harness/integration";

/// How long git may take in the user's repository.
const HANG: Duration = Duration::from_secs(60);

/// What verifies the work: honest issues find what they need.
const VERIFY: &str = "[ -f src/base.txt ] && [ ! -L src ]";

/// How many seconds a step may take: no honest step of a slow machine takes them.
const STEP_LIMIT: u32 = 40;

/// The settings of every night, below the limit of a step: no waiting, and no
/// pause for a row of failures.
const SETTINGS: &str = r#"grace = "500ms"
free_disk = 0
free_memory = 0
[breaker]
failures = 0
[backoff]
fixed_short = "10ms"
exponential_short = "10ms"
"#;

/// A user's repository, home and neighbours.
#[derive(Debug)]
pub(crate) struct Ground {
    scratch: Scratch,
    mode: Mode,
    user: User,
    tools: PathBuf,
    steps: Vec<Step>,
    rows: Vec<(String, String)>,
    settings: String,
    step_limit: u32,
    verify: String,
    honest_pause: u32,
    environment: Vec<(String, String)>,
    bystanders: Vec<Running>,
    before: Option<Before>,
    nights: usize,
    has_begun: bool,
    has_hung: bool,
    printed: String,
    findings: Vec<String>,
}

/// What was there before the first night.
#[derive(Debug)]
struct Before {
    files: Snapshot,
    references: Vec<String>,
    objects: Vec<String>,
}

impl Ground {
    /// Creates a repository that belongs to the user.
    pub(crate) fn new(mode: Mode) -> Self {
        let above = Path::new("/var/tmp");
        let scratch = match above.is_dir() {
            true => Scratch::beneath(above, 0),
            false => Scratch::new(0),
        };
        let folder = scratch.folder();
        let tools = reachable_tools(&folder);
        let ground = Self {
            tools,
            mode,
            user: User::fresh(),
            scratch,
            steps: Vec::new(),
            rows: Vec::new(),
            settings: String::new(),
            step_limit: STEP_LIMIT,
            verify: VERIFY.to_owned(),
            honest_pause: 0,
            environment: Vec::new(),
            bystanders: Vec::new(),
            before: None,
            nights: 0,
            has_begun: false,
            has_hung: false,
            printed: String::new(),
            findings: Vec::new(),
        };
        for name in ["outside", "home/.ssh"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        ground.write("outside/kept.txt", "kept\n");
        ground.write("home/.profile", "# a profile\n");
        ground.write("home/.ssh/id_ed25519", "SECRET-KEY\n");
        ground.write("repo/ignored/cache.txt", "warm\n");
        ground.write("repo/verify.sh", "[ ! -e src/broken.txt ]\n");
        ground.write_settings();
        ground.own();
        ground.commits("settings");
        ground
    }

    /// Returns the way of confining.
    pub(crate) const fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the user.
    pub(crate) const fn user(&self) -> User {
        self.user
    }

    /// Returns a path in the ground's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.folder().join(name)
    }

    /// Writes a file of the user's; folders on the way are made.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        self.own();
    }

    /// Reads a file; empty where there is none.
    pub(crate) fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.path(name)).unwrap_or_default()).into_owned()
    }

    /// Gives everything but the tools to the user.
    fn own(&self) {
        for entry in fs::read_dir(self.scratch.folder()).unwrap().flatten() {
            if entry.file_name() != "bin" {
                self.user.owns(&entry.path());
            }
        }
        let folder = self.scratch.folder();
        if let Some(id) = self.user.is_own().then(|| self.user.number()) {
            std::os::unix::fs::chown(folder, Some(id), Some(id)).unwrap();
        }
    }

    /// Commits everything in the user's checkout.
    pub(crate) fn commits(&self, message: &str) {
        self.git(&["add", "-A", "--", ":!.premath", ":!artifacts"]);
        self.git(&["commit", "-qm", message]);
    }

    /// Adds settings to `harness.toml`, below a table.
    pub(crate) fn settings(&mut self, text: &str) {
        // A table that older binaries refuse would hide what they do.
        if mode::older().is_some() && text.starts_with("[limits]") {
            return;
        }
        self.settings.push_str(text);
        self.write_settings();
        self.commits("more settings");
    }

    fn write_settings(&self) {
        let (seconds, more) = (self.step_limit, &self.settings);
        let limits = format!("step_limit = \"{seconds}s\"\nverify_limit = \"{seconds}s\"");
        let all = format!("[supervision]\n{limits}\n{SETTINGS}{more}");
        self.write("repo/harness.toml", &all);
    }

    /// Sets how long a step may take: where a hostile one never ends by itself.
    pub(crate) fn limits_steps_to(&mut self, seconds: u32) {
        self.step_limit = seconds;
        self.settings("");
    }

    /// Sets the command that verifies.
    pub(crate) fn verify(&mut self, command: &str) {
        command.clone_into(&mut self.verify);
    }

    /// Makes honest work take some seconds, so that hostile work runs at the
    /// same time.
    pub(crate) fn honest_work_takes(&mut self, seconds: u32) {
        self.honest_pause = seconds;
    }

    /// Sets a variable of the harness.
    pub(crate) fn environment(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Starts a process of the user's that has nothing to do with the batch.
    pub(crate) fn bystander(&mut self) -> usize {
        let run = self.run(Path::new("sleep")).arg("600");
        self.run_beside(run)
    }

    /// Starts a program of the user's that runs beside the batch; returns its
    /// number.
    pub(crate) fn run_beside(&mut self, run: Run) -> usize {
        self.bystanders.push(run.start());
        self.bystanders.len() - 1
    }

    /// Reads what a program beside the batch printed.
    pub(crate) fn output_by(&self, bystander: usize) -> String {
        let running = &self.bystanders[bystander];
        format!("{}{}", running.stdout(), running.stderr())
    }

    /// Makes a run of a program by the user, in the main worktree.
    pub(crate) fn run(&self, program: &Path) -> Run {
        let tools = self.tools.display();
        let mut path =
            format!("{tools}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        let mut run = self.user.runs(self.scratch.run(program));
        if let (Mode::Container, Ok(system)) = (self.mode, System::get()) {
            path = format!("{}:{path}", system.podman().display());
            for (name, value) in system.variables() {
                run = run.env(name, value);
            }
        }
        if !self.path("repo").is_dir() {
            run = run.within(&self.scratch.folder());
        }
        run.env("PATH", path)
            .without("PREMATH_SANDBOX_WRITE")
            .without("PREMATH_SANDBOX_READ")
            .without("PREMATH_ENV_ALLOW")
            .without("TMPDIR")
    }

    /// Makes a run of `premath` by the user, in the main worktree.
    pub(crate) fn premath(&self, arguments: &[&str]) -> premath_tests::Ended {
        let run = self.run(&premath_tests::binaries().premath);
        run.args(arguments).end()
    }

    /// Makes a run of the harness with two lanes of its own, bounded in memory.
    pub(crate) fn harness(&self) -> Run {
        self.harness_behind(|run| run)
    }

    /// As [`Ground::harness`], by programs that start it with arguments.
    pub(crate) fn harness_behind(&self, before: impl Fn(Run) -> Run) -> Run {
        let bounded = r#"ulimit -v 6291456; exec "$@""#;
        let run = self
            .run(Path::new("/bin/sh"))
            .args(["-c", bounded, "sh", "env"]);
        let mut run = before(run)
            .arg(coordinator_at(&self.tools))
            .args(["--json", "--override-reason", "test", "--lanes", "2"])
            .args(NO_CHANGE)
            .args(NO_STARTUP)
            .args(["--sandbox", &self.mode.value()])
            .args(["--work-cmd", &self.work(), "--verify-cmd", &self.verify]);
        for (name, value) in &self.environment {
            run = run.env(name, value);
        }
        run
    }

    /// Runs git as the user, in the main worktree, with nothing that the
    /// repository could make it run.
    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let ended = self.try_git(arguments);
        assert_eq!(ended.code, Some(0), "git {arguments:?}: {}", ended.stderr);
        ended.stdout
    }

    /// As [`Ground::git`], where git may fail.
    pub(crate) fn try_git(&self, arguments: &[&str]) -> premath_tests::Ended {
        let mut running = self
            .run(Path::new("git"))
            .env("GIT_OPTIONAL_LOCKS", "0")
            .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor="])
            .args(arguments)
            .start();
        // The user's git may hang at what a step left; that is found too.
        if until(HANG, || running.is_over().then_some(())).is_none() {
            running.signal(Signal::KILL);
        }
        running.wait()
    }

    /// Returns what the harness printed in all nights.
    pub(crate) fn printed(&self) -> &str {
        &self.printed
    }

    /// Notes harm; a test ends with all of it at once.
    pub(crate) fn harm(&mut self, is_done: bool, what: impl Into<String>) {
        if is_done {
            self.findings.push(what.into());
        }
    }

    /// Says more about what was found, where something was.
    pub(crate) fn notes(&mut self, what: &str) {
        self.harm(!self.findings.is_empty(), what);
    }

    /// Returns what was found so far.
    pub(crate) fn findings(&self) -> &[String] {
        &self.findings
    }

    /// Ends the test: nothing may have been found.
    #[track_caller]
    pub(crate) fn verdict(self, attack: &str) {
        let findings = self.findings.clone();
        let mode = self.mode;
        drop(self);
        assert!(
            findings.is_empty(),
            "{attack} by {mode:?}: {} found\n- {}",
            findings.len(),
            findings.join("\n- ")
        );
    }
}
