//! A lane with a supervisor of its own, and how its processes are watched.

use fs2::FileExt;
use harness_worker::supervisor::confine::landlock::Lists;
use harness_worker::supervisor::{
    CommandSpec, Exit, Running, Supervisor, SupervisorError, confine, shell,
};
use premath_kernel::policy::sandbox::SandboxMode;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than any event of these tests takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A lane: a folder with a lock, and the supervisor.
pub(crate) struct Lane {
    pub(crate) folder: TempDir,
    pub(crate) supervisor: Supervisor,
}

impl Lane {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let supervisor = start(folder.path());
        Self { folder, supervisor }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn shell(&self, command: &str) -> CommandSpec {
        in_folder(self.folder.path(), command)
    }

    pub(crate) async fn begin(
        &mut self,
        spec: CommandSpec,
    ) -> Result<Running<'_>, SupervisorError> {
        let out = File::create(self.path("out")).unwrap();
        let err = File::create(self.path("err")).unwrap();
        self.supervisor.begin(spec, out, err).await
    }

    pub(crate) async fn run(&mut self, spec: CommandSpec) -> Exit {
        let mut running = self.begin(spec).await.unwrap();
        running.wait().await.unwrap()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

pub(crate) fn start(folder: &Path) -> Supervisor {
    let lock = File::create(folder.join("lock")).unwrap();
    lock.try_lock_exclusive().unwrap();
    Supervisor::start(Path::new(env!("CARGO_BIN_EXE_harness-worker")), lock.into()).unwrap()
}

/// A shell command that works in a folder and finds its tools.
pub(crate) fn in_folder(folder: &Path, command: &str) -> CommandSpec {
    let mut spec = shell(command);
    spec.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    spec.cwd = folder.to_owned();
    spec
}

/// Runs a future on a runtime of a lane's kind.
pub(crate) fn on_lane<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// Looks for an event again and again, for a bounded time.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The ids that a command wrote into a file, once there are so many.
pub(crate) fn pids(file: &Path, count: usize) -> Vec<i32> {
    eventually("the command writes its process ids", || {
        let text = fs::read_to_string(file).ok()?;
        let whole = &text[..text.rfind('\n')? + 1];
        let pids: Vec<i32> = whole.lines().map(|line| line.parse().unwrap()).collect();
        (pids.len() == count).then_some(pids)
    })
}

/// Waits until the lane knows that the command was started.
pub(crate) async fn started(running: &mut Running<'_>) {
    while running.pid().is_none() {
        tokio::select! {
            exit = running.wait() => panic!("{exit:?}"),
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
    }
}

/// Whether a process does not run; a zombie does not.
pub(crate) fn gone(pid: i32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit(") ").next().unwrap().starts_with('Z'),
        Err(_) => true,
    }
}

pub(crate) fn free(lock: &Path) -> bool {
    File::open(lock).unwrap().try_lock_exclusive().is_ok()
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// Whether the kernel confines; otherwise it must report an error.
pub(crate) fn is_confining() -> bool {
    match confine::works(SandboxMode::Landlock) {
        Ok(()) => true,
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "skipped: {why}");
            false
        }
    }
}

/// Lists of a command that may read everything.
pub(crate) fn writing(paths: &[PathBuf]) -> Option<Lists> {
    let write = paths.iter().map(PathBuf::as_path);
    Some(Lists::new(write, [Path::new("/")]))
}
