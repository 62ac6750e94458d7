//! Measures what a command costs through the supervisor, confined or not, against
//! a plain spawn.
//!
//! `cargo run --release -p harness-worker --example supervisor_overhead`

use harness_worker::supervisor::confine::landlock::Lists;
use harness_worker::supervisor::{self, Supervisor, confine, shell};
use premath_kernel::policy::sandbox::SandboxMode;
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const RUNS: u32 = 200;
/// The best of so many rounds counts: the others measure the machine's load.
const ROUNDS: u32 = 10;
/// How many paths a confined command may write to, about as in a lane.
const PATHS: usize = 30;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if let Some(ended) = supervisor::hidden_mode() {
        return Ok(ended);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut out = std::io::stdout().lock();
    let (mut plainly, mut supervisedly) = (Duration::MAX, Duration::MAX);
    let mut confinedly = Duration::MAX;
    let is_confining = confine::works(SandboxMode::Landlock).is_ok();
    for _ in 0..ROUNDS {
        plainly = plainly.min(plain()?);
        supervisedly = supervisedly.min(runtime.block_on(supervised(None))?);
        if is_confining {
            let paths = vec![std::env::temp_dir(); PATHS];
            let paths = paths.iter().map(PathBuf::as_path);
            let lists = Lists::new(paths, [Path::new("/")]);
            confinedly = confinedly.min(runtime.block_on(supervised(Some(lists)))?);
        }
    }
    writeln!(
        out,
        "plain {plainly:?}, supervised {supervisedly:?} a run: {:?} more, ratio {:.2}",
        supervisedly.saturating_sub(plainly),
        supervisedly.as_secs_f64() / plainly.as_secs_f64(),
    )?;
    if is_confining {
        let more = confinedly.saturating_sub(supervisedly);
        writeln!(out, "confined {confinedly:?} a run: {more:?} more")?;
    }
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::disallowed_methods, reason = "the yardstick is a plain spawn")]
fn plain() -> Result<Duration, Box<dyn Error>> {
    let started = Instant::now();
    for _ in 0..RUNS {
        let output = Command::new("/bin/sh")
            .args(["-c", "true"])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .output()?;
        assert!(output.status.success());
    }
    Ok(started.elapsed() / RUNS)
}

async fn supervised(lists: Option<Lists>) -> Result<Duration, Box<dyn Error>> {
    let lock = tempfile::tempfile()?;
    let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut supervisor = Supervisor::start(&std::env::current_exe()?, lock.into())?;
    let started = Instant::now();
    for _ in 0..RUNS {
        let (stdout, stderr): (File, File) = (stdout.try_clone()?, stderr.try_clone()?);
        let mut spec = shell("true");
        spec.lists.clone_from(&lists);
        let exit = supervisor.begin(spec, stdout, stderr).await?.wait().await?;
        assert!(exit.succeeded());
    }
    Ok(started.elapsed() / RUNS)
}
